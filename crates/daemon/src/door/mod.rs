//! The doors for MCP clients. `/mcp` shows the few tools that agents see instead of all tools of all
//! upstreams; `/mcp/server/{name}` is one upstream as itself; `/mcp/direct` is all of them at once.

mod clients;
mod cut;
mod definitions;
mod direct;
mod keeper;
mod line;
mod passage;
mod response_cache;
mod server;
mod service;

pub(crate) use keeper::Doors;
pub use service::AgentDoor;
