//! One supervised actor per upstream.
//!
//! A [`Fleet`] holds an [`Upstream`] for each entry of the config. Each has an actor of its own that
//! connects, lists the tools, notices when the connection is gone and connects again; it publishes
//! a [`Status`] and nothing else reaches into it. Calls go straight to the connection.

mod actor;
mod backoff;
mod client;
mod connect;
mod connection;
mod era;
mod failure;
mod fleet;
mod handle;
mod health;
mod listing;
mod params;
mod pool;
mod process;
mod queue;
mod starts;
mod state;
mod stderr;
mod stderr_excerpt;
mod subscriptions;
mod switchboard;
mod variants;

pub use client::{AskError, ClientLine, FleetListener, OnBehalf};
pub use connect::LaunchContext;
pub use era::EraMemory;
pub use failure::{Failure, how_to_authorize};
pub use fleet::{Fleet, KnownTools};
pub use handle::{CallError, Forward, ToolCall, Upstream};
pub use state::{ServerIdentity, State, Status, ToolList};
pub use stderr::{InvalidLogCursor, LogCursor, LogPage};
pub use variants::Variants;
