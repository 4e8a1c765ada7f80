//! What the client is asked while it waits for an answer.

use mcp::server::{OutboundError, RequestContext};
use mcp::{ErrorObject, codes};
use serde_json::{Value, json};

use super::answers::{Answer, raw, said, text};

/// Asks the client, under a name that it sees.
pub(super) async fn ask(
    context: &RequestContext,
    name: &str,
    method: &str,
    params: &Value,
) -> Answer {
    let answer = context
        .outbound
        .request_as(name, method, Some(raw(params)?))
        .await;
    match answer {
        Ok(answer) => serde_json::from_str(answer.get())
            .map_err(|error| ErrorObject::internal(error.to_string())),
        Err(OutboundError::Refused(error)) => Err(error),
        Err(OutboundError::Gone(gone)) => {
            Err(ErrorObject::new(codes::CONNECTION_CLOSED, gone.to_string()))
        }
    }
}

/// Asks for what a form with these properties holds.
pub(super) async fn elicit(
    context: &RequestContext,
    name: &str,
    message: &str,
    properties: &Value,
    required: &[&str],
) -> Answer {
    let params = elicitation(message, properties, required);
    ask(context, name, "elicitation/create", &params).await
}

/// The params of `elicitation/create`.
pub(super) fn elicitation(message: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    json!({"message": message, "requestedSchema": schema})
}

pub(super) async fn form(context: &RequestContext, properties: &Value) -> Answer {
    let answer = elicit(context, "form", "Please fill in", properties, &[]).await?;
    let (action, form) = (&answer["action"], &answer["content"]);
    Ok(said(&format!(
        "Elicitation completed: action={action}, content={form}"
    )))
}

pub(super) async fn sample(context: &RequestContext, name: &str, prompt: &str) -> Answer {
    let message = json!({"role": "user", "content": text(prompt)});
    let params = json!({"messages": [message], "maxTokens": 100});
    ask(context, name, "sampling/createMessage", &params).await
}

/// The tools that ask the client, once it is a modern one, by an input-required result.
pub(super) async fn asking(name: &str, context: &RequestContext) -> Answer {
    let person = json!({"name": {"type": "string"}});
    let nothing = json!({});
    let user = || {
        let question = "What is your name?";
        elicit(context, "user_name", question, &person, &["name"])
    };
    let greeting = || sample(context, "greeting", "Generate a greeting");
    let roots = || ask(context, "client_roots", "roots/list", &nothing);
    match name.trim_start_matches("test_input_required_result_") {
        "elicitation" => {
            let answer = user().await?;
            Ok(said(&format!("Hello, {}!", answer["content"]["name"])))
        }
        "sampling" => {
            let question = "What is the capital of France?";
            let answer = sample(context, "capital_question", question).await?;
            Ok(said(&answer["content"]["text"].to_string()))
        }
        "list_roots" => Ok(said(&roots().await?.to_string())),
        "request_state" | "tampered_state" => {
            let properties = json!({"ok": {"type": "boolean"}});
            elicit(context, "confirm", "Please confirm", &properties, &["ok"]).await?;
            Ok(said("state-ok"))
        }
        "multiple_inputs" => {
            let (user, greeting, roots) = tokio::try_join!(user(), greeting(), roots())?;
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
        "capabilities" => {
            // A proxy may have to declare more than the client it asks for can do; it then
            // refuses, and what is left can still be asked.
            if declares(context, "elicitation") {
                let _ = user().await;
            }
            if declares(context, "sampling") {
                let _ = greeting().await;
            }
            Ok(said("Asked what could be asked"))
        }
        _ => Err(ErrorObject::invalid_params(format!("Unknown tool: {name}"))),
    }
}

fn declares(context: &RequestContext, capability: &str) -> bool {
    let declared = context.connection.client.capabilities.get();
    let declared: Value = serde_json::from_str(declared).unwrap_or_default();
    declared.get(capability).is_some()
}
