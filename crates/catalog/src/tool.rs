//! A tool's definition, kept exactly as its upstream announced it.
//!
//! Only what the proxy itself needs is read out of it. The definition that clients see is the raw
//! text, so members that nobody here has heard of survive.

use policy::{Annotations, ServerName, ToolId, ToolName, ToolNameError};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Bytes of an input schema unless the config says otherwise.
const DEFAULT_SCHEMA_BYTES: usize = 256 * 1024;

/// What a definition may have besides its input schema: description, output schema and whatever
/// else it carries.
const MAX_OTHER_BYTES: usize = 768 * 1024;

/// One tool of one upstream.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    pub id: ToolId,
    /// The whole definition, byte for byte.
    pub raw: Box<RawValue>,
    /// The display name: the tool's own, or else the one in its annotations.
    pub title: Option<String>,
    /// Empty when the upstream gave none.
    pub description: String,
    pub input_schema: Option<Box<RawValue>>,
    pub output_schema: Option<Box<RawValue>>,
    /// What the annotations say, as far as it makes sense; none when there are none.
    pub annotations: Option<Annotations>,
    /// The annotations, byte for byte.
    pub raw_annotations: Option<Box<RawValue>>,
}

/// Why a definition is not usable. The upstream's other tools are.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("the tool definition is not an object with a name")]
    Malformed(#[source] serde_json::Error),
    #[error("the tool cannot be called by its name")]
    Name(#[from] ToolNameError),
    #[error(
        "the input schema of tool {name:?} has {bytes} bytes, more than limits.schema_bytes ({limit})"
    )]
    SchemaTooLarge {
        name: ToolName,
        bytes: usize,
        limit: usize,
    },
    #[error("the tool definition has {bytes} bytes, more than {limit}")]
    DefinitionTooLarge { bytes: usize, limit: usize },
}

/// The members that are read. All but the name are raw, because a wrong type in one of them is no
/// reason to lose the tool.
#[derive(Deserialize)]
struct Members<'a> {
    name: String,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
}

impl ToolDefinition {
    /// Reads one element of an upstream's `tools/list`, with the default limit of its schema.
    pub fn parse(server: &ServerName, raw: Box<RawValue>) -> Result<Self, ToolError> {
        Self::parse_within(server, raw, DEFAULT_SCHEMA_BYTES)
    }

    /// The same with an input schema of at most `schema_bytes`. A larger one would fill any
    /// agent's context on its own.
    pub fn parse_within(
        server: &ServerName,
        raw: Box<RawValue>,
        schema_bytes: usize,
    ) -> Result<Self, ToolError> {
        let (bytes, limit) = (
            raw.get().len(),
            schema_bytes.saturating_add(MAX_OTHER_BYTES),
        );
        if bytes > limit {
            return Err(ToolError::DefinitionTooLarge { bytes, limit });
        }
        let members: Members<'_> = serde_json::from_str(raw.get()).map_err(ToolError::Malformed)?;
        let name: ToolName = members.name.parse()?;
        let bytes = members.input_schema.map_or(0, |schema| schema.get().len());
        if bytes > schema_bytes {
            return Err(ToolError::SchemaTooLarge {
                name,
                bytes,
                limit: schema_bytes,
            });
        }
        let annotations = members.annotations.map(Annotations::from_raw);
        let title_in_annotations = || annotations.as_ref().and_then(|hints| hints.title.clone());
        Ok(Self {
            id: ToolId::new(server.clone(), name),
            title: string(members.title).or_else(title_in_annotations),
            description: string(members.description).unwrap_or_default(),
            input_schema: members.input_schema.map(RawValue::to_owned),
            output_schema: members.output_schema.map(RawValue::to_owned),
            raw_annotations: members.annotations.map(RawValue::to_owned),
            annotations,
            raw,
        })
    }

    /// The input schema on one line; see [`crate::signature()`].
    pub fn signature(&self) -> String {
        crate::signature(self.input_schema.as_deref())
    }
}

fn string(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ToolDefinition, ToolError> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        ToolDefinition::parse(&"notes".parse().unwrap(), raw)
    }

    #[test]
    fn the_definition_survives_byte_for_byte() {
        let json = r#"{"x-new": 1.0, "name":"get", "inputSchema":{"type":"object", "z":1e2},
            "annotations": {"readOnlyHint": true,"x":[ ]}}"#;
        let tool = parse(json).unwrap();
        assert_eq!(tool.raw.get(), json);
        assert_eq!(tool.id.as_str(), "notes:get");
        assert_eq!(
            tool.input_schema.unwrap().get(),
            r#"{"type":"object", "z":1e2}"#
        );
        assert_eq!(
            tool.raw_annotations.unwrap().get(),
            r#"{"readOnlyHint": true,"x":[ ]}"#
        );
        assert_eq!(tool.annotations.unwrap().read_only_hint, Some(true));
    }

    #[test]
    fn only_the_name_is_indispensable() {
        let tool = parse(r#"{"name":"get","description":null,"title":7}"#).unwrap();
        assert_eq!((tool.description.as_str(), tool.title), ("", None));
        assert!(tool.annotations.is_none());
        assert!(matches!(parse("{}"), Err(ToolError::Malformed(_))));
        assert!(matches!(parse("[1]"), Err(ToolError::Malformed(_))));
        assert!(matches!(parse(r#"{"name":""}"#), Err(ToolError::Name(_))));
    }

    #[test]
    fn a_member_given_twice_is_refused() {
        let twice = parse(r#"{"name":"get","name":"purge"}"#);
        assert!(matches!(twice, Err(ToolError::Malformed(_))));
    }

    #[test]
    fn the_title_may_stand_in_the_annotations() {
        let own = r#"{"name":"get","title":"Own","annotations":{"title":"Other"}}"#;
        let other = r#"{"name":"get","annotations":{"title":"Other"}}"#;
        assert_eq!(parse(own).unwrap().title.unwrap(), "Own");
        assert_eq!(parse(other).unwrap().title.unwrap(), "Other");
    }

    #[test]
    fn oversized_definitions_are_refused() {
        let schema = format!(r#"{{"x":"{}"}}"#, "y".repeat(256 * 1024));
        let json = format!(r#"{{"name":"get","inputSchema":{schema}}}"#);
        let tool = parse(&json);
        assert!(matches!(tool, Err(ToolError::SchemaTooLarge { .. })));
        let parse_within = |limit| {
            let raw = RawValue::from_string(json.clone()).unwrap();
            ToolDefinition::parse_within(&"notes".parse().unwrap(), raw, limit)
        };
        assert!(parse_within(schema.len()).is_ok());
        let error = parse_within(schema.len() - 1).unwrap_err().to_string();
        assert!(error.contains("limits.schema_bytes"), "{error}");
        let description = "y".repeat(1024 * 1024);
        let tool = parse(&format!(
            r#"{{"name":"get","description":"{description}"}}"#
        ));
        assert!(matches!(tool, Err(ToolError::DefinitionTooLarge { .. })));
    }

    #[test]
    fn deep_nesting_is_carried_not_followed() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let json = format!(r#"{{"name":"get","inputSchema":{deep},"annotations":{deep}}}"#);
        let tool = parse(&json).unwrap();
        assert_eq!(tool.signature(), "()");
        assert_eq!(tool.raw.get(), json);
    }
}
