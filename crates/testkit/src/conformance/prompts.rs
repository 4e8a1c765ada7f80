//! What can be prompted with.

use mcp::ErrorObject;
use mcp::server::RequestContext;
use serde_json::{Value, json};

use super::answers::{Answer, IMAGE, text};
use super::asking::elicit;

pub(super) fn list() -> Value {
    json!({"prompts": [
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]})
}

pub(super) async fn get(params: &Value, context: &RequestContext) -> Answer {
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default();
    let contents = match params["name"].as_str().unwrap_or_default() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            vec![text(&format!(
                "Prompt with arguments: arg1='{one}', arg2='{two}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            vec![
                json!({"type": "resource", "resource": resource}),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            json!({"type": "image", "data": IMAGE, "mimeType": "image/png"}),
            text("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            let question = "What context should the prompt use?";
            let properties = json!({"context": {"type": "string"}});
            let given =
                elicit(context, "user_context", question, &properties, &["context"]).await?;
            vec![text(&format!("With context: {}", given["content"]))]
        }
        other => {
            let message = format!("Unknown prompt: {other}");
            return Err(ErrorObject::invalid_params(message));
        }
    };
    let messages: Vec<_> = contents
        .into_iter()
        .map(|content| json!({"role": "user", "content": content}))
        .collect();
    Ok(json!({ "messages": messages }))
}

fn prompt(name: &str, arguments: &[&str]) -> Value {
    let arguments: Vec<_> = arguments
        .iter()
        .map(|name| json!({"name": name, "description": name, "required": true}))
        .collect();
    json!({"name": name, "description": name, "arguments": arguments})
}
