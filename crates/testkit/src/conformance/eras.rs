//! Servers of one era only: what they say to clients of the other.

use std::str::FromStr;

use mcp::modern::{meta, methods};
use mcp::{ErrorObject, ProtocolVersion, codes};
use serde_json::Value;

/// The eras that a fixture speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eras {
    Both,
    Legacy,
    Modern,
}

impl Eras {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// Why a request is refused: it is of an era that is not spoken here. `version` is the one
    /// that came with it in a header. What is no request needs no answer.
    pub(super) fn refusal(self, message: &Value, version: Option<&str>) -> Option<ErrorObject> {
        if message["id"].is_null() || message["method"].is_null() {
            return None;
        }
        let modern = is_modern(message, version);
        match self {
            Self::Legacy if modern => Some(unknown_to_legacy(message)),
            Self::Modern if !modern => Some(unknown_to_modern(message)),
            _ => None,
        }
    }
}

impl FromStr for Eras {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = [Self::Both, Self::Legacy, Self::Modern].into_iter();
        all.find(|eras| eras.as_str() == text)
            .ok_or_else(|| "expected both, legacy or modern".to_owned())
    }
}

/// Whether a message is of the modern era, by itself or by the version in its header.
pub(super) fn is_modern(message: &Value, version: Option<&str>) -> bool {
    let named = message["params"]["_meta"][meta::PROTOCOL_VERSION].as_str();
    let only_modern = matches!(
        message["method"].as_str(),
        Some(methods::DISCOVER | methods::LISTEN)
    );
    named.is_some() || only_modern || version == Some(ProtocolVersion::MODERN.as_str())
}

/// A server of before has never heard of it.
fn unknown_to_legacy(message: &Value) -> ErrorObject {
    ErrorObject::method_not_found(message["method"].as_str().unwrap_or_default())
}

fn unknown_to_modern(message: &Value) -> ErrorObject {
    match message["method"].as_str().unwrap_or_default() {
        method @ ("initialize" | "ping" | "logging/setLevel") => {
            ErrorObject::method_not_found(method)
        }
        _ => ErrorObject::new(
            codes::INVALID_PARAMS,
            "Invalid params: _meta must name the protocol version",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_era_refuses_the_other() {
        let hello = json!({"id": 1, "method": "initialize", "params": {}});
        let discover = json!({"id": 1, "method": "server/discover", "params": {}});
        let meta = json!({meta::PROTOCOL_VERSION: "2026-07-28"});
        let list = json!({"id": 1, "method": "tools/list", "params": {"_meta": meta}});
        for modern in [&discover, &list] {
            let refused = Eras::Legacy.refusal(modern, None).unwrap();
            assert_eq!(refused.code, codes::METHOD_NOT_FOUND);
            assert!(Eras::Modern.refusal(modern, None).is_none());
        }
        let refused = Eras::Modern.refusal(&hello, None).unwrap();
        assert_eq!(refused.code, codes::METHOD_NOT_FOUND);
        assert!(Eras::Legacy.refusal(&hello, None).is_none());
        for message in [&hello, &discover, &list] {
            assert!(Eras::Both.refusal(message, None).is_none());
        }
    }

    #[test]
    fn a_header_tells_the_era_where_the_body_does_not() {
        let list = json!({"id": 1, "method": "tools/list"});
        assert!(Eras::Legacy.refusal(&list, Some("2026-07-28")).is_some());
        assert!(Eras::Modern.refusal(&list, Some("2026-07-28")).is_none());
        let refused = Eras::Modern.refusal(&list, Some("2025-11-25")).unwrap();
        assert_eq!(refused.code, codes::INVALID_PARAMS);
        let notification = json!({"method": "notifications/cancelled"});
        assert!(Eras::Modern.refusal(&notification, None).is_none());
    }
}
