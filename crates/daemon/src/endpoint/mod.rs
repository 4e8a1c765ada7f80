//! The endpoints for MCP clients. `/mcp` shows the few tools that agents see instead of all tools of all
//! upstreams; `/mcp/server/{name}` is one upstream as itself; `/mcp/direct` is all of them at once.

mod agent;
mod all_servers;
mod client_channel;
mod clients;
mod cut;
mod definitions;
mod direct;
mod endpoints;
mod relay;
mod response_cache;
mod server;

pub(crate) use endpoints::Endpoints;
