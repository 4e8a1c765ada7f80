//! Secrets of the config, wherever they are written in it, appear in no answer, no log, no export,
//! no error, no event and no output.

use std::path::Path;

use futures_util::StreamExt;
use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Script, TestDaemon, Tool, http_client, wait_until};

use crate::support::{home, rest_with};

const KEY: &str = "canary-key-0d61c5a7e2";
const ENV: &str = "canary-env-91b3f04d88";
const HEADER: &str = "canary-header-6c2e7f19aa";
const IN_URL: &str = "canary-url-3b5d8e60f1";
const REFERRED: &str = "canary-reference-77e1a9c4";

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    for canary in [KEY, ENV, HEADER, IN_URL, REFERRED] {
        assert!(!text.contains(canary), "{canary} is in {what}:\n{text}");
    }
}

/// One server that works, one that writes its secret to stderr and ends, one that cannot be
/// reached, and one whose variable does not exist.
fn config(home: &Home) -> Value {
    let up = home.upstream("up", &Script::new([Tool::read_only("look")]));
    let tells = "echo \"my token is $TOKEN\" >&2; echo \"and $TOKEN again\"; exit 3";
    json!({
        "api_key": KEY,
        "mcpServers": {
            "up": up.config_with(&json!({"env": {"TOKEN": ENV}})),
            "tells": {"command": "sh", "args": ["-c", tells], "env": {"TOKEN": ENV}},
            "away": {
                "url": format!("http://127.0.0.1:9/mcp?token={IN_URL}"),
                "headers": {"Authorization": format!("Bearer {HEADER}")},
            },
            "unset": {"command": "sh", "env": {"A": "${env:NOT_SET_ANYWHERE}", "B": ENV}},
            "off": {"command": "sh", "env": {"TOKEN": ENV}, "enabled": false},
        },
    })
}

async fn start() -> TestDaemon {
    let home = home();
    let config = config(&home);
    let daemon = TestDaemon::start(home, config).await;
    wait_until("all servers are settled", DEADLINE, async || {
        let (_, text) = rest_with(&daemon, KEY, "GET", "/servers", None).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        let servers = answer["data"]["servers"].as_array().unwrap().clone();
        let state = |name: &str, wanted: &[&str]| {
            let server = servers.iter().find(|server| server["name"] == name);
            server.is_some_and(|it| wanted.contains(&it["state"].as_str().unwrap()))
        };
        state("up", &["ready"])
            && state("unset", &["failed"])
            && ["tells", "away"]
                .iter()
                .all(|name| state(name, &["waiting", "failed"]))
    })
    .await;
    daemon
}

#[tokio::test]
async fn secrets_are_in_no_answer_of_the_api() {
    let daemon = start().await;
    let (_, document) = rest_with(&daemon, KEY, "GET", "/openapi.json", None).await;
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut asked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if item.get("get").is_none() || path.ends_with("/events") {
            continue;
        }
        for name in ["up", "tells", "away", "unset", "off"] {
            let path = path
                .trim_start_matches("/api/v1")
                .replace("{name}", name)
                .replace("{id}", &format!("{name}:look"));
            let (_, text) = rest_with(&daemon, KEY, "GET", &path, None).await;
            assert_clean(&path, &text);
            asked += 1;
        }
    }
    assert!(asked > 50, "{asked} requests");
    let (_, logs) = rest_with(&daemon, KEY, "GET", "/servers/tells/logs", None).await;
    assert!(logs.contains("my token is [REDACTED]"), "{logs}");
    for format in ["json", "jsonl", "csv"] {
        let path = format!("/activity/export?include_bodies=true&format={format}");
        let (status, text) = rest_with(&daemon, KEY, "GET", &path, None).await;
        assert_eq!(status, 200);
        assert_clean(&path, &text);
    }
}

#[tokio::test]
async fn secrets_are_in_no_error_and_no_event() {
    let daemon = start().await;
    let url = daemon.url("/events");
    let request = http_client()
        .get(url)
        .header("x-api-key", KEY)
        .header("last-event-id", "0");
    let mut events = request.send().await.unwrap().bytes_stream();
    let wrong = [
        json!({"name": "new", "command": "sh", "env": {"TOKEN": REFERRED}}),
        json!({"name": "new", "url": "http://127.0.0.1:9/", "headers": {"a b": REFERRED}}),
        json!({"name": "new", "url": "http://127.0.0.1:9/", "headers": {"X": REFERRED}, "tiemout": 1}),
        json!({"name": "new", "url": format!("ftp://{REFERRED}@h/"), "timeout": 5}),
        json!({"name": "up", "url": "http://127.0.0.1:9/", "headers": {"X": REFERRED}}),
    ];
    for body in wrong {
        let body = body.to_string();
        let (status, text) = rest_with(&daemon, KEY, "POST", "/servers", Some(&body)).await;
        assert!((400..500).contains(&status), "{status} {text}");
        assert_clean(&body.replace(REFERRED, "…"), &text);
    }
    let (status, text) = rest_with(&daemon, "canary-wrong", "GET", "/status", None).await;
    assert_eq!(status, 401);
    assert_clean("a refusal", &text);
    // Everything that has happened comes first; the call that is made now comes last.
    let call = json!({
        "tool_variant": "call_tool_read",
        "arguments": {"name": "up:look", "args": {"mark": "the-last", "s": ENV}, "intent": {"operation_type": "read"}},
    });
    rest_with(&daemon, KEY, "POST", "/tools/call", Some(&call.to_string())).await;
    let mut seen = String::new();
    while !seen.contains("the-last") {
        let chunk = tokio::time::timeout(DEADLINE, events.next()).await.unwrap();
        seen.push_str(&String::from_utf8_lossy(&chunk.unwrap().unwrap()));
    }
    assert_clean("the events", &seen);
}

#[tokio::test]
async fn secrets_are_in_no_log_and_no_output() {
    let daemon = start().await;
    for arguments in [
        &["upstream", "list"][..],
        &["upstream", "list", "-o", "json"],
        &["upstream", "logs", "tells"],
        &["upstream", "logs", "off"],
        &["config", "show"],
        &["config", "check"],
        &["tools", "list"],
        &["status"],
        &["activity", "list", "-o", "yaml"],
        &["audit", "-o", "json"],
        &["call", "tool-read", "tells:nothing"],
        &["upstream", "disable", "nobody"],
    ] {
        let output = daemon.home.cli(arguments).await;
        assert_clean(&format!("{arguments:?}"), &output.stdout);
        assert_clean(&format!("{arguments:?}"), &output.stderr);
    }
    assert_clean("the daemon's output", &daemon.log());
    let (home, _) = daemon.stop().await;
    for arguments in [&["upstream", "logs", "tells"][..], &["upstream", "list"]] {
        let output = home.cli(arguments).await;
        assert_clean(&format!("{arguments:?} alone"), &output.stdout);
        assert_clean(&format!("{arguments:?} alone"), &output.stderr);
    }
    assert!(clean_files(&home.path().join(".mcpproxy")) > 3);
}

/// Every file but the config, which is where the secrets come from.
fn clean_files(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += clean_files(&path);
        } else if path.is_file() && !path.ends_with("mcp_config.json") {
            let bytes = std::fs::read(&path).unwrap();
            assert_clean(
                &path.display().to_string(),
                &String::from_utf8_lossy(&bytes),
            );
            files += 1;
        }
    }
    files
}
