//! What both sides of the modern era (2026-07-28) have to agree on: the names of `_meta` members
//! and headers, and how values travel in headers.

mod header_value;
mod parameters;
mod subscription_filter;

use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::members::Members;
use crate::{ProtocolVersion, Request};

pub use header_value::{BadEncoding, decode_header_value, encode_header_value};
pub use parameters::{InvalidAnnotation, ParameterHeaders, ParameterMismatch};
pub(crate) use subscription_filter::SubscriptionFilter;

/// The members that the protocol itself puts into `_meta`.
pub mod meta {
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

/// The headers that repeat parts of the body for intermediaries that route without reading it.
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

/// Whether a request is of this era. The methods that only this era has count without a version:
/// their sender has to be told what is missing.
pub fn is_modern(request: &Request) -> bool {
    matches!(request.method.as_str(), methods::DISCOVER | methods::LISTEN)
        || named_version(request.params.as_deref()).is_some()
}

/// The version that params name in their `_meta`, as it is written there. Params of the legacy era
/// never name one.
pub fn named_version(params: Option<&RawValue>) -> Option<Box<RawValue>> {
    let params = params?;
    // Nearly all params of the legacy era end their way here, unparsed.
    memchr::memmem::find(params.get().as_bytes(), meta::PROTOCOL_VERSION.as_bytes())?;
    let params = Members::parse(params).ok()?;
    let meta = Members::parse(params.get("_meta")?).ok()?;
    meta.get(meta::PROTOCOL_VERSION).map(ToOwned::to_owned)
}

/// The headers of a message over HTTP that repeat what its body says: version, method and name.
/// A body that names no version is of the newest.
pub fn standard_headers(method: &str, params: Option<&RawValue>) -> HeaderMap {
    let version = named_version(params);
    let version = version.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let name = name_of(method, params);
    let texts = [
        (
            headers::PROTOCOL_VERSION,
            Some(
                version
                    .as_deref()
                    .unwrap_or(ProtocolVersion::MODERN.as_str()),
            ),
        ),
        (headers::METHOD, Some(method)),
        (headers::NAME, name.as_deref()),
    ];
    let mut map = HeaderMap::with_capacity(texts.len());
    for (header, text) in texts {
        // What is encoded always makes a header.
        if let Some(text) = text
            && let Ok(value) = HeaderValue::from_str(&encode_header_value(text))
        {
            map.insert(header, value);
        }
    }
    map
}
