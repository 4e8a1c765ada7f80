//! Which tools there are.

use serde_json::{Value, json};

use super::schemas;

const TOOLS: &[(&str, &str)] = &[
    ("test_simple_text", "Returns text"),
    ("test_image_content", "Returns an image"),
    ("test_audio_content", "Returns audio"),
    ("test_embedded_resource", "Returns a resource"),
    (
        "test_multiple_content_types",
        "Returns text, an image and a resource",
    ),
    ("test_error_handling", "Fails"),
    ("test_tool_with_progress", "Reports progress"),
    ("test_tool_with_logging", "Logs"),
    ("test_logging_tool", "Logs, too"),
    ("test_sampling", "Asks for a completion"),
    ("test_elicitation", "Asks the user"),
    ("test_elicitation_sep1034_defaults", "Asks with defaults"),
    ("test_elicitation_sep1330_enums", "Asks with choices"),
    (
        "test_streaming_elicitation",
        "Asks the user while it reports progress",
    ),
    ("test_missing_capability", "Needs sampling"),
    ("test_trigger_tool_change", "Says that the tools changed"),
    (
        "test_trigger_prompt_change",
        "Says that the prompts changed",
    ),
    (
        "test_x_mcp_header",
        "Wants an argument repeated as a header",
    ),
    (
        "json_schema_2020_12_tool",
        "Tool with JSON Schema 2020-12 features",
    ),
    (
        "test_input_required_result_elicitation",
        "Asks the user for a name",
    ),
    (
        "test_input_required_result_sampling",
        "Asks for a completion",
    ),
    ("test_input_required_result_list_roots", "Asks for roots"),
    (
        "test_input_required_result_request_state",
        "Asks for a confirmation",
    ),
    (
        "test_input_required_result_multiple_inputs",
        "Asks three things at once",
    ),
    (
        "test_input_required_result_multi_round",
        "Asks one thing after another",
    ),
    (
        "test_input_required_result_tampered_state",
        "Asks for a confirmation",
    ),
    (
        "test_input_required_result_capabilities",
        "Asks what the client can answer",
    ),
    ("test_reconnection", "Loses its stream before it answers"),
    ("greet", "Says hello"),
    ("slow_compute", "Takes the seconds it is told"),
    ("failing_job", "Fails as a task"),
    ("protocol_error_job", "Breaks as a task"),
    ("confirm_delete", "Asks for a confirmation as a task"),
    ("multi_input", "Asks two things at once as a task"),
    (
        "test_tool_with_task",
        "Asks for a name, then becomes a task",
    ),
];

/// The tools that become tasks for clients that know what that is.
const TASK_TOOLS: &[&str] = &[
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

pub(super) fn list() -> Value {
    let tools: Vec<_> = TOOLS
        .iter()
        .map(|(name, description)| {
            json!({"name": name, "description": description, "inputSchema": schemas::input(name)})
        })
        .collect();
    json!({ "tools": tools })
}

pub(super) fn makes_task(params: &Value) -> bool {
    params["name"]
        .as_str()
        .is_some_and(|name| TASK_TOOLS.contains(&name))
}
