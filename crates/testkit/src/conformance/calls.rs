//! What calls do: each tool does what the scenario of its name looks at.

use std::time::Duration;

use mcp::server::RequestContext;
use mcp::{ErrorObject, Notification};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::answers::{Answer, IMAGE, raw, said, text};
use super::asking::{asking, elicit, form, sample};
use super::schemas::{with_choices, with_defaults};

/// Longer than any server waits before it answers by a stream, which is then cut.
const UNTIL_CUT: Duration = Duration::from_secs(2);

pub(super) async fn call(params: &Value, context: &RequestContext) -> Answer {
    let name = params["name"].as_str().unwrap_or_default();
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default();
    match name {
        "test_error_handling" => Ok(json!({
            "isError": true,
            "content": [text("This tool intentionally returns an error for testing")],
        })),
        "test_tool_with_progress" => progress(params, context).await,
        "test_tool_with_logging" | "test_logging_tool" => logging(context).await,
        "test_trigger_tool_change" => changed("tools", context).await,
        "test_trigger_prompt_change" => changed("prompts", context).await,
        "test_sampling" => {
            let answer = sample(context, "sampling", argument("prompt")).await?;
            Ok(said(&format!(
                "LLM response: {}",
                answer["content"]["text"]
            )))
        }
        "test_elicitation" => {
            let properties = json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            });
            let required = ["username", "email"];
            let message = argument("message");
            let answer = elicit(context, "answer", message, &properties, &required).await?;
            Ok(said(&format!("User response: {answer}")))
        }
        "test_elicitation_sep1034_defaults" => form(context, &with_defaults()).await,
        "test_elicitation_sep1330_enums" => form(context, &with_choices()).await,
        "test_streaming_elicitation" => form(context, &json!({"name": {"type": "string"}})).await,
        "test_reconnection" => {
            sleep(UNTIL_CUT).await;
            Ok(said("Reconnected"))
        }
        "greet" => Ok(said(&format!("Hello, {}!", argument("name")))),
        "test_missing_capability" => {
            sample(context, "sampling", "Anything").await?;
            Ok(said("The client can sample"))
        }
        _ if name.starts_with("test_input_required_result_") => asking(name, context).await,
        _ => contents(name),
    }
}

fn contents(name: &str) -> Answer {
    let image = || json!({"type": "image", "data": IMAGE, "mimeType": "image/png"});
    let resource = |uri: &str, kind: &str, content: &str| {
        let resource = json!({"uri": uri, "mimeType": kind, "text": content});
        json!({"type": "resource", "resource": resource})
    };
    let content = match name {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![image()],
        "test_audio_content" => {
            vec![json!({"type": "audio", "data": "UklGRgAAAABXQVZF", "mimeType": "audio/wav"})]
        }
        "test_embedded_resource" => vec![resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )],
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            image(),
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ],
        "test_x_mcp_header" | "json_schema_2020_12_tool" => vec![text("Called")],
        other => {
            return Err(ErrorObject::invalid_params(format!(
                "Unknown tool: {other}"
            )));
        }
    };
    Ok(json!({ "content": content }))
}

async fn progress(params: &Value, context: &RequestContext) -> Answer {
    let token = &params["_meta"]["progressToken"];
    for progress in [0, 50, 100] {
        if !token.is_null() {
            let report = json!({"progressToken": token, "progress": progress, "total": 100});
            tell(context, "notifications/progress", &report).await;
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(said("Done"))
}

async fn logging(context: &RequestContext) -> Answer {
    for step in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        let message = json!({"level": "info", "data": step});
        tell(context, "notifications/message", &message).await;
        sleep(Duration::from_millis(50)).await;
    }
    Ok(said("Logged"))
}

async fn changed(what: &str, context: &RequestContext) -> Answer {
    let method = format!("notifications/{what}/list_changed");
    tell(context, &method, &json!({})).await;
    Ok(said("Said so"))
}

async fn tell(context: &RequestContext, method: &str, params: &Value) {
    let notification = Notification::new(method, raw(params).ok());
    // A client that is gone need not be told.
    let _ = context.outbound.notify(notification).await;
}
