//! What tools and forms take.

use serde_json::{Value, json};

/// The input schema of a tool.
pub(super) fn input(tool: &str) -> Value {
    let text = json!({"type": "string"});
    match tool {
        "test_sampling" => json!({
            "type": "object", "properties": {"prompt": text}, "required": ["prompt"],
        }),
        "test_elicitation" => json!({
            "type": "object", "properties": {"message": text}, "required": ["message"],
        }),
        "greet" => json!({
            "type": "object", "properties": {"name": text}, "required": ["name"],
        }),
        "slow_compute" => json!({
            "type": "object",
            "properties": {"seconds": {"type": "number"}, "label": text},
            "required": ["seconds"],
        }),
        "confirm_delete" => json!({
            "type": "object", "properties": {"filename": text}, "required": ["filename"],
        }),
        "test_x_mcp_header" => json!({
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            "required": ["region"],
        }),
        "json_schema_2020_12_tool" => json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": text, "city": text},
            }},
            "properties": {
                "name": text,
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": text,
                "email": text,
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {
                "properties": {"contactMethod": {"const": "phone"}},
                "required": ["contactMethod"],
            },
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        }),
        _ => json!({"type": "object", "properties": {}}),
    }
}

/// The fields of a form, each with a default.
pub(super) fn with_defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
        },
        "verified": {"type": "boolean", "default": true},
    })
}

/// The fields of a form in all the ways to give a choice.
pub(super) fn with_choices() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    })
}
