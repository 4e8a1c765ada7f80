//! The wire: JSON-RPC messages whose payloads stay raw, the framings they travel in, and an MCP
//! client and server over stdio and HTTP.
//!
//! Nothing here knows what mcpproxy is. Payloads (`params`, `result`, `error.data`) are
//! [`serde_json::value::RawValue`]s from the moment they are read until they are written again, so
//! unknown fields, number formats and key order survive the trip.
//!
//! | module | what |
//! |---|---|
//! | [`message`], [`id`], [`error`] | the JSON-RPC envelope |
//! | [`json`], [`members`], [`check_object`] | JSON objects without building them, and what is ambiguous in them |
//! | [`version`], [`log_level`] | protocol revisions and their eras, severities |
//! | [`modern`] | the names and the header encoding of the modern era |
//! | [`lines`] | newline framing with a cap, for stdio |
//! | [`sse`] | server-sent events, both directions |
//! | [`client`] | the side that calls, in either era: stdio, streamable HTTP, HTTP with SSE |
//! | [`server`] | the side that answers: stdio and streamable HTTP |

pub mod client;
mod client_message;
mod coarse_timer;
pub mod error;
pub mod id;
pub mod json;
pub mod lines;
mod lock;
pub mod log_level;
pub mod members;
pub mod message;
pub mod modern;
mod salvage;
pub mod server;
pub mod sse;
mod strict_json;
pub mod version;

pub use client_message::{MemberFault, ParamsFault};
pub use error::{ErrorObject, codes};
pub use id::{ProgressToken, RequestId};
pub use json::Json;
pub use log_level::LogLevel;
pub use members::Members;
pub use message::{Inbound, Message, Notification, ParseError, Request, Response};
pub use salvage::asked_call;
pub use serde_json::value::RawValue;
pub use strict_json::{DEPTH_LIMIT, check_object, check_valid_object};
pub use version::ProtocolVersion;
