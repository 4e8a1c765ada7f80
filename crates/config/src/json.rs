//! JSON read level by level, with the path and the position of every value at hand.
//!
//! Deserializing into structs would lose where a value stood as soon as it was read, and errors
//! that are found later (two entries that contradict each other) could not point anywhere.

mod fields;
mod node;
mod path;
mod position;

pub(crate) use fields::Fields;
pub use node::Kind;
pub(crate) use node::Node;
pub use path::JsonPath;
pub use position::Position;
