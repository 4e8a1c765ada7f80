//! Reports as text for people and for other programs.

mod junit;
mod markdown;
mod sarif;

pub use self::junit::junit;
pub use self::markdown::markdown;
pub use self::sarif::sarif;
