//! What a config file may look like: both forms of `mcpServers`, other clients' dialects, defaults.

#![cfg(test)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use config::{Config, HttpProtocol, Loaded, Payloads, ServerConfig, Template, Transport};
use policy::{IntentMode, Tier, Trust, Unannotated};

fn load(text: &str) -> Loaded {
    config::parse(text.as_bytes(), Path::new("mcp_config.json"))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A file without anything doubtful.
fn clean(text: &str) -> Config {
    let Loaded { config, warnings } = load(text);
    assert_eq!(warnings, []);
    config
}

fn server(entry: &str) -> ServerConfig {
    let mut config = clean(&format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#));
    config.mcp_servers.remove(0)
}

fn warnings(text: &str) -> Vec<String> {
    load(text)
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_whole_number_may_be_written_with_a_point() {
    let config = clean(r#"{"activity": {"max_records": 293.0}}"#);
    assert_eq!(config.activity.max_records, 293);
}

#[test]
fn an_empty_object_is_all_defaults() {
    let config = clean("{}");
    assert_eq!(config, Config::default());
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.tool_response_limit, 100_000);
    assert_eq!(config.intent_declaration.mode, IntentMode::TwoKey);
    assert!(config.intent_declaration.strict_server_validation);
    assert_eq!(config.retrieve_tools.schema_budget, 6_000);
    assert_eq!(config.activity.retention_days, 90);
    assert_eq!(config.activity.max_records, 100_000);
    assert_eq!(config.activity.max_size_mb, 256);
    assert_eq!(config.activity.max_response_bytes, 65_536);
    assert_eq!(config.activity.payloads, Payloads::Full);
    assert!(config.endpoints.server && config.endpoints.direct);
    assert_eq!(config.shutdown_grace, Duration::from_secs(5));
    assert_eq!(config.limits.request_bytes, 4 * 1024 * 1024);
    assert_eq!(config.limits.header_timeout.get(), Duration::from_secs(10));
}

#[test]
fn every_setting_is_read() {
    let config = clean(
        r#"{
            "$schema": "https://example.com/schema.json",
            "listen": "[::1]:9000",
            "data_dir": "/var/lib/mcpproxy",
            "api_key": "a secret of the API",
            "require_mcp_auth": true,
            "tool_response_limit": 0,
            "intent_declaration": {"mode": "inferred", "strict_server_validation": false, "unannotated": "deny"},
            "tool_overrides": {"github:delete_*": "destructive", "notes:search": "read_only"},
            "retrieve_tools": {"schema_budget": 1},
            "activity": {"retention_days": 0, "max_records": 2, "max_size_mb": 3, "max_response_bytes": 4, "max_argument_bytes": 5, "payloads": "none"},
            "endpoints": {"server": false, "direct": false},
            "shutdown_grace": "250ms",
            "exit_when_idle": "30m",
            "limits": {"request_bytes": 1, "header_timeout": "2m"}
        }"#,
    );
    assert_eq!(config.listen.port(), 9000);
    assert_eq!(
        config.data_dir.as_deref(),
        Some(Path::new("/var/lib/mcpproxy"))
    );
    assert_eq!(
        config.api_key.map(|key| key.expose().to_owned()),
        Some("a secret of the API".into())
    );
    assert!(config.require_mcp_auth);
    assert_eq!(config.tool_response_limit, 0);
    assert_eq!(config.intent_declaration.mode, IntentMode::Inferred);
    assert!(!config.intent_declaration.strict_server_validation);
    assert_eq!(config.intent_declaration.unannotated, Unannotated::Deny);
    assert_eq!(config.retrieve_tools.schema_budget, 1);
    assert_eq!(config.activity.retention_days, 0);
    assert_eq!(config.activity.max_records, 2);
    assert_eq!(config.activity.max_size_mb, 3);
    assert_eq!(config.activity.max_response_bytes, 4);
    assert_eq!(config.activity.max_argument_bytes, 5);
    assert_eq!(config.activity.payloads, Payloads::None);
    assert!(!config.endpoints.server && !config.endpoints.direct);
    assert_eq!(config.shutdown_grace, Duration::from_millis(250));
    assert_eq!(config.exit_when_idle, Some(Duration::from_mins(30)));
    assert_eq!(config.limits.request_bytes, 1);
    assert_eq!(config.limits.header_timeout.get(), Duration::from_mins(2));
    assert_eq!(
        config.limits.sessions, 1_000,
        "what is not set keeps its default"
    );
    let tool = "github:delete_repo".parse().unwrap();
    let found = config.tool_overrides.compiled().tier_for(&tool);
    assert_eq!(found, Some((Tier::Destructive, "github:delete_*")));
}

#[test]
fn both_forms_mean_the_same() {
    let object = clean(
        r#"{"mcpServers": {"b": {"command": "x", "timeout": 5}, "a": {"url": "http://h/mcp"}}}"#,
    );
    let list = clean(
        r#"{"mcpServers": [{"name": "b", "command": "x", "timeout": 5}, {"name": "a", "url": "http://h/mcp"}]}"#,
    );
    assert_eq!(object, list);
    let names: Vec<&str> = list
        .mcp_servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(names, ["b", "a"], "the order of the file");
    assert!(list.server(&"a".parse().unwrap()).is_some());
}

#[test]
fn a_program_with_everything() {
    let server = server(
        r#"{"type": "stdio", "command": "npx", "args": ["-y", "${env:PACKAGE}"], "env": {"TOKEN": "t"},
            "cwd": "/srv", "enabled": false, "timeout": "2m", "max_concurrency": 1, "refresh_interval": 60,
            "trust": "pin"}"#,
    );
    let template = |text: &str| text.parse::<Template>().unwrap();
    let expected = Transport::Stdio {
        command: template("npx"),
        args: vec![template("-y"), template("${env:PACKAGE}")],
        env: BTreeMap::from([("TOKEN".into(), template("t").into())]),
        working_dir: Some("/srv".into()),
    };
    assert_eq!(server.transport, expected);
    assert!(!server.enabled);
    assert_eq!(server.timeout, Duration::from_mins(2));
    assert_eq!(server.max_concurrency.get(), 1);
    assert_eq!(server.refresh_interval, Some(Duration::from_mins(1)));
    assert_eq!(server.trust, Trust::Pin);
}

#[test]
fn a_program_with_nothing_but_its_name() {
    let server = server(r#"{"command": "x"}"#);
    assert_eq!(
        server,
        ServerConfig::new("a".parse().unwrap(), Transport::program("x", []))
    );
    assert!(server.enabled);
    assert_eq!(server.timeout, Duration::from_mins(2));
    assert_eq!(server.max_concurrency.get(), 64);
    assert_eq!(server.refresh_interval, None);
    assert_eq!(server.trust, Trust::Log);
}

#[test]
fn the_keys_of_other_clients() {
    for entry in [
        r#"{"url": "https://h/mcp"}"#,
        r#"{"httpUrl": "https://h/mcp"}"#,
        r#"{"serverUrl": "https://h/mcp"}"#,
        r#"{"type": "http", "url": "https://h/mcp"}"#,
        r#"{"type": "streamable-http", "url": "https://h/mcp", "args": [], "env": {}}"#,
        r#"{"url": "https://h/mcp", "disabled": false, "enabled": true}"#,
        r#"{"url": "https://h/mcp", "command": null, "timeout": null}"#,
    ] {
        let expected = Transport::Http {
            url: Template::literal("https://h/mcp"),
            headers: BTreeMap::new(),
            protocol: HttpProtocol::Streamable,
        };
        assert_eq!(server(entry).transport, expected, "{entry}");
    }
    let sse = server(r#"{"type": "sse", "url": "https://h/sse"}"#).transport;
    assert!(matches!(
        sse,
        Transport::Http {
            protocol: HttpProtocol::Sse,
            ..
        }
    ));
    assert!(!server(r#"{"command": "x", "disabled": true}"#).enabled);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert_eq!(clean("\u{feff}{}"), Config::default());
}

#[test]
fn unknown_keys_are_named_with_what_was_probably_meant() {
    let text = "{\n  \"listne\": 1,\n  \"mcp_servers\": {},\n  \"theme\": \"dark\",\n  \"activity\": {\"retentionDays\": 1},\n  \"mcpServers\": {\"a\": {\"command\": \"x\", \"arguments\": [], \"autoApprove\": []}}\n}";
    insta::assert_snapshot!(warnings(text).join("\n"), @"
    unknown key `listne` (line 2, column 3); did you mean `listen`?
    unknown key `mcp_servers` (line 3, column 3); did you mean `mcpServers`?
    unknown key `theme` (line 4, column 3); it is ignored
    unknown key `activity.retentionDays` (line 5, column 16); did you mean `retention_days`?
    unknown key `mcpServers.a.arguments` (line 6, column 40); it is ignored
    unknown key `mcpServers.a.autoApprove` (line 6, column 57); it is ignored
    ");
}

#[test]
fn keys_without_effect_are_named() {
    let text = r#"{"mcpServers": {
        "a": {"command": "x", "headers": {"A": "b"}},
        "b": {"url": "http://h/", "args": ["x"], "env": {"A": "b"}, "cwd": "/"},
        "c": {"command": "${HOME}/bin/x", "args": ["${env:A}${B}", "$${env:C}"]}
    }}"#;
    insta::assert_snapshot!(warnings(text).join("\n"), @"
    `mcpServers.a.headers` (line 2, column 42) has no effect beside `command`
    `mcpServers.b.args` (line 3, column 43) has no effect beside `url`
    `mcpServers.b.env` (line 3, column 57) has no effect beside `url`
    `mcpServers.b.cwd` (line 3, column 76) has no effect beside `url`
    `mcpServers.c.command` (line 4, column 26) holds `${HOME}`, which is passed on as it stands; write `${env:HOME}` for the variable
    `mcpServers.c.args[0]` (line 4, column 52) holds `${B}`, which is passed on as it stands; write `${env:B}` for the variable
    ");
}
