//! Servers over REST: added, changed, switched, restarted and removed; and who may add what.

use serde_json::{Value, json};
use testkit::{Script, TestDaemon, Tool};

use crate::support::{Front, home, rest, server_in};

/// A daemon with one ready server called `up`.
async fn front(config: Value) -> Front {
    let front = Front::with(config, &Script::new([Tool::read_only("look")])).await;
    server_in(&front.daemon, "up", "ready").await;
    front
}

async fn post(daemon: &TestDaemon, path: &str, body: &Value) -> (u16, Value) {
    rest(daemon, "POST", path, Some(&body.to_string())).await
}

#[tokio::test]
async fn a_program_comes_in_by_the_socket_only() {
    let front = front(json!({})).await;
    let program = json!({"name": "shell", "command": "sh", "args": ["-c", "true"]});
    for path in ["/servers", "/servers?dry_run=true"] {
        let (status, answer) = post(&front.daemon, path, &program).await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (403, &json!("STDIO_NOT_ALLOWED"))
        );
        let hint = answer["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("allow_stdio_over_http"), "{hint}");
    }
    for patch in [
        json!({"command": "sh"}),
        json!({"args": ["-c", "true"]}),
        json!({"env": {"LD_PRELOAD": "/tmp/x.so"}}),
        json!({"working_dir": "/tmp"}),
    ] {
        let patch = patch.to_string();
        let (status, answer) = rest(&front.daemon, "PATCH", "/servers/up", Some(&patch)).await;
        assert_eq!(status, 403, "{patch}: {answer}");
    }
    assert_eq!(front.record.pids().len(), 1, "nothing was started");
    let servers = front.daemon.api("/servers").await;
    assert_eq!(servers["servers"].as_array().unwrap().len(), 1, "{servers}");
}

#[tokio::test]
async fn the_config_can_let_programs_in() {
    let home = home();
    let second = home.upstream("second", &Script::new([Tool::destructive("wipe")]));
    let config = json!({"allow_stdio_over_http": true, "mcpServers": {}});
    let daemon = TestDaemon::start(home, config).await;
    let mut entry = second.config();
    entry["name"] = "second".into();
    entry["trust"] = "pin".into();
    let (status, answer) = post(&daemon, "/servers?dry_run=true", &entry).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["data"]["tools"][0]["name"], "second:wipe");
    assert_eq!(
        answer["data"]["tools"][0]["call_with"],
        "call_tool_destructive"
    );
    assert_eq!(
        daemon.api("/servers").await["servers"],
        json!([]),
        "only tried out"
    );
    let (status, answer) = post(&daemon, "/servers", &entry).await;
    assert_eq!(status, 201, "{answer}");
    let added = server_in(&daemon, "second", "ready").await;
    assert_eq!(added["trust"], "pin", "{added}");
    let (status, answer) = post(&daemon, "/servers", &entry).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (409, &json!("SERVER_EXISTS"))
    );
}

#[tokio::test]
async fn a_server_that_cannot_be_tried_out_is_no_failure_of_the_daemon() {
    let front = front(json!({})).await;
    let entry = json!({"name": "gone", "url": "http://127.0.0.1:9/mcp"});
    let (status, answer) = post(&front.daemon, "/servers?dry_run=true", &entry).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (422, &json!("SERVER_UNAVAILABLE"))
    );
    let (message, hint) = (&answer["error"]["message"], &answer["error"]["hint"]);
    assert!(
        message
            .as_str()
            .unwrap()
            .contains("'gone' cannot be connected")
    );
    assert!(hint.as_str().unwrap().contains("try again"), "{hint}");
    let (status, _) = rest(&front.daemon, "GET", "/servers/gone", None).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn limits_change_without_a_new_connection() {
    let front = front(json!({})).await;
    let before = server_in(&front.daemon, "up", "ready").await;
    let patch = r#"{"timeout": "7s", "max_concurrency": 3, "refresh_interval": 60}"#;
    let (status, answer) = rest(&front.daemon, "PATCH", "/servers/up", Some(patch)).await;
    assert_eq!(status, 200, "{answer}");
    let after = server_in(&front.daemon, "up", "ready").await;
    assert_eq!(after["pid"], before["pid"]);
    assert_eq!(after["connections"], 1);
    let config = front.daemon.api("/config").await;
    assert_eq!(config["mcpServers"]["up"]["timeout"], 7, "{config}");
    assert_eq!(config["mcpServers"]["up"]["max_concurrency"], 3);
    // And back: what is null is removed.
    let patch = r#"{"timeout": null}"#;
    rest(&front.daemon, "PATCH", "/servers/up", Some(patch)).await;
    let config = front.daemon.api("/config").await;
    assert_eq!(config["mcpServers"]["up"]["timeout"], 120, "{config}");
    assert_eq!(front.record.pids().len(), 1);
}

#[tokio::test]
async fn a_server_is_switched_restarted_and_removed() {
    let front = front(json!({})).await;
    let daemon = &front.daemon;
    let first = server_in(daemon, "up", "ready").await;
    let (status, _) = rest(daemon, "POST", "/servers/up/restart", None).await;
    assert_eq!(status, 202);
    testkit::wait_until("it runs anew", testkit::DEADLINE, async || {
        let now = server_in(daemon, "up", "ready").await;
        now["connections"] == 2 && now["pid"] != first["pid"]
    })
    .await;
    let (status, answer) = rest(daemon, "POST", "/servers/up/disable", None).await;
    assert_eq!(status, 202, "{answer}");
    server_in(daemon, "up", "disabled").await;
    let (status, answer) = rest(daemon, "POST", "/servers/up/restart", None).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (409, &json!("SERVER_DISABLED"))
    );
    let (status, _) = rest(daemon, "POST", "/servers/up/enable", None).await;
    assert_eq!(status, 202);
    server_in(daemon, "up", "ready").await;
    let (_, tools) = rest(daemon, "GET", "/servers/up/tools", None).await;
    assert_eq!(tools["data"]["tools"][0]["name"], "up:look", "{tools}");
    let (status, answer) = rest(daemon, "DELETE", "/servers/up", None).await;
    assert_eq!((status, &answer["data"]["name"]), (202, &json!("up")));
    testkit::wait_until("it is gone", testkit::DEADLINE, async || {
        rest(daemon, "GET", "/servers/up", None).await.0 == 404
    })
    .await;
}

#[tokio::test]
async fn bad_requests_say_what_is_wrong_and_change_nothing() {
    let front = front(json!({})).await;
    let daemon = &front.daemon;
    let before = std::fs::read(daemon.home.config_file()).unwrap();
    let address = r#""url": "http://127.0.0.1:9/""#;
    let cases = [
        ("POST", "/servers", "", "not valid"),
        ("POST", "/servers", "[]", "expected an object"),
        ("POST", "/servers", "{}", "no `name`"),
        (
            "POST",
            "/servers",
            r#"{"name": "x"}"#,
            "neither `command` nor `url`",
        ),
        (
            "POST",
            "/servers",
            &format!(r#"{{"name": "a b", {address}}}"#),
            "server name",
        ),
        (
            "POST",
            "/servers",
            &format!(r#"{{"name": "x", {address}, "tiemout": 5}}"#),
            "did you mean `timeout`",
        ),
        (
            "POST",
            "/servers",
            &format!(r#"{{"name": "x", {address}, "env": {{"A": "b"}}}}"#),
            "no effect beside `url`",
        ),
        (
            "POST",
            "/servers",
            &format!(r#"{{"name": "x", "name": "y", {address}}}"#),
            "twice",
        ),
        (
            "POST",
            "/servers",
            r#"{"name": "x", "url": "ftp://h/"}"#,
            "url",
        ),
        (
            "POST",
            "/servers?dry=1",
            &format!(r#"{{"name": "x", {address}}}"#),
            "dry",
        ),
        ("PATCH", "/servers/up", "5", "not valid"),
        (
            "PATCH",
            "/servers/up",
            r#"{"timeout": 1, "timeout": 2}"#,
            "twice",
        ),
        ("PATCH", "/servers/up", r#"{"timeout": -1}"#, "timeout"),
        ("PATCH", "/servers/up", r#"{"name": "other"}"#, "renamed"),
        ("PATCH", "/servers/up", r#"{"colour": 1}"#, "colour"),
        ("GET", "/servers/up/logs?lines=0", "", "between 1 and 500"),
        ("GET", "/servers/up/logs?after=x", "", "cursor"),
        ("GET", "/servers/%FF", "", "UTF-8"),
    ];
    for (method, path, body, expected) in cases {
        let (status, answer) = rest(daemon, method, path, Some(body)).await;
        assert_eq!(status, 400, "{method} {path} {body}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains(expected),
            "{method} {path} {body}: {message}"
        );
    }
    for (method, path) in [
        ("PATCH", "/servers/upp"),
        ("DELETE", "/servers/upp"),
        ("POST", "/servers/upp/enable"),
        ("POST", "/servers/upp/disable"),
        ("POST", "/servers/upp/restart"),
        ("GET", "/servers/upp/logs"),
        ("GET", "/servers/upp/tools"),
    ] {
        let (status, answer) = rest(daemon, method, path, Some("{}")).await;
        assert_eq!(status, 404, "{method} {path}: {answer}");
        assert_eq!(
            answer["error"]["hint"], "did you mean 'up'?",
            "{method} {path}"
        );
    }
    let (status, answer) = rest(daemon, "PUT", "/servers", None).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (405, &json!("METHOD_NOT_ALLOWED"))
    );
    assert_eq!(std::fs::read(daemon.home.config_file()).unwrap(), before);
}

#[tokio::test]
async fn an_edit_does_not_replace_a_file_that_is_broken_or_gone() {
    let front = front(json!({})).await;
    let file = front.daemon.home.config_file();
    front
        .daemon
        .home
        .write_config_text("{\n  \"mcpServers\": {,\n}");
    let (status, answer) = rest(&front.daemon, "POST", "/servers/up/disable", None).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (409, &json!("CONFIG_INVALID"))
    );
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("line 2"), "{message}");
    std::fs::remove_file(&file).unwrap();
    let (status, _) = rest(&front.daemon, "DELETE", "/servers/up", None).await;
    assert_eq!(status, 409);
    assert!(!file.exists());
    server_in(&front.daemon, "up", "ready").await;
}
