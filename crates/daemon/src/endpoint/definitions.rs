//! The six tools as they are announced. The list is the same for every connection.

use mcp::RawValue;
use policy::{DataSensitivity, IntentDeclaration, IntentMode, OperationType, ToolVariant};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

pub(super) const RETRIEVE_TOOLS: &str = "retrieve_tools";
pub(super) const DESCRIBE_TOOL: &str = "describe_tool";
pub(super) const READ_CACHE: &str = "read_cache";

/// The most characters of a result that Claude Code can be asked to show. What an agent gets at once
/// is bounded by `tool_response_limit`.
const MAX_RESULT_SIZE: usize = 500_000;

/// The answer to `tools/list`. Only the spelling of the intent depends on the config.
pub(super) fn tools_list(mode: IntentMode) -> Result<Box<RawValue>, serde_json::Error> {
    let lanes = ToolVariant::ALL.map(|variant| call_tool(variant, mode));
    let [read, write, destructive] = lanes;
    to_raw_value(&json!({
        "tools": [retrieve_tools(), describe_tool(), read, write, destructive, read_cache()]
    }))
}

fn retrieve_tools() -> Value {
    tool(
        RETRIEVE_TOOLS,
        "Find tools",
        "Search the tools of all upstream servers by what they do. Start here. Each hit carries its \
         annotations and call_with, the variant to run it with: call_tool_read, call_tool_write or \
         call_tool_destructive.",
        &json!({
            "query": {"type": "string", "description": "What the tool should do, in plain words"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
            "server": {"type": "string", "description": "Only tools of this server"},
            "lane": {
                "type": "string",
                "enum": OperationType::ALL.map(OperationType::as_str),
                "description": "Only tools of this lane"
            },
            "detail": {
                "type": "string",
                "enum": ["auto", "full", "compact"],
                "default": "auto",
                "description": "auto: schemas for the best hits, signatures for the rest"
            }
        }),
        &["query"],
        &own_tool_annotations(),
    )
}

fn describe_tool() -> Value {
    tool(
        DESCRIBE_TOOL,
        "Describe tools",
        "Full definitions of tools found with retrieve_tools, with the variant each is called with \
         and why.",
        &json!({
            "names": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": 50,
                "description": "Names in the form server:tool"
            }
        }),
        &["names"],
        &own_tool_annotations(),
    )
}

fn read_cache() -> Value {
    tool(
        READ_CACHE,
        "Read a long result",
        "Read on in a result that was too long to be shown whole. The key is in the notice at the \
         start of the cut result. Each page says how to read the next one.",
        &json!({
            "key": {"type": "string"},
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "First character"},
            "limit": {"type": "integer", "minimum": 1, "description": "Number of characters"}
        }),
        &["key"],
        &own_tool_annotations(),
    )
}

fn call_tool(variant: ToolVariant, mode: IntentMode) -> Value {
    let (title, purpose, rule) = match variant {
        ToolVariant::Read => (
            "Read via mcpproxy",
            "Run a tool that only reads. Use it for tools whose call_with says call_tool_read.",
            "Refused if the tool is known to change or delete anything.",
        ),
        ToolVariant::Write => (
            "Write via mcpproxy",
            "Run a tool that creates or changes something. Use it for tools whose call_with says \
             call_tool_write.",
            "Refused if the tool is known to be destructive.",
        ),
        ToolVariant::Destructive => (
            "Destroy via mcpproxy",
            "Run a tool that deletes or cannot be undone. Use it for tools whose call_with says \
             call_tool_destructive.",
            "Allowed for every tool.",
        ),
    };
    let operation = variant.operation_type().as_str();
    let mut properties = json!({
        "name": {"type": "string", "description": "server:tool, as retrieve_tools gives it"},
        "args": {"type": "object", "description": "The tool's arguments"},
        "args_json": {"type": "string", "description": "The arguments as JSON text, instead of args"}
    });
    let sensitivities = DataSensitivity::ALL.map(DataSensitivity::as_str);
    let reason_length = IntentDeclaration::MAX_REASON_LENGTH;
    let (declaration, required): (&str, &[&str]) = match mode {
        IntentMode::TwoKey => {
            properties["intent"] = json!({
                "type": "object",
                "properties": {
                    "operation_type": {"type": "string", "enum": [operation]},
                    "data_sensitivity": {"type": "string", "enum": sensitivities},
                    "reason": {"type": "string", "maxLength": reason_length}
                },
                "required": ["operation_type"]
            });
            (" Requires intent.operation_type", &["name", "intent"])
        }
        IntentMode::Inferred => {
            properties["intent_data_sensitivity"] =
                json!({"type": "string", "enum": sensitivities});
            properties["intent_reason"] = json!({"type": "string", "maxLength": reason_length});
            (" Implies the operation type", &["name"])
        }
    };
    let description = format!("{purpose}{declaration} '{operation}'. {rule}");
    let read_only = variant == ToolVariant::Read;
    let destructive = variant == ToolVariant::Destructive;
    // No openWorldHint: a client that sees it asks a second time, about the result.
    let annotations = json!({"readOnlyHint": read_only, "destructiveHint": destructive});
    tool(
        variant.as_str(),
        title,
        &description,
        &properties,
        required,
        &annotations,
    )
}

fn own_tool_annotations() -> Value {
    json!({
        "readOnlyHint": true,
        "destructiveHint": false,
        "idempotentHint": true,
        "openWorldHint": false
    })
}

fn tool(
    name: &str,
    title: &str,
    description: &str,
    properties: &Value,
    required: &[&str],
    annotations: &Value,
) -> Value {
    json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        },
        "annotations": annotations,
        // Claude Code otherwise hides our tools behind a search of its own, and writes results to a
        // file that are shorter than `tool_response_limit`.
        "_meta": {
            "anthropic/alwaysLoad": true,
            "anthropic/maxResultSizeChars": MAX_RESULT_SIZE
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_into_eight_kilobytes() {
        for mode in [IntentMode::TwoKey, IntentMode::Inferred] {
            let list = tools_list(mode).unwrap();
            assert!(list.get().len() < 8_000, "{} bytes", list.get().len());
        }
    }
}
