//! The config files of other programs: where they are, which servers and permission rules they
//! hold, and how mcpproxy gets into them and out again.
//!
//! Everything is a function of the [`Places`] that are handed in. Nothing here prints, asks or
//! reads the environment, and a file changes only through [`Plan::apply`].

mod adapter;
mod client;
mod connect;
mod document;
mod edit;
mod endpoint;
mod error;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod import;
mod moving;
mod permissions;
mod places;
mod plan;
mod receipt;
mod references;
mod secrets;
mod servers;
mod undo;

pub use client::{Client, UnknownClient};
pub use connect::{Approval, connect};
pub use document::{ParseFault, ShapeFault};
pub use endpoint::{Endpoint, KEY_VARIABLE};
pub use error::ClientFileError;
pub use import::{Candidate, Verdict as ImportVerdict, select};
pub use moving::{Origin, take_out};
pub use permissions::{OWN_TOOLS, Permissions, Verdict, permissions};
pub use places::{Places, Platform};
pub use plan::{FileChange, Plan};
pub use receipt::Receipts;
pub use servers::{Found, Obstacle, OwnAddress, Scope, Survey, survey};
pub use undo::undo;

/// What the server is called in every client. Without an underscore, because Gemini CLI splits
/// names there.
pub const SERVER_NAME: &str = "mcpproxy";
