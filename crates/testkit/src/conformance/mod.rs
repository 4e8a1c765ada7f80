//! The two ends of the protocol's conformance suite: a server with everything that the suite asks
//! a server for, and a client that uses everything a server offers.
//!
//! Unlike the scripted upstream these are built on the product's own wire, so they prove nothing
//! by themselves: the suite judges them first without a proxy, and then with one in between.
//! `foreign` has servers on SDKs of others for the same suite.

mod answers;
mod asking;
mod calls;
mod client;
mod eras;
mod fixture;
mod foreign;
mod http;
mod listening;
mod local;
mod prompts;
mod resources;
mod schemas;
mod skills;
mod stdio;
mod tasks;
mod tools;
mod two_endpoints;

pub use client::use_everything;
pub use eras::Eras;
pub use foreign::{ForeignServer, ForeignTransport, ListeningServer, Sdk, test_tools};
pub use listening::Fixture;
pub use stdio::serve as serve_stdio;
