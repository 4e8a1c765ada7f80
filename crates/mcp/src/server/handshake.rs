//! The `initialize` handshake, the same on every transport.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::service::{ClientIdentity, InitializeResult};
use crate::id::encode_string;
use crate::{ErrorObject, ProtocolVersion};

/// What the client asked for and said about itself.
#[derive(Debug)]
pub(super) struct Hello {
    pub(super) protocol: ProtocolVersion,
    pub(super) client: ClientIdentity,
}

/// Every field is read by itself, so that one that is off does not cost the others.
#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "protocolVersion")]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow, rename = "clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ClientInfo<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    version: Option<Cow<'a, str>>,
}

// === impl Hello ===

impl Hello {
    /// Reads the params of `initialize`, of which at most `limit` bytes may have to be kept.
    pub(super) fn parse(params: Option<&RawValue>, limit: usize) -> Result<Self, ErrorObject> {
        let params = params.ok_or_else(|| {
            ErrorObject::invalid_params(
                "initialize needs params: protocolVersion, capabilities and clientInfo",
            )
        })?;
        let params: Params<'_> = serde_json::from_str(params.get()).map_err(|error| {
            ErrorObject::invalid_params(format!("initialize params must be an object: {error}"))
        })?;
        check_kept(params.capabilities, params.client_info, limit)?;
        let requested: Option<Cow<'_, str>> = read(params.protocol_version);
        let info: Option<ClientInfo<'_>> = read(params.client_info);
        let (name, version) = info.map_or((None, None), |info| (info.name, info.version));
        Ok(Self {
            protocol: ProtocolVersion::negotiate(requested.as_deref().unwrap_or_default()),
            client: ClientIdentity::new(
                name.as_deref(),
                version.as_deref(),
                params
                    .capabilities
                    .filter(|raw| raw.get().starts_with('{'))
                    .map_or_else(empty_object, ToOwned::to_owned),
            ),
        })
    }
}

/// Refuses what would be too large to keep for as long as a session or a call lasts.
pub(super) fn check_kept(
    capabilities: Option<&RawValue>,
    client_info: Option<&RawValue>,
    limit: usize,
) -> Result<(), ErrorObject> {
    let size = |raw: Option<&RawValue>| raw.map_or(0, |raw| raw.get().len());
    let bytes = size(capabilities) + size(client_info);
    if bytes <= limit {
        return Ok(());
    }
    Err(ErrorObject::invalid_params(format!(
        "Invalid params: the client's capabilities and info have {bytes} bytes, but at most {limit} \
         are accepted; declare less"
    )))
}

fn read<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// The `result` of `ping`, and what stands for capabilities that were not given.
pub(super) fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

// === impl InitializeResult ===

impl InitializeResult {
    /// What `initialize` is answered with.
    pub(super) fn encode(&self, protocol: ProtocolVersion) -> Result<Box<RawValue>, ErrorObject> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"protocolVersion\":");
        encode_string(protocol.as_str(), &mut out);
        out.extend_from_slice(b",\"capabilities\":");
        out.extend_from_slice(self.capabilities.get().as_bytes());
        out.extend_from_slice(b",\"serverInfo\":");
        out.extend_from_slice(self.server_info.get().as_bytes());
        self.finish(out)
    }

    /// What `server/discover` is answered with; who the server is goes into every result's `_meta`.
    pub(super) fn encode_discovery(&self) -> Result<Box<RawValue>, ErrorObject> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"supportedVersions\":[");
        encode_string(ProtocolVersion::MODERN.as_str(), &mut out);
        for version in ProtocolVersion::LEGACY.iter().rev() {
            out.push(b',');
            encode_string(version.as_str(), &mut out);
        }
        out.extend_from_slice(b"],\"capabilities\":");
        out.extend_from_slice(self.capabilities.get().as_bytes());
        self.finish(out)
    }

    fn finish(&self, mut out: Vec<u8>) -> Result<Box<RawValue>, ErrorObject> {
        if let Some(instructions) = &self.instructions {
            out.extend_from_slice(b",\"instructions\":");
            encode_string(instructions, &mut out);
        }
        out.push(b'}');
        serde_json::from_slice(&out).map_err(|error| ErrorObject::internal(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(params: &str) -> Hello {
        let raw: &RawValue = serde_json::from_str(params).unwrap();
        Hello::parse(Some(raw), 1_000).unwrap()
    }

    #[test]
    fn a_complete_hello_is_read_whole() {
        let hello = hello(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{"x":1.0}},
                "clientInfo":{"name":"c","version":"2","title":"C"}}"#,
        );
        assert_eq!(hello.protocol, ProtocolVersion::V2025_06_18);
        assert_eq!(hello.client.name, "c");
        assert_eq!(hello.client.version, "2");
        assert_eq!(hello.client.capabilities.get(), r#"{"roots":{"x":1.0}}"#);
    }

    #[test]
    fn one_bad_field_does_not_cost_the_others() {
        let hello = hello(r#"{"protocolVersion":7,"capabilities":[],"clientInfo":{"name":"c"}}"#);
        assert_eq!(hello.protocol, ProtocolVersion::LATEST_LEGACY);
        assert_eq!(hello.client.name, "c");
        assert_eq!(hello.client.capabilities.get(), "{}");
    }

    #[test]
    fn what_would_be_kept_is_bounded() {
        let hello = |bytes: usize| {
            let params = format!(r#"{{"capabilities":{{"x":"{}"}}}}"#, "x".repeat(bytes));
            Hello::parse(Some(serde_json::from_str(&params).unwrap()), 1_000)
        };
        assert!(hello(900).is_ok());
        let error = hello(1_000).unwrap_err();
        assert!(error.message.contains("1008 bytes"), "{error}");
        assert!(error.message.contains("at most 1000"), "{error}");
    }

    #[test]
    fn long_names_are_cut() {
        let hello = hello(&format!(
            r#"{{"clientInfo":{{"name":"{}"}}}}"#,
            "ä".repeat(400)
        ));
        assert_eq!(hello.client.name, "ä".repeat(256));
    }

    #[test]
    fn params_that_are_no_object_are_refused() {
        let raw: &RawValue = serde_json::from_str("[]").unwrap();
        assert!(Hello::parse(Some(raw), 1_000).is_err());
        assert!(Hello::parse(None, 1_000).is_err());
    }

    #[test]
    fn the_answer_carries_the_version_and_the_payloads_as_they_are() {
        let result = InitializeResult {
            capabilities: serde_json::from_str(r#"{"tools":{}}"#).unwrap(),
            server_info: serde_json::from_str(r#"{"name":"s","version":"1"}"#).unwrap(),
            instructions: Some("say \"hi\"".to_owned()),
        };
        assert_eq!(
            result.encode(ProtocolVersion::V2024_11_05).unwrap().get(),
            r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"say \"hi\""}"#
        );
    }
}
