//! Starts the real binary in a home of its own and talks to it from outside.

pub(crate) mod client;
pub(crate) mod daemon;
pub(crate) mod home;
pub mod process;
pub(crate) mod session;
mod sse;
pub(crate) mod tcp_proxy;
pub(crate) mod wait;
