//! The client against servers of every kind: scripted ones, which do what no library would, and a
//! real one.
#![cfg(test)]

mod era;
mod framing;
mod http;
mod http_connections;
mod http_streams;
mod input;
mod modern_http;
mod modern_pipes;
mod rmcp_modern;
mod rmcp_server;
mod session;
mod stdio;
mod subscriptions;
mod support;
mod two_endpoints;
