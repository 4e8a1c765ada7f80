//! What agents and upstreams send cannot make the log large, nor push out of it what matters.

use std::collections::BTreeSet;

use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::{DEADLINE, Outcome, Tool, wait_until};

use crate::support::{DESTRUCTIVE, Proxy, READ, WRITE, database, rest_text, tools};
use crate::wire::McpClient;

/// A call that is always refused: the tool is destructive.
async fn refuse(client: &mut McpClient, arguments: &Value) {
    let arguments = json!({
        "name": "up:wipe",
        "args": arguments,
        "intent": {"operation_type": "read"},
    });
    let (code, _) = client.refused(READ.variant, &arguments).await;
    assert_eq!(code, "SERVER_MISMATCH");
}

/// Every refusal gets a record of its own.
fn without_counting(mut config: Value) -> Value {
    config["limits"] = json!({"refusal_records": 1_000_000});
    config
}

#[tokio::test]
async fn large_errors_and_names_leave_small_records_and_lists() {
    let failing = Tool::read_only("look").outcome(Outcome::Error {
        code: -32_000,
        message: "x y ".repeat(2_500_000),
    });
    let proxy = Proxy::with(json!({}), [failing]).await;
    proxy.daemon.session_with(&["up:look"]).await;
    let mut client = proxy.client().await;
    for number in 0..10 {
        let arguments = READ.call(&json!({"n": number}));
        let result = client.call(READ.variant, &arguments).await.unwrap();
        assert_eq!(result["isError"], true);
        let named = json!({
            "name": format!("nope{number}:{}", "n".repeat(1_000_000)),
            "args": {"n": "a".repeat(1_000_000)},
            "intent": {"operation_type": "read", "reason": "r".repeat(900)},
        });
        client.refused(READ.variant, &named).await;
    }
    for (filter, most) in [("status=error", 30_000), ("status=blocked", 1_000_000)] {
        let path = format!("/activity?limit=100&{filter}");
        let (status, list) = rest_text(&proxy.daemon, &path).await;
        assert_eq!(status, 200);
        assert!(list.len() < most, "{} bytes", list.len());
    }
    let calls = proxy.recorded_calls().await;
    assert_eq!(calls.len(), 20);
    for call in &calls {
        let characters = |name: &str| call[name].as_str().map_or(0, |text| text.chars().count());
        assert!(characters("error_message") <= 2_000);
        assert!(characters("tool_name") <= 256 && characters("server_name") <= 256);
    }
    let failed = calls.iter().find(|call| call["status"] == "error").unwrap();
    assert!(failed["error_message"].as_str().unwrap().ends_with('…'));
    let refused = calls.iter().find(|call| call["status"] == "blocked");
    let id = refused.unwrap()["id"].as_str().unwrap();
    let refused = proxy.data(&format!("/activity/{id}")).await;
    assert_eq!(refused["arguments_truncated"], true);
    assert!(refused["arguments"].as_str().unwrap().len() <= 65_536);
    assert!(refused["request_bytes"].as_u64().unwrap() > 1_000_000);
    let output = proxy.daemon.home.cli(["activity", "show", id]).await;
    assert!(output.succeeded().stdout.contains("cut here"));
    assert_eq!(proxy.data("/activity/verify").await["valid"], true);
    let (home, status) = proxy.daemon.stop().await;
    assert!(status.success(), "{status}");
    let size = std::fs::metadata(database(&home)).unwrap().len();
    assert!(size < 2_000_000, "{size}");
}

#[tokio::test]
async fn refused_calls_do_not_push_writes_out_of_the_log() {
    let config = json!({"activity": {"max_records": 100}});
    let proxy = Proxy::with(without_counting(config), tools()).await;
    let mut client = proxy.client().await;
    let mut kept = BTreeSet::new();
    for number in 0..10 {
        client.succeed(WRITE, &json!({"n": number})).await;
        client.succeed(DESTRUCTIVE, &json!({"n": number})).await;
    }
    for record in proxy.list("?limit=100").await {
        if record["metadata"]["tool_variant"].is_string() {
            kept.insert(record["id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(kept.len(), 20);
    for number in 0..1_000 {
        refuse(&mut client, &json!({"n": number})).await;
        if number % 100 == 99 {
            // It is pruned while it grows, not some minutes later.
            let total = proxy.data("/activity?limit=1").await["total"].as_u64();
            assert!(total.unwrap() <= 111, "{total:?}");
        }
    }
    for id in &kept {
        proxy.data(&format!("/activity/{id}")).await;
    }
    let verified = proxy.data("/activity/verify").await;
    assert_eq!(verified["valid"], true, "{verified}");
    assert!(verified["checkpoint"]["removed_records"].as_u64().unwrap() > 800);
    // The same of what a filter finds, and after a restart.
    let writes = proxy.list("?intent_type=write").await;
    assert_eq!(writes.len(), 10);
    let (home, status) = proxy.daemon.stop().await;
    assert!(status.success(), "{status}");
    home.cli(["activity", "verify"]).await.succeeded();
    for id in &kept {
        home.cli(["activity", "show", id]).await.succeeded();
    }
}

/// What the records of counts say in all, and how many refusals have a record of their own.
async fn counted_and_recorded(proxy: &Proxy) -> (u64, u64) {
    let mut counted = 0;
    for record in proxy.list("?type=system&status=blocked&limit=100").await {
        assert_eq!(record["error_code"], "RECORDS_COUNTED", "{record}");
        let id = record["id"].as_str().unwrap();
        let record = proxy.data(&format!("/activity/{id}")).await;
        let response = &record["response"];
        counted += response["count"].as_u64().unwrap();
        assert_eq!(
            response["kinds"][0]["code"], "SERVER_MISMATCH",
            "{response}"
        );
        assert_eq!(response["kinds"][0]["client_name"], "activity-test");
    }
    let recorded = proxy.data("/activity?type=policy_decision&limit=1").await;
    (counted, recorded["total"].as_u64().unwrap())
}

#[tokio::test]
async fn more_refusals_than_get_a_record_are_counted_and_none_is_lost() {
    let config = json!({"limits": {"refusal_records": 2, "refusal_window": "1s"}});
    let proxy = Proxy::with(config, tools()).await;
    let mut client = proxy.client().await;
    for number in 0..500 {
        refuse(&mut client, &json!({"n": number})).await;
    }
    // Calls of other kinds go on being recorded one by one.
    client.succeed(WRITE, &json!({"n": 1})).await;
    wait_until("all are counted or recorded", DEADLINE, async || {
        let (counted, recorded) = counted_and_recorded(&proxy).await;
        counted + recorded == 500
    })
    .await;
    let (counted, recorded) = counted_and_recorded(&proxy).await;
    assert!(recorded >= 20 && counted >= 200, "{counted} {recorded}");
    assert_eq!(proxy.list("?intent_type=write").await.len(), 1);
    assert_eq!(proxy.data("/activity/verify").await["valid"], true);
}

#[tokio::test]
async fn counts_are_recorded_when_the_daemon_stops() {
    let config = json!({"limits": {"refusal_records": 1, "refusal_window": "1h"}});
    let proxy = Proxy::with(config, tools()).await;
    let mut client = proxy.client().await;
    for number in 0..100 {
        refuse(&mut client, &json!({"n": number})).await;
    }
    let (home, status) = proxy.daemon.stop().await;
    assert!(status.success(), "{status}");
    let filter = ["--type", "system", "--status", "blocked"];
    let output = home
        .cli(
            [
                &[
                    "activity",
                    "export",
                    "--format",
                    "jsonl",
                    "--include-bodies",
                ][..],
                &filter,
            ]
            .concat(),
        )
        .await;
    let record: Value = serde_json::from_str(&output.succeeded().stdout).unwrap();
    let counted = record["response"]["count"].as_u64().unwrap();
    assert!((50..=90).contains(&counted), "{record}");
    home.cli(["activity", "verify"]).await.succeeded();
}

#[tokio::test]
async fn records_that_were_hidden_from_filters_are_missed_and_found_again() {
    let proxy = Proxy::with(without_counting(json!({})), tools()).await;
    let mut client = proxy.client().await;
    client.succeed(DESTRUCTIVE, &json!({"n": 1})).await;
    for number in 0..1_100 {
        refuse(&mut client, &json!({"n": number})).await;
    }
    let (home, _) = proxy.daemon.stop().await;
    let found = async |home: &testkit::Home| {
        let arguments = [
            "activity",
            "list",
            "--intent-type",
            "destructive",
            "-o",
            "json",
        ];
        let listed: Value = home.cli(arguments).await.succeeded().json();
        listed["total"].as_u64().unwrap()
    };
    assert_eq!(found(&home).await, 1);
    home.cli(["activity", "verify"]).await.succeeded();
    let connection = Connection::open(database(&home)).unwrap();
    connection.execute_batch("DELETE FROM terms").unwrap();
    drop(connection);
    let output = home.cli(["activity", "verify"]).await;
    output.ended_with(1);
    assert!(output.stderr.contains("index"), "{}", output.stderr);

    let daemon = testkit::TestDaemon::start(home, json!({})).await;
    assert_eq!(found(&daemon.home).await, 1);
    daemon.home.cli(["activity", "verify"]).await.succeeded();
    let log = daemon.log();
    assert!(log.contains("has been rebuilt"), "{log}");
}
