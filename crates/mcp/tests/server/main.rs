//! The server over HTTP and over pipes, as clients see it.
#![cfg(test)]

mod http_cancel;
mod http_load;
mod http_rules;
mod http_sessions;
mod http_streams;
mod modern_calls;
mod modern_input;
mod modern_interleaved;
mod modern_listen;
mod modern_rules;
mod modern_stdio;
mod modern_wire;
mod rmcp_modern;
mod rmcp_peer;
mod script;
mod stdio;
mod wire;
