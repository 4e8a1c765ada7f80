//! Values of env and headers, keys, and resolved references stay out of everything that is shown.

#![cfg(test)]

use std::path::Path;

use config::{Config, ResolvedTransport, Secret};

const TEXT: &str = r#"{
    "api_key": "hunter2-key",
    "mcpServers": {
        "stdio": {
            "command": "server", "args": ["--token", "${env:TOKEN}"],
            "env": {"PLAIN": "hunter2-env", "REFERENCE": "${env:TOKEN}", "MIXED": "hunter2 ${env:TOKEN}"}
        },
        "http": {
            "url": "https://user:hunter2-password@example.com/mcp?key=hunter2-query&other=${env:TOKEN}",
            "headers": {"Authorization": "Bearer hunter2-header", "X-Reference": "${env:TOKEN}"}
        }
    }
}"#;

fn config() -> Config {
    config::parse(TEXT.as_bytes(), Path::new("mcp_config.json"))
        .unwrap()
        .config
}

fn variable(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| "hunter2-token".to_owned())
}

#[test]
fn debugging_a_config_shows_no_secret() {
    let shown = format!("{:#?}", config());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("${env:TOKEN}"), "{shown}");
}

#[test]
fn debugging_what_was_resolved_shows_no_secret() {
    for server in config().mcp_servers {
        let resolved = server.resolve(&variable).unwrap();
        let shown = format!("{resolved:#?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_shown_config_is_complete_and_masked() {
    insta::assert_json_snapshot!(config().to_masked_json()["mcpServers"], @r#"
    {
      "stdio": {
        "command": "server",
        "args": [
          "--token",
          "${env:TOKEN}"
        ],
        "env": {
          "MIXED": "***",
          "PLAIN": "***",
          "REFERENCE": "${env:TOKEN}"
        },
        "enabled": true,
        "timeout": 120,
        "max_concurrency": 64
      },
      "http": {
        "url": "https://***@example.com/mcp?key=***&other=${env:TOKEN}",
        "headers": {
          "Authorization": "***",
          "X-Reference": "${env:TOKEN}"
        },
        "enabled": true,
        "timeout": 120,
        "max_concurrency": 64
      }
    }
    "#);
    assert_eq!(config().to_masked_json()["api_key"], "***");
}

#[test]
fn a_shown_config_without_secrets_reads_back_as_the_same() {
    let text = r#"{
        "listen": "127.0.0.1:1", "data_dir": "/d", "tool_response_limit": 7,
        "intent_declaration": {"mode": "inferred"}, "tool_overrides": {"a:b": "write"},
        "activity": {"payloads": "none"},
        "mcpServers": {"a": {"command": "x", "args": ["${env:A}"], "timeout": "1500ms", "enabled": false}}
    }"#;
    let config = config::parse(text.as_bytes(), Path::new("x"))
        .unwrap()
        .config;
    let shown = config.to_masked_json().to_string();
    let again = config::parse(shown.as_bytes(), Path::new("x")).unwrap();
    assert_eq!(again.config, config);
    assert_eq!(again.warnings, []);
}

#[test]
fn references_are_filled_in() {
    let config = config();
    let [stdio, http] = config.mcp_servers.as_slice() else {
        panic!("two servers");
    };
    let ResolvedTransport::Stdio { args, env, .. } = stdio.resolve(&variable).unwrap() else {
        panic!("a program");
    };
    assert_eq!(args, ["--token", "hunter2-token"].map(Secret::from));
    assert_eq!(env["MIXED"].expose(), "hunter2 hunter2-token");
    let resolved = http.resolve(&variable).unwrap();
    assert_eq!(resolved.secrets().count(), 2);
    let ResolvedTransport::Http { url, headers, .. } = resolved else {
        panic!("a url");
    };
    assert!(url.expose().ends_with("other=hunter2-token"));
    assert_eq!(headers["X-Reference"].expose(), "hunter2-token");
}

#[test]
fn a_missing_variable_is_named_with_its_place() {
    let error = config().mcp_servers[0].resolve(&|_| None).unwrap_err();
    insta::assert_snapshot!(error, @"environment variable TOKEN is not set, and mcpServers.stdio.args[1] refers to it; set it where mcpproxy starts");
    let error = config().mcp_servers[1].resolve(&|_| None).unwrap_err();
    insta::assert_snapshot!(error, @"environment variable TOKEN is not set, and mcpServers.http.url refers to it; set it where mcpproxy starts");
}

#[test]
fn a_url_is_checked_again_once_it_is_known() {
    let text = r#"{"mcpServers": {"a": {"url": "${env:URL}"}}}"#;
    let config = config::parse(text.as_bytes(), Path::new("x"))
        .unwrap()
        .config;
    let resolve = |url: &str| {
        let value = url.to_owned();
        config.mcp_servers[0].resolve(&move |_| Some(value.clone()))
    };
    assert!(resolve("http://127.0.0.1:1/mcp").is_ok());
    insta::assert_snapshot!(resolve("ftp://x/").unwrap_err(), @"mcpServers.a.url is not usable with its variables filled in: the url starts with neither http:// nor https://");
}
