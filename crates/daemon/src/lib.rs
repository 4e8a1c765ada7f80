//! The running service: MCP endpoints, REST, auth, wiring.
//!
//! [`Engine`] is the product without its endpoints; [`Daemon`] puts endpoints, REST and the config file
//! around it. Commands that only read the log, or look at a server that is not in the config, work
//! without a daemon: they use the same routes over an engine that starts none of the servers.

mod activity_log;
mod config_editor;
mod daemon;
mod data_dir;
mod endpoint;
mod engine;
mod http;
mod off_thread;
mod pins;
mod rest;
mod started_by;

pub use activity_log::{ActivityLogError, ReadOnlyLog, read_activity};
pub use catalog::LONGEST_QUERY;
pub use daemon::{Daemon, StartError, launch_context};
pub use data_dir::{DataDir, DataDirError, Lock};
pub use engine::{CallRequest, Caller, Engine};
pub use http::{ApiKeyError, Holder, ListenError, held_by, local_router};
pub use pins::{Pins, PinsError};
pub use rest::api_document;
pub use started_by::StartedBy;
