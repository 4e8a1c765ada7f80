//! What a server said about itself, in its answer to `initialize` or to `server/discover`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ConnectError;
use super::era::Refused;
use crate::ProtocolVersion;
use crate::message::empty_object;
use crate::modern::meta;

/// What the server said about itself.
#[derive(Debug, Clone)]
pub struct Handshake {
    /// The version that is spoken.
    pub protocol: ProtocolVersion,
    /// Every version the server says it speaks; a legacy server names only the one it chose.
    pub supported_versions: Vec<String>,
    /// The whole result of `initialize` or `server/discover`, as it was written.
    pub result: Box<RawValue>,
    pub capabilities: Box<RawValue>,
    pub server: ServerInfo,
    pub instructions: Option<String>,
    offers: Offers,
}

/// Who a server says it is. Nothing may depend on it: it is neither unique nor verified.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
    pub title: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult<'a> {
    protocol_version: String,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    server_info: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult<'a> {
    supported_versions: Vec<String>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    server_info: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// The capabilities that decide what is worth asking for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Offers {
    tools: Option<Offer>,
    prompts: Option<Offer>,
    resources: Option<Offer>,
    logging: Option<Offer>,
    completions: Option<Offer>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Offer {
    list_changed: bool,
    subscribe: bool,
}

// === impl Handshake ===

impl Handshake {
    /// Reads the result of `initialize`. Only the protocol version has to be there and make sense:
    /// a server is not turned away for a sloppy word about itself.
    pub(super) fn parse(result: Box<RawValue>) -> Result<Self, ConnectError> {
        let fields: InitializeResult<'_> =
            serde_json::from_str(result.get()).map_err(ConnectError::Handshake)?;
        let protocol = fields.protocol_version.parse().ok();
        // A version without a handshake is no answer to one.
        let Some(protocol) = protocol.filter(|it: &ProtocolVersion| !it.is_modern()) else {
            return Err(ConnectError::UnsupportedVersion {
                version: fields.protocol_version,
            });
        };
        let capabilities = fields
            .capabilities
            .map_or_else(empty_object, ToOwned::to_owned);
        Ok(Self {
            protocol,
            supported_versions: vec![fields.protocol_version],
            offers: serde_json::from_str(capabilities.get()).unwrap_or_default(),
            server: lenient(fields.server_info).unwrap_or_default(),
            instructions: lenient(fields.instructions),
            capabilities,
            result,
        })
    }

    /// Reads the result of `server/discover`.
    pub(super) fn parse_discovery(result: Box<RawValue>) -> Result<Self, Refused> {
        let fields: DiscoverResult<'_> =
            serde_json::from_str(result.get()).map_err(|error| Refused {
                error: ConnectError::Discovery(error),
                // Some servers answer anything with anything.
                legacy: true,
            })?;
        let protocol = ProtocolVersion::MODERN;
        let speaks = |version: &String| version == protocol.as_str();
        if !fields.supported_versions.iter().any(speaks) {
            return Err(Refused::versions(&fields.supported_versions));
        }
        let capabilities = fields
            .capabilities
            .map_or_else(empty_object, ToOwned::to_owned);
        let server = server_info_in(fields.meta).or_else(|| lenient(fields.server_info));
        Ok(Self {
            protocol,
            supported_versions: fields.supported_versions,
            offers: serde_json::from_str(capabilities.get()).unwrap_or_default(),
            server: server.unwrap_or_default(),
            instructions: lenient(fields.instructions),
            capabilities,
            result,
        })
    }

    pub fn offers_tools(&self) -> bool {
        self.offers.tools.is_some()
    }

    pub fn offers_prompts(&self) -> bool {
        self.offers.prompts.is_some()
    }

    pub fn offers_resources(&self) -> bool {
        self.offers.resources.is_some()
    }

    pub fn offers_logging(&self) -> bool {
        self.offers.logging.is_some()
    }

    pub fn announces_tool_changes(&self) -> bool {
        self.offers.tools.as_ref().is_some_and(|it| it.list_changed)
    }

    pub fn announces_prompt_changes(&self) -> bool {
        self.offers
            .prompts
            .as_ref()
            .is_some_and(|it| it.list_changed)
    }

    pub fn announces_resource_changes(&self) -> bool {
        self.offers
            .resources
            .as_ref()
            .is_some_and(|it| it.list_changed)
    }
}

fn server_info_in(meta: Option<&RawValue>) -> Option<ServerInfo> {
    let members = crate::Members::parse(meta?).ok()?;
    lenient(members.get(meta::SERVER_INFO))
}

fn lenient<'de, T: Deserialize<'de>>(raw: Option<&'de RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Handshake, ConnectError> {
        Handshake::parse(RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn a_full_answer_is_read() {
        let handshake = parse(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},
            "resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"n","version":"1"},
            "instructions":"read me"}"#,
        )
        .unwrap();
        assert_eq!(handshake.protocol, ProtocolVersion::V2025_06_18);
        assert_eq!(handshake.server.name, "n");
        assert_eq!(handshake.instructions.as_deref(), Some("read me"));
        assert!(handshake.offers_tools() && handshake.announces_tool_changes());
        assert!(!handshake.announces_resource_changes());
        assert!(handshake.offers_logging());
        assert!(!handshake.offers_prompts());
    }

    #[test]
    fn a_sloppy_answer_is_enough() {
        let handshake = parse(
            r#"{"protocolVersion":"2024-11-05","capabilities":null,"serverInfo":7,"instructions":[]}"#,
        )
        .unwrap();
        assert_eq!(handshake.server, ServerInfo::default());
        assert_eq!(handshake.capabilities.get(), "{}");
        assert!(!handshake.offers_tools());
    }

    #[test]
    fn an_unknown_version_is_named() {
        let error = parse(r#"{"protocolVersion":"1999-01-01"}"#).unwrap_err();
        assert!(
            matches!(error, ConnectError::UnsupportedVersion { version } if version == "1999-01-01")
        );
    }

    fn discover(text: &str) -> Result<Handshake, Refused> {
        Handshake::parse_discovery(RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn a_modern_server_says_who_it_is_in_either_place() {
        for text in [
            r#"{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"prompts":{}},
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}"#,
            r#"{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"prompts":{}},
            "serverInfo":{"name":"n","version":"1"}}"#,
        ] {
            let handshake = discover(text).unwrap();
            assert_eq!(handshake.protocol, ProtocolVersion::MODERN);
            assert_eq!(handshake.supported_versions, ["2026-07-28", "2025-11-25"]);
            assert_eq!(handshake.server.name, "n");
            assert!(handshake.offers_prompts() && !handshake.offers_tools());
        }
    }

    #[test]
    fn the_versions_of_one_era_do_not_do_in_the_other() {
        let refused = discover(r#"{"supportedVersions":["2025-11-25","2099-01-01"]}"#).unwrap_err();
        assert!(refused.legacy);
        assert!(
            matches!(refused.error, ConnectError::UnsupportedVersion { version } if version == "2025-11-25, 2099-01-01")
        );
        assert!(
            !discover(r#"{"supportedVersions":["2099-01-01"]}"#)
                .unwrap_err()
                .legacy
        );
        let error = parse(r#"{"protocolVersion":"2026-07-28"}"#).unwrap_err();
        assert!(matches!(error, ConnectError::UnsupportedVersion { .. }));
        let refused = discover("{}").unwrap_err();
        assert!(matches!(refused.error, ConnectError::Discovery(_)) && refused.legacy);
    }
}
