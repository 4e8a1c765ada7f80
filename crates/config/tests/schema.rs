//! The schema that editors use says what the reader reads.

#![cfg(test)]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

#[test]
fn the_schema_is_pinned() {
    insta::assert_json_snapshot!(config::json_schema());
}

/// Follows `$ref` to the properties of an object.
fn properties<'a>(schema: &'a Value, of: &'a Value) -> &'a Map<String, Value> {
    let resolved = match of["$ref"].as_str() {
        Some(reference) => schema.pointer(reference.trim_start_matches('#')).unwrap(),
        None => of,
    };
    resolved["properties"].as_object().unwrap()
}

fn keys(object: &Map<String, Value>) -> BTreeSet<&str> {
    object.keys().map(String::as_str).collect()
}

#[test]
fn the_schema_names_exactly_the_keys_that_are_read() {
    let server = json!({
        "type": null, "command": "x", "args": [], "env": {}, "working_dir": "/", "cwd": null,
        "url": null, "httpUrl": null, "serverUrl": null, "headers": {}, "enabled": true,
        "disabled": false, "timeout": 1, "max_concurrency": 1, "refresh_interval": 1, "trust": "pin",
        "sharing": "shared",
    });
    let everything = json!({
        "$schema": "x", "listen": "127.0.0.1:1", "data_dir": "/", "api_key": "a key of sixteen",
        "require_mcp_auth": true, "allow_stdio_over_http": true, "tool_response_limit": 1,
        "intent_declaration": {"mode": "two_key", "strict_server_validation": true, "unannotated": "trust", "distrust": ["x*"]},
        "tool_overrides": {"a:b": "write"},
        "retrieve_tools": {"schema_budget": 1},
        "activity": {"retention_days": 1, "max_records": 1, "max_size_mb": 1, "max_response_bytes": 1, "max_argument_bytes": 1, "payloads": "full"},
        "endpoints": {"server": true, "direct": true},
        "shutdown_grace": 1, "exit_when_idle": 1,
        "limits": serde_json::to_value(config::Limits::default()).unwrap(),
        "mcpServers": {"a": server},
    });
    let loaded = config::parse(everything.to_string().as_bytes(), Path::new("x")).unwrap();
    assert_eq!(loaded.warnings, [], "the reader knows every key");

    let schema = config::json_schema();
    let root = properties(&schema, &schema);
    assert_eq!(keys(root), keys(everything.as_object().unwrap()));
    for section in [
        "intent_declaration",
        "retrieve_tools",
        "activity",
        "endpoints",
        "limits",
    ] {
        let written = everything[section].as_object().unwrap();
        assert_eq!(
            keys(properties(&schema, &root[section])),
            keys(written),
            "{section}"
        );
    }
    let entry = json!({"$ref": "#/$defs/Server"});
    assert_eq!(
        keys(properties(&schema, &entry)),
        keys(server.as_object().unwrap())
    );
}
