//! The modern era over a pipe.

use std::sync::Arc;
use std::time::Duration;

use mcp::server::LineOptions;
use serde_json::json;

use crate::modern_wire::{modern, retry, tool};
use crate::stdio::Pipe;
use crate::wire::{notification, request};

#[tokio::test]
async fn requests_are_served_without_a_handshake() {
    let mut pipe = Pipe::open(LineOptions::default());
    let discovered = pipe.ask(modern(1, "server/discover", json!({}))).await;
    let versions = &discovered["result"]["supportedVersions"];
    assert_eq!(versions[0], "2026-07-28", "{versions}");
    let list = pipe.ask(modern(2, "tools/list", json!({}))).await;
    assert_eq!(list["result"]["resultType"], "complete");
    assert_eq!(list["result"]["cacheScope"], "private");
    let who = &list["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(who["name"], "script");
    for method in ["ping", "initialize", "logging/setLevel", "no/such"] {
        let gone = pipe.ask(modern(3, method, json!({}))).await;
        assert_eq!(gone["error"]["code"], -32601, "{method}");
    }
    let incomplete = pipe.ask(request(4, "server/discover", &json!({}))).await;
    assert_eq!(incomplete["error"]["code"], -32602);
    let mut unknown = modern(5, "tools/list", json!({}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v999");
    assert_eq!(pipe.ask(unknown).await["error"]["code"], -32022);
    let (script, rest) = pipe.close().await;
    assert_eq!(rest, "");
    assert_eq!(script.events.borrow().closed, 0);
}

#[tokio::test]
async fn a_client_may_go_back_to_the_handshake() {
    let mut pipe = Pipe::open(LineOptions::default());
    pipe.ask(modern(1, "server/discover", json!({}))).await;
    pipe.hello("2025-06-18").await;
    let list = pipe.ask(request(2, "tools/list", &json!({}))).await;
    assert!(list["result"].get("resultType").is_none());
}

#[tokio::test]
async fn input_is_asked_for_by_the_answer() {
    let mut pipe = Pipe::open(LineOptions::default());
    let call = tool(1, "form", &json!({"tag": "t", "rounds": [["a"]]}));
    let asked = pipe.ask(call.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    let answer = json!({"action": "accept"});
    let state = &asked["result"]["requestState"];
    let result = pipe
        .ask(retry(&call, 2, state, &json!({"a": answer})))
        .await;
    assert_eq!(result["id"], 2);
    assert_eq!(
        result["result"]["content"][0]["text"],
        r#"{"a":{"action":"accept"}}"#
    );
}

#[tokio::test]
async fn a_call_is_cancelled_by_name() {
    let mut pipe = Pipe::open(LineOptions::default());
    pipe.write(&tool(1, "wait", &json!({})).to_string()).await;
    let cancel = notification("notifications/cancelled", &json!({"requestId": 1}));
    pipe.write(&cancel.to_string()).await;
    pipe.script.until(|events| events.cancelled == 1).await;
    let again = pipe.ask(tool(1, "echo", &json!({}))).await;
    assert!(again["result"].is_object());
    let (_, rest) = pipe.close().await;
    assert_eq!(rest, "");
}

#[tokio::test]
async fn subscriptions_share_the_pipe_until_they_are_cancelled() {
    let mut pipe = Pipe::open(LineOptions {
        max_calls: 4,
        ..LineOptions::default()
    });
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a"]});
    let listen = modern(
        7,
        "subscriptions/listen",
        json!({ "notifications": filter }),
    );
    let acknowledged = pipe.ask(listen).await;
    assert_eq!(acknowledged["params"]["notifications"], filter);
    pipe.write(&tool(8, "change", &json!({})).to_string()).await;
    let changed = pipe.read().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    let tag = &changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*tag, 7);
    assert_eq!(pipe.read().await["id"], 8);
    let cancel = notification("notifications/cancelled", &json!({"requestId": 7}));
    pipe.write(&cancel.to_string()).await;
    pipe.script.until(|events| events.closed == 1).await;
    assert_eq!(
        pipe.script.events.borrow().subscriptions,
        ["+test://a", "-test://a"]
    );
    let after = pipe.ask(tool(9, "change", &json!({}))).await;
    assert_eq!(after["id"], 9);
}

#[tokio::test]
async fn the_end_of_the_pipe_ends_subscriptions_and_calls_that_wait() {
    let mut pipe = Pipe::open(LineOptions {
        grace: Duration::from_mins(1),
        ..LineOptions::default()
    });
    let filter = json!({"toolsListChanged": true});
    let listen = modern(
        1,
        "subscriptions/listen",
        json!({ "notifications": filter }),
    );
    pipe.ask(listen).await;
    let call = tool(2, "form", &json!({"tag": "t", "rounds": [["a"]]}));
    assert_eq!(
        pipe.ask(call).await["result"]["resultType"],
        "input_required"
    );
    let script = Arc::clone(&pipe.script);
    let (_, rest) = pipe.close().await;
    assert!(rest.contains(r#""id":1,"result""#), "{rest}");
    script
        .until(|events| events.outbound_gone == 1 && events.closed == 1)
        .await;
}
