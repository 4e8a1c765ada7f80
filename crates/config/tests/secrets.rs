//! Values of env and headers, keys, and resolved references stay out of everything that is shown.

#![cfg(test)]

use std::path::Path;

use config::{Config, ResolvedTransport, Secret};

const TEXT: &str = r#"{
    "api_key": "hunter2-key-of-the-api",
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
        "intent_declaration": {"mode": "inferred", "unannotated": "trust"}, "tool_overrides": {"a:b": "write"},
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
    let ResolvedTransport::Http { url, headers, .. } = http.resolve(&variable).unwrap() else {
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

/// What is struck out for a server of this entry, with `SET_TOKEN` and `HOME` set.
fn struck_out(entry: &str) -> Vec<String> {
    let text = format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
    let config = config::parse(text.as_bytes(), Path::new("x"))
        .unwrap()
        .config;
    let secrets = config.mcp_servers[0].secrets(&|name| match name {
        "SET_TOKEN" => Some("from-environment".to_owned()),
        "HOME" => Some("/home/somebody".to_owned()),
        _ => None,
    });
    let mut secrets: Vec<_> = secrets.iter().map(|it| it.expose().to_owned()).collect();
    secrets.sort();
    secrets.dedup();
    secrets
}

#[test]
fn what_cannot_be_resolved_takes_no_other_secret_with_it() {
    assert_eq!(
        struck_out(
            r#"{"command": "${env:UNSET}", "args": ["${env:UNSET}"], "env": {
                "A": "plain", "B": "${env:UNSET}", "C": "x ${env:UNSET} ${env:SET_TOKEN}"}}"#
        ),
        ["from-environment", "plain"]
    );
    assert_eq!(
        struck_out(r#"{"url": "https://${env:UNSET}/", "headers": {"A": "plain"}}"#),
        ["plain"]
    );
}

#[test]
fn credentials_are_secrets_without_their_scheme() {
    for (name, value, expected) in [
        ("Authorization", "Bearer abc", vec!["Bearer abc", "abc"]),
        ("authorization", "Custom  abc", vec!["Custom  abc", "abc"]),
        ("X-Auth", "token abc", vec!["abc", "token abc"]),
        ("X-Note", "hello friends", vec!["hello friends"]),
        (
            "Authorization",
            "Basic dXNlcjpwYTpzcw==",
            vec!["Basic dXNlcjpwYTpzcw==", "dXNlcjpwYTpzcw==", "pa:ss"],
        ),
        (
            "X-Key",
            "v1.${env:SET_TOKEN}",
            vec!["from-environment", "v1.from-environment"],
        ),
    ] {
        let entry = format!(r#"{{"url": "http://h", "headers": {{"{name}": "{value}"}}}}"#);
        assert_eq!(struck_out(&entry), expected, "{name}: {value}");
    }
}

#[test]
fn parts_of_env_are_secrets_where_they_can_be() {
    for (value, expected) in [
        ("Bearer abc", vec!["Bearer abc", "abc"]),
        ("${env:HOME}/notes", vec!["/home/somebody/notes"]),
        (
            "u:${env:SET_TOKEN}@h",
            vec!["from-environment", "u:from-environment@h"],
        ),
        (
            r"-----BEGIN KEY-----\nfirst-line-of-key\n  second-line-of-key\nTg==\n-----END KEY-----",
            vec![
                "-----BEGIN KEY-----\nfirst-line-of-key\n  second-line-of-key\nTg==\n-----END KEY-----",
                "first-line-of-key",
                "second-line-of-key",
            ],
        ),
    ] {
        let entry = format!(r#"{{"command": "x", "env": {{"A": "{value}"}}}}"#);
        assert_eq!(struck_out(&entry), expected, "{value}");
    }
}

#[test]
fn values_inside_a_value_are_secrets() {
    for (value, expected) in [
        (
            "postgres://app:pa%2Fss@db/x",
            vec!["pa%2Fss", "pa/ss", "postgres://app:pa%2Fss@db/x"],
        ),
        ("https://token@h/", vec!["https://token@h/", "token"]),
        (
            r#"{\"a\":{\"private_key\":\"one\"},\"b\":[\"two\",3]}"#,
            vec!["one", "two", r#"{"a":{"private_key":"one"},"b":["two",3]}"#],
        ),
    ] {
        let entry = format!(r#"{{"command": "x", "env": {{"A": "{value}"}}}}"#);
        assert_eq!(struck_out(&entry), expected, "{value}");
    }
}

#[test]
fn secrets_in_a_url_are_struck_out() {
    for (url, expected) in [
        ("https://user:pass@h/mcp", vec!["pass"]),
        ("https://h/mcp?mode=fast&api_key=k1&verbose", vec!["k1"]),
        ("https://h/${env:SET_TOKEN}/mcp", vec!["from-environment"]),
        (
            "https://h/s/0123456789abcdef01/mcp",
            vec!["0123456789abcdef01"],
        ),
        ("https://h/some/ordinary/path-of-a-server", vec![]),
        ("http://127.0.0.1:8080/mcp", vec![]),
    ] {
        let entry = format!(r#"{{"url": "{url}"}}"#);
        assert_eq!(struck_out(&entry), expected, "{url}");
    }
}

#[test]
fn secrets_in_arguments_are_struck_out() {
    for (args, expected) in [
        (r#""--token", "one", "two""#, vec!["one"]),
        (r#""--api-key=one", "--folder=two""#, vec!["one"]),
        (r#""-e", "GITHUB_TOKEN=one""#, vec!["one"]),
        (
            r#""${env:SET_TOKEN}", "${env:HOME}/x""#,
            vec!["from-environment"],
        ),
        (r#""redis://u:one@h""#, vec!["one"]),
    ] {
        let entry = format!(r#"{{"command": "x", "args": [{args}]}}"#);
        assert_eq!(struck_out(&entry), expected, "{args}");
    }
}
