//! Tools and snapshots made by hand, for the tests of this crate.

use std::sync::Arc;

use catalog::{ServerTools, Snapshot, ToolDefinition};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A tool without parameters.
pub(crate) fn tool(server: &str, name: &str, description: &str) -> Arc<ToolDefinition> {
    tool_from(server, &json!({"name": name, "description": description}))
}

/// A tool with string parameters, all of them required.
pub(crate) fn tool_with(
    server: &str,
    name: &str,
    description: &str,
    parameters: &[&str],
) -> Arc<ToolDefinition> {
    let properties: serde_json::Map<String, Value> = parameters
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": parameters});
    let definition = json!({"name": name, "description": description, "inputSchema": schema});
    tool_from(server, &definition)
}

fn tool_from(server: &str, definition: &Value) -> Arc<ToolDefinition> {
    let raw = RawValue::from_string(definition.to_string()).unwrap();
    Arc::new(ToolDefinition::parse(&server.parse().unwrap(), raw).unwrap())
}

/// Groups tools by their servers, in the order in which they come.
pub(crate) fn by_server(tools: &[Arc<ToolDefinition>]) -> Vec<ServerTools> {
    let mut servers: Vec<(_, Vec<_>)> = Vec::new();
    for tool in tools {
        let server = tool.id.server();
        match servers.iter_mut().find(|(known, _)| known == server) {
            Some((_, tools)) => tools.push(Arc::clone(tool)),
            None => servers.push((server.clone(), vec![Arc::clone(tool)])),
        }
    }
    servers
        .into_iter()
        .map(|(server, tools)| ServerTools {
            server,
            tools: tools.into(),
            stale: false,
        })
        .collect()
}

pub(crate) fn snapshot(tools: &[Arc<ToolDefinition>]) -> Snapshot {
    Snapshot::build(by_server(tools))
}
