//! What can be called. Each tool does what the scenario of its name looks at.

use std::time::Duration;

use mcp::server::RequestContext;
use mcp::{ErrorObject, Notification};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::fixture::{Answer, IMAGE, ask, elicit, raw};

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
];

pub(crate) fn list() -> Value {
    let tools: Vec<_> = TOOLS
        .iter()
        .map(|(name, description)| {
            json!({"name": name, "description": description, "inputSchema": input_schema(name)})
        })
        .collect();
    json!({ "tools": tools })
}

pub(crate) fn input_schema(tool: &str) -> Value {
    let text = json!({"type": "string"});
    match tool {
        "test_sampling" => json!({
            "type": "object", "properties": {"prompt": text}, "required": ["prompt"],
        }),
        "test_elicitation" => json!({
            "type": "object", "properties": {"message": text}, "required": ["message"],
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

pub(crate) async fn call(params: &Value, context: &RequestContext) -> Answer {
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

/// The tools that ask the client, once it is a modern one, by an input-required result.
async fn asking(name: &str, context: &RequestContext) -> Answer {
    let person = json!({"name": {"type": "string"}});
    let nothing = json!({});
    let roots = |name| ask(context, name, "roots/list", &nothing);
    match name.trim_start_matches("test_input_required_result_") {
        "elicitation" => {
            let answer = elicit(
                context,
                "user_name",
                "What is your name?",
                &person,
                &["name"],
            )
            .await?;
            Ok(said(&format!("Hello, {}!", answer["content"]["name"])))
        }
        "sampling" => {
            let question = "What is the capital of France?";
            let answer = sample(context, "capital_question", question).await?;
            Ok(said(&answer["content"]["text"].to_string()))
        }
        "list_roots" => Ok(said(&roots("client_roots").await?.to_string())),
        "request_state" | "tampered_state" => {
            let properties = json!({"ok": {"type": "boolean"}});
            elicit(context, "confirm", "Please confirm", &properties, &["ok"]).await?;
            Ok(said("state-ok"))
        }
        "multiple_inputs" => {
            let (user, greeting, roots) = tokio::try_join!(
                elicit(
                    context,
                    "user_name",
                    "What is your name?",
                    &person,
                    &["name"]
                ),
                sample(context, "greeting", "Generate a greeting"),
                roots("client_roots"),
            )?;
            Ok(said(&format!("{user} {greeting} {roots}")))
        }
        "multi_round" => {
            let color = json!({"color": {"type": "string"}});
            let question = "Step 1: What is your name?";
            let one = elicit(context, "step1", question, &person, &["name"]).await?;
            let question = "Step 2: What is your favorite color?";
            let two = elicit(context, "step2", question, &color, &["color"]).await?;
            Ok(said(&format!("{one} {two}")))
        }
        _ => {
            let capabilities = context.connection.client.capabilities.get();
            let capabilities: Value = serde_json::from_str(capabilities).unwrap_or_default();
            if capabilities.get("elicitation").is_some() {
                elicit(
                    context,
                    "user_name",
                    "What is your name?",
                    &person,
                    &["name"],
                )
                .await?;
            }
            if capabilities.get("sampling").is_some() {
                sample(context, "greeting", "Generate a greeting").await?;
            }
            Ok(said("Asked what could be asked"))
        }
    }
}

async fn form(context: &RequestContext, properties: &Value) -> Answer {
    let answer = elicit(context, "form", "Please fill in", properties, &[]).await?;
    let (action, form) = (&answer["action"], &answer["content"]);
    Ok(said(&format!(
        "Elicitation completed: action={action}, content={form}"
    )))
}

async fn sample(context: &RequestContext, name: &str, prompt: &str) -> Answer {
    let message = json!({"role": "user", "content": text(prompt)});
    let params = json!({"messages": [message], "maxTokens": 100});
    ask(context, name, "sampling/createMessage", &params).await
}

async fn tell(context: &RequestContext, method: &str, params: &Value) {
    let notification = Notification::new(method, raw(params).ok());
    // A client that is gone need not be told.
    let _ = context.outbound.notify(notification).await;
}

fn with_defaults() -> Value {
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

fn with_choices() -> Value {
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

fn said(what: &str) -> Value {
    json!({"content": [text(what)]})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
