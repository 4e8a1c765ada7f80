//! The JSON-RPC error object and the codes that MCP gives a meaning.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::id::encode_string;

/// Error codes of JSON-RPC and MCP.
pub mod codes {
    pub const PARSE_ERROR: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL_ERROR: i64 = -32603;
    /// A resource that does not exist, up to 2025-11-25.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// The connection or session is gone; implementation-defined range.
    pub const CONNECTION_CLOSED: i64 = -32000;
    /// A header says something else than the body it came with; modern era.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request cannot be served without a capability that its client did not declare.
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// `data.supported` names the versions that would do.
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
}

/// What a JSON-RPC response carries instead of a result.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub fn method_not_found(method: &str) -> Self {
        Self::new(
            codes::METHOD_NOT_FOUND,
            format!("Method not found: {method}"),
        )
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(codes::INVALID_PARAMS, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(codes::INTERNAL_ERROR, message)
    }

    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"code\":");
        out.extend_from_slice(self.code.to_string().as_bytes());
        out.extend_from_slice(b",\"message\":");
        encode_string(&self.message, out);
        if let Some(data) = &self.data {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.get().as_bytes());
        }
        out.push(b'}');
    }
}
