//! One supervised actor per upstream.
//!
//! A [`Fleet`] holds an [`Upstream`] for each entry of the config. Each has an actor of its own that
//! connects, lists the tools, notices when the connection is gone and connects again; it publishes
//! a [`Status`] and nothing else reaches into it. Calls go straight to the connection.

mod actor;
mod backoff;
mod connect;
mod failure;
mod fleet;
pub mod guardian;
mod handle;
mod listing;
mod params;
mod process;
mod state;
mod stderr;

pub use connect::Surroundings;
pub use failure::Failure;
pub use fleet::Fleet;
pub use handle::{CallError, ToolCall, Upstream};
pub use process::Guardian;
pub use state::{ServerIdentity, State, Status, ToolList};
pub use stderr::{InvalidLogCursor, LogCursor, LogPage};
