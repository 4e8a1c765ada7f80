//! `/mcp`: the few tools that agents see instead of all tools of all upstreams.

mod cut;
mod definitions;
mod response_cache;
mod service;

pub use service::AgentDoor;
