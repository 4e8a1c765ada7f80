//! What a record holds besides the intent, whichever way a call came, and what is not kept.

use serde_json::{Value, json};
use testkit::{Outcome, Tool};

use crate::support::{DESTRUCTIVE, LANES, Proxy, READ, WRITE, tools};

fn only(records: Vec<Value>) -> Value {
    let number = records.len();
    let [record] = <[Value; 1]>::try_from(records).unwrap_or_else(|_| panic!("{number} records"));
    record
}

#[tokio::test]
async fn a_call_over_mcp_is_recorded_whole() {
    let proxy = Proxy::start().await;
    let mut client = proxy.client().await;
    let result = client
        .succeed(WRITE, &json!({"title": "Hello", "n": 1}))
        .await;
    let record = only(proxy.recorded_calls().await);
    let expected = json!({
        "type": "tool_call",
        "source": "mcp",
        "server_name": "up",
        "tool_name": "save",
        "arguments": {"title": "Hello", "n": 1},
        "response": result,
        "response_truncated": false,
        "status": "success",
        "error_code": null,
        "error_message": null,
        "session_id": client.session(),
        "client_name": "activity-test",
        "response_bytes": result.to_string().len(),
        "metadata": {
            "intent": {"operation_type": "write"},
            "tool_variant": "call_tool_write",
            "effective_tier": "write",
            "provenance": "declared",
            "facts": {
                "declared_tier": "write",
                "audited_tier": "write",
                "pinned": null,
                "hold": null,
                "lane_chosen": true,
                "intent_given": true,
                "operation_type": "understood",
                "data_sensitivity": "absent",
            },
        },
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&record[member], value, "{member}");
    }
    for member in ["duration_ms", "request_bytes"] {
        assert!(record[member].is_u64(), "{member}: {record}");
    }
    for member in ["id", "timestamp", "request_id"] {
        assert!(record[member].is_string(), "{member}: {record}");
    }
}

#[tokio::test]
async fn a_call_says_where_it_came_from() {
    let proxy = Proxy::start().await;
    proxy.client().await.succeed(READ, &json!({})).await;
    let home = &proxy.daemon.home;
    home.cli(["call", "tool-read", "up:look"]).await.succeeded();
    let body = json!({"tool_variant": "call_tool_read", "arguments": READ.call(&json!({}))});
    let answer = testkit::http_client()
        .post(proxy.daemon.url("/api/v1/tools/call"))
        .header("content-type", "application/json")
        .header("x-api-key", crate::support::api_key(home))
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let records = proxy.recorded_calls().await;
    let sources: Vec<_> = records
        .iter()
        .map(|it| it["source"].as_str().unwrap())
        .collect();
    assert_eq!(sources, ["mcp", "cli", "api"]);
    for source in sources {
        let found = only(
            proxy
                .list(&format!("?source={source}&type=tool_call"))
                .await,
        );
        assert_eq!(found["source"], source);
    }
}

#[tokio::test]
async fn every_end_of_a_call_has_its_status() {
    let failing = r#"{"isError":true,"content":[{"type":"text","text":"no paper"}]}"#;
    let protocol_error = Outcome::Error {
        code: -32000,
        message: "out of order".to_owned(),
    };
    let proxy = Proxy::with(
        json!({}),
        [
            Tool::read_only("fails").returns(failing),
            Tool::read_only("breaks").outcome(protocol_error),
            Tool::read_only("fine"),
        ],
    )
    .await;
    let mut client = proxy.client().await;
    let call = |name: &str| json!({"name": name, "intent": {"operation_type": "read"}});
    for name in [
        "up:fails",
        "up:breaks",
        "up:fine",
        "up:missing",
        "nobody:fine",
    ] {
        client.call("call_tool_read", &call(name)).await.unwrap();
    }
    client
        .refused("call_tool_read", &json!({"name": "up:fine"}))
        .await;
    let records = proxy.recorded_calls().await;
    let ends = records
        .iter()
        .map(|it| (it["status"].as_str().unwrap(), it["error_code"].as_str()));
    let ends: Vec<_> = ends.collect();
    assert_eq!(
        ends,
        [
            ("error", Some("UPSTREAM_ERROR")),
            ("error", Some("UPSTREAM_ERROR")),
            ("success", None),
            ("blocked", Some("UNKNOWN_TOOL")),
            ("blocked", Some("UNKNOWN_SERVER")),
            ("blocked", Some("MISSING_INTENT")),
        ]
    );
    assert_eq!(records[0]["error_message"], "no paper");
    assert_eq!(only(proxy.list("?q=paper").await)["id"], records[0]["id"]);
}

#[tokio::test]
async fn a_call_whose_client_went_away_is_cancelled() {
    let proxy = Proxy::with(json!({}), [Tool::read_only("hangs").outcome(Outcome::Hang)]).await;
    let session = proxy.daemon.session_with(&["up:hangs"]).await;
    let call = json!({"name": "up:hangs", "intent": {"operation_type": "read"}});
    let params = json!({"name": "call_tool_read", "arguments": call}).to_string();
    let request = format!(r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{params}}}"#);
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#;
    let cancelled = async {
        testkit::wait_until("the call has arrived", testkit::DEADLINE, async || {
            !proxy.record.calls().is_empty()
        })
        .await;
        session.post(cancel).await
    };
    tokio::select! {
        _ = session.post(&request) => {}
        () = async { cancelled.await; std::future::pending().await } => {}
        () = tokio::time::sleep(testkit::DEADLINE) => panic!("the call was not cancelled"),
    }
    testkit::wait_until("the record is cancelled", testkit::DEADLINE, async || {
        proxy.list("?status=cancelled&tool=hangs").await.len() == 1
    })
    .await;
    let cancelled = only(proxy.list("?status=cancelled&tool=hangs").await);
    assert!(
        cancelled["duration_ms"].as_u64().unwrap() > 0,
        "{cancelled}"
    );
    assert_eq!(proxy.list("?status=pending").await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_long_response_is_cut_on_a_character_and_marked() {
    let text = "äöü€".repeat(1_000);
    let result = json!({"content": [{"type": "text", "text": text}]}).to_string();
    let config = json!({"activity": {"max_response_bytes": 1_001}});
    let proxy = Proxy::with(config, [Tool::read_only("look").returns(result.clone())]).await;
    let answer = proxy.client().await.succeed(READ, &json!({})).await;
    assert_eq!(answer.to_string(), result, "the client gets all of it");
    let record = only(proxy.recorded_calls().await);
    assert_eq!(record["response_truncated"], true);
    assert_eq!(record["response_bytes"], result.len());
    let kept = record["response"].as_str().unwrap();
    assert!(result.starts_with(kept), "{kept}");
    assert!((998..=1_001).contains(&kept.len()), "{}", kept.len());
    assert_eq!(proxy.data("/activity/verify").await["valid"], true);
}

#[tokio::test]
async fn without_payloads_only_their_sizes_are_kept() {
    let config = json!({"activity": {"payloads": "none"}});
    let proxy = Proxy::with(config, tools()).await;
    proxy
        .client()
        .await
        .succeed(DESTRUCTIVE, &json!({"n": "not-to-be-kept"}))
        .await;
    let record = only(proxy.recorded_calls().await);
    assert_eq!(record["arguments"], Value::Null);
    assert_eq!(record["response"], Value::Null);
    assert!(record["response_bytes"].as_u64().unwrap() > 0);
    assert_eq!(proxy.data("/activity/verify").await["valid"], true);
    assert!(proxy.list("?q=kept").await.is_empty());
    // That they are not kept is said, and not taken for there having been none.
    let id = record["id"].as_str().unwrap();
    let shown = proxy.daemon.home.cli(["activity", "show", id]).await;
    let size = &record["response_bytes"];
    let request = &record["request_bytes"];
    for line in [
        format!("arguments (in a request of {request} bytes, not kept)"),
        format!("response ({size} bytes as it arrived, not kept)"),
    ] {
        assert!(shown.stdout.contains(&line), "{line}: {}", shown.stdout);
    }
}

#[tokio::test]
async fn without_payloads_nothing_that_an_upstream_says_is_kept() {
    let failing = r#"{"content":[{"type":"text","text":"no paper"}],"isError":true}"#;
    let protocol_error = Outcome::Error {
        code: -32000,
        message: "out of paper".to_owned(),
    };
    let config = json!({"activity": {"payloads": "none"}});
    let tools = [
        Tool::read_only("fails").returns(failing),
        Tool::read_only("breaks").outcome(protocol_error),
    ];
    let proxy = Proxy::with(config, tools).await;
    let mut client = proxy.client().await;
    for name in ["up:fails", "up:breaks"] {
        let call = json!({"name": name, "intent": {"operation_type": "read"}});
        client.call("call_tool_read", &call).await.unwrap();
    }
    for record in proxy.recorded_calls().await {
        assert_eq!(record["error_code"], "UPSTREAM_ERROR", "{record}");
        let message = "the tool answered with an error, whose text is not kept";
        assert_eq!(record["error_message"], message, "{record}");
    }
    assert!(proxy.list("?q=paper").await.is_empty());
    // What is no call is told by its arguments, and stays.
    let started = only(proxy.list("?type=system").await);
    assert_eq!(started["arguments"]["event"], "started", "{started}");
}

#[tokio::test]
async fn servers_config_start_and_stop_are_recorded() {
    let proxy = Proxy::start().await;
    proxy.daemon.session_with(&["up:look"]).await;
    let waiting = async |query: &str| {
        let what = format!("there is a record for {query}");
        testkit::wait_for(&what, testkit::DEADLINE, async || {
            proxy.list(query).await.into_iter().next()
        })
        .await
    };
    let server = waiting("?type=server_change&server=up").await;
    assert_eq!(server["arguments"]["state"], "ready", "{server}");
    let started = waiting("?type=system").await;
    assert_eq!(started["arguments"]["event"], "started", "{started}");
    proxy.daemon.reconfigure(json!({"mcpServers": {}}));
    let change = waiting("?type=config_change").await;
    assert_eq!(
        change["arguments"]["servers_removed"],
        json!(["up"]),
        "{change}"
    );
    let (home, _) = proxy.daemon.stop().await;
    let list = ["activity", "list", "--type", "system", "-o", "json"];
    let listed = home.cli(list).await.json();
    assert_eq!(
        listed["activities"][0]["arguments"]["event"], "stopped",
        "{listed}"
    );
}

#[tokio::test]
async fn the_log_is_read_alike_with_a_daemon_and_without() {
    let proxy = Proxy::start().await;
    proxy.calls(2).await;
    let commands: [&[&str]; 4] = [
        &["activity", "list", "--type", "tool_call", "-o", "json"],
        &[
            "activity",
            "export",
            "--type",
            "tool_call",
            "--format",
            "csv",
        ],
        &[
            "activity",
            "export",
            "--type",
            "tool_call",
            "--include-bodies",
        ],
        &["activity", "summary", "--period", "7d", "-o", "jsonl"],
    ];
    let mut with = Vec::new();
    for command in commands {
        with.push(
            proxy
                .daemon
                .home
                .cli(command)
                .await
                .succeeded()
                .stdout
                .clone(),
        );
    }
    assert_eq!(
        serde_json::from_str::<Value>(&with[2])
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        6
    );
    let (home, _) = proxy.daemon.stop().await;
    for (command, with) in commands.iter().zip(&with) {
        assert_eq!(
            &home.cli(*command).await.succeeded().stdout,
            with,
            "{command:?}"
        );
    }
}

#[tokio::test]
async fn the_lanes_add_up_in_the_summary() {
    let proxy = Proxy::start().await;
    proxy.calls(2).await;
    let (code, _) = {
        let mut client = proxy.client().await;
        client
            .refused("call_tool_read", &DESTRUCTIVE.call(&json!({})))
            .await
    };
    assert_eq!(code, "INTENT_MISMATCH");
    for (by, keys) in [
        ("server", vec![("up", 7)]),
        ("status", vec![("success", 6), ("blocked", 1)]),
        (
            "intent_type",
            vec![("read", 2), ("write", 2), ("destructive", 3)],
        ),
        ("client", vec![("activity-test", 7)]),
        ("tool", vec![("up:look", 2), ("up:save", 2), ("up:wipe", 3)]),
    ] {
        let summary = proxy
            .data(&format!("/activity/summary?period=1h&group_by={by}"))
            .await;
        assert_eq!(summary["total"]["records"], 7, "{summary}");
        for (key, records) in keys {
            let groups = summary["groups"].as_array().unwrap();
            let group = groups.iter().find(|group| group["key"] == key);
            let group = group.unwrap_or_else(|| panic!("no {key} in {summary}"));
            assert_eq!(group["records"], records, "{by} {key}");
        }
    }
    let usage = proxy.data("/activity/usage").await;
    let calls: u64 = usage["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(calls_of)
        .sum();
    assert_eq!(calls, 6, "what was refused was no use: {usage}");
    assert_eq!(LANES.len(), usage["tools"].as_array().unwrap().len());
}

fn calls_of(tool: &Value) -> u64 {
    tool["calls"].as_u64().unwrap()
}

#[tokio::test]
async fn a_call_of_a_tool_that_is_not_there_is_recorded() {
    let proxy = Proxy::start().await;
    let session = proxy.daemon.session_with(&["up:look"]).await;
    session
        .call("call_tool", &WRITE.call(&json!({"n": 1})))
        .await;
    let record = only(proxy.list("?status=blocked").await);
    let expected = json!({
        "type": "tool_call",
        "source": "mcp",
        "server_name": "up",
        "tool_name": "save",
        "arguments": {"n": 1},
        "error_code": "UNKNOWN_TOOL",
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&record[member], value, "{member}");
    }
    assert_eq!(
        record["metadata"]["intent"],
        json!({"operation_type": "write"})
    );
    assert_eq!(record["metadata"]["tool_variant"], Value::Null);
    let message = record["error_message"].as_str().unwrap();
    assert!(message.contains("call_tool_write"), "{message}");

    let params = json!({"name": "upstream_servers", "arguments": {"n": 2}});
    let answer = session.request("tools/call", &params.to_string()).await;
    assert!(answer.result.is_err());
    let record = only(proxy.list("?tool=upstream_servers").await);
    assert_eq!(record["status"], "blocked");
    assert_eq!(record["error_code"], "UNKNOWN_TOOL");
    assert_eq!(record["arguments"], json!({"n": 2}));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_an_error() {
    let home = crate::support::home();
    let servers = json!({"gone": {"command": "no-such-program"}});
    let daemon = testkit::TestDaemon::with_servers(home, servers).await;
    let record = testkit::wait_for("the failure is recorded", testkit::DEADLINE, async || {
        let (_, answer) = crate::support::rest(&daemon, "/activity?status=error").await;
        answer["data"]["activities"].get(0).cloned()
    })
    .await;
    assert_eq!(record["type"], "server_change", "{record}");
    assert_eq!(record["server_name"], "gone");
    assert_eq!(record["error_code"], "SERVER_UNAVAILABLE");
    assert_eq!(record["error_message"], record["arguments"]["error"]);
    let list = ["activity", "list", "--status", "error"];
    let listed = daemon.home.cli(list).await;
    let state = record["arguments"]["state"].as_str().unwrap();
    let shown = format!("{state} (server_change)");
    assert!(
        listed.succeeded().stdout.contains(&shown),
        "{}",
        listed.stdout
    );
}

#[tokio::test]
async fn keeping_less_applies_at_once() {
    let proxy = Proxy::start().await;
    proxy.calls(4).await;
    assert!(proxy.data("/activity").await["total"].as_u64().unwrap() >= 12);
    let config = std::fs::read(proxy.daemon.home.config_file()).unwrap();
    let mut config: Value = serde_json::from_slice(&config).unwrap();
    config["activity"] = json!({"max_records": 5});
    proxy.daemon.reconfigure(config);
    testkit::wait_until("the rest is forgotten", testkit::DEADLINE, async || {
        proxy.data("/activity").await["total"] == 5
    })
    .await;
}
