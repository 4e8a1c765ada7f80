//! The running service: MCP doors, REST, auth, wiring.
//!
//! [`Engine`] is the product without its doors; [`Daemon`] puts doors, REST and the config file
//! around it. A command that finds no daemon uses an engine of its own, through the same routes.

mod chronicle;
mod config_editor;
mod daemon;
mod data_dir;
mod door;
mod engine;
mod http;
mod pins;
mod rest;

pub use catalog::LONGEST_QUERY;
pub use chronicle::{ChronicleError, OpenLog, ReadOnlyLog, open_activity, read_activity};
pub use daemon::{Daemon, StartError, surroundings};
pub use data_dir::{DataDir, DataDirError, Lock};
pub use door::AgentDoor;
pub use engine::{CallRequest, Caller, Engine};
pub use http::{ApiKeyError, Holder, ListenError, held_by, local_router};
pub use pins::{Pins, PinsError};
pub use rest::api_document;
