//! The same call as each path takes it.

use serde_json::{Value, json};

use crate::tool::Tool;

/// A call without its id, and the result it must have.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    params: String,
    /// `None` where the upstream is not ours: any result that is no error will do.
    pub(super) expected: Option<&'static str>,
}

impl Call {
    /// Straight to the upstream.
    pub(crate) fn upstream(tool: Tool) -> Self {
        Self::new(
            tool,
            &json!({"name": tool.name(), "arguments": arguments()}),
        )
    }

    /// To an upstream behind the floor.
    pub(crate) fn floor(server: &str, tool: Tool) -> Self {
        let name = format!("{server}:{}", tool.name());
        Self::new(tool, &json!({"name": name, "arguments": arguments()}))
    }

    /// To an upstream behind the daemon, as an agent calls it.
    pub(crate) fn daemon(server: &str, tool: Tool) -> Self {
        let lane = tool.lane.name();
        let params = json!({
            "name": format!("call_tool_{lane}"),
            "arguments": {
                "name": format!("{server}:{}", tool.name()),
                "args": arguments(),
                "intent": {"operation_type": lane, "reason": "measuring"}
            }
        });
        Self::new(tool, &params)
    }

    /// To a tool of a program that is not ours.
    pub(crate) fn peer(tool: &str, arguments: &Value) -> Self {
        Self {
            params: json!({"name": tool, "arguments": arguments}).to_string(),
            expected: None,
        }
    }

    fn new(tool: Tool, params: &Value) -> Self {
        Self {
            params: params.to_string(),
            expected: Some(tool.result()),
        }
    }

    pub(super) fn message(&self, id: usize) -> String {
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
