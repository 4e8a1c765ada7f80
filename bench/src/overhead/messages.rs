//! The same call as each of the three takes it.

use serde_json::{Value, json};

use crate::echo::TOOL;

/// A call without its id.
#[derive(Debug, Clone)]
pub(super) struct Messages {
    params: String,
}

impl Messages {
    /// Straight to the upstream.
    pub(super) fn upstream() -> Self {
        Self::new(&json!({"name": TOOL, "arguments": arguments()}))
    }

    /// To an upstream behind the floor.
    pub(super) fn floor(server: &str) -> Self {
        Self::new(&json!({"name": format!("{server}:{TOOL}"), "arguments": arguments()}))
    }

    /// To an upstream behind the daemon, as an agent calls it.
    pub(super) fn daemon(server: &str) -> Self {
        Self::new(&json!({
            "name": "call_tool_read",
            "arguments": {
                "name": format!("{server}:{TOOL}"),
                "args": arguments(),
                "intent": {"operation_type": "read", "reason": "measuring"}
            }
        }))
    }

    fn new(params: &Value) -> Self {
        Self {
            params: params.to_string(),
        }
    }

    pub(super) fn call(&self, id: usize) -> String {
        let params = &self.params;
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
    }
}

/// About 1 kB, of the kinds of values that tools are called with.
fn arguments() -> Value {
    let labels: Vec<String> = (0..12).map(|number| format!("label-{number}")).collect();
    json!({
        "repository": "owner/name",
        "title": "A title as people write them",
        "body": "A few words of text with a \"quoted\" one.\n".repeat(17),
        "labels": labels,
        "options": {"draft": false, "priority": 3, "weight": 0.25, "parent": null},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_about_one_kilobyte() {
        let length = arguments().to_string().len();
        assert!((950..1_100).contains(&length), "{length}");
    }
}
