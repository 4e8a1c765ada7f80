//! A scriptable upstream, and a harness that starts the real binary in front of it.
//!
//! A test says what its upstream does ([`Script`]), starts a daemon ([`TestDaemon`]) and talks to
//! it as a client does: over MCP ([`Session`], or rmcp), or through the command line ([`Home`]).
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "whatever goes wrong in the kit has to fail the test that uses it, on the spot"
)]

pub mod conformance;
pub mod faults;
mod harness;
mod upstream;

pub use harness::client::{Client, connect};
pub use harness::daemon::TestDaemon;
pub use harness::home::{Home, Output, Stdin};
pub use harness::process;
pub use harness::session::{Answer, Refusal, Reply, Session, http_client};
pub use harness::tcp_proxy::{Network, TcpProxy};
pub use harness::wait::{DEADLINE, wait_for, wait_until};
pub use upstream::chaos::{Fault, malformed_frames};
pub use upstream::http::HttpUpstream;
pub use upstream::record::{Event, Record};
pub use upstream::script::{
    Behaviour, Churn, HttpScript, Outcome, Part, Script, Start, Tool, Wire,
};
pub use upstream::stdio::{StdioUpstream, serve as serve_stdio, serve_script, wait_for_ever};
pub use upstream::{upstream_program, watchdog_program};
