//! What both sides of the modern era (2026-07-28) have to agree on: the names of `_meta` members
//! and headers, and how values travel in headers.

mod header_value;
mod parameters;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use header_value::{BadEncoding, decode_header_value, encode_header_value};
pub use parameters::{InvalidAnnotation, ParameterHeaders, ParameterMismatch};

/// The members that the protocol itself puts into `_meta`.
pub mod meta {
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

/// The headers that repeat parts of the body for whoever routes without reading it.
pub mod headers {
    use http::HeaderName;

    pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
    pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
    pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
    /// Followed by the name that a tool's schema gives a parameter.
    pub const PARAM_PREFIX: &str = "mcp-param-";
}

/// Methods that only this era has.
pub mod methods {
    pub const DISCOVER: &str = "server/discover";
    pub const LISTEN: &str = "subscriptions/listen";
    pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
}

/// The values of `resultType`.
pub mod result_type {
    pub const COMPLETE: &str = "complete";
    pub const INPUT_REQUIRED: &str = "input_required";
}

/// The member of `params` that the `Mcp-Name` header repeats, for the methods that have one.
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// What the `Mcp-Name` header of a request has to say, before it is encoded.
pub fn name_of(method: &str, params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Names<'a> {
        #[serde(borrow)]
        name: Option<&'a RawValue>,
        #[serde(borrow)]
        uri: Option<&'a RawValue>,
        #[serde(borrow, rename = "taskId")]
        task_id: Option<&'a RawValue>,
    }

    let member = name_member(method)?;
    let names: Names<'_> = serde_json::from_str(params?.get()).ok()?;
    let raw = match member {
        "name" => names.name,
        "uri" => names.uri,
        _ => names.task_id,
    };
    serde_json::from_str(raw?.get()).ok()
}
