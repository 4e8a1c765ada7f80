//! One file per command.

pub(crate) mod activity;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod demo_server;
pub(crate) mod doctor;
pub(crate) mod logs;
pub(crate) mod overrides;
pub(crate) mod restart;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod status;
pub(crate) mod stdio;
pub(crate) mod stop;
pub(crate) mod tools;
pub(crate) mod upstream;

use mcp::RawValue;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::exit::{Exit, Failure};

/// A number and what is counted: `1 tool`, `2 tools`.
fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// An answer of the API as data to be shown.
fn parse(data: &RawValue) -> Result<Value, Failure> {
    parse_as(data)
}

pub(crate) fn parse_as<T: DeserializeOwned>(data: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(data.get())
        .map_err(|error| Failure::from_error(Exit::Failed, "the answer is not understood", &error))
}
