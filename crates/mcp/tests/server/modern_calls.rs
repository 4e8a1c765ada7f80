//! Calls of modern clients: what comes on their response, and what closing it does.

use std::time::Duration;

use mcp::server::HttpOptions;
use reqwest::StatusCode;
use serde_json::json;

use crate::modern_wire::{able, meta, modern, tool};
use crate::wire::{Endpoint, EventReader, body, soon};

#[tokio::test]
async fn results_keep_their_bytes_and_are_completed() {
    let endpoint = Endpoint::open().await;
    let message = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"z":1.0, "a":1e2},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = endpoint
        .post(message)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo");
    let response = soon(request.send()).await.unwrap();
    let text = soon(response.text()).await.unwrap();
    assert_eq!(
        text,
        r#"{"jsonrpc":"2.0","id":"a","result":{"z":1.0, "a":1e2,"resultType":"complete"}}"#
    );
}

#[tokio::test]
async fn progress_comes_by_events_that_cannot_be_resumed() {
    let endpoint = Endpoint::open().await;
    let mut meta = meta(&able());
    meta["progressToken"] = json!("t");
    let params = json!({"name": "progress", "arguments": {"count": 100}, "_meta": meta});
    let response = endpoint.modern(&modern(1, "tools/call", params)).await;
    let mut events = EventReader::of(response);
    for step in 1..=100 {
        let event = events.next().await.unwrap();
        assert_eq!(event.id, None);
        let message: serde_json::Value = serde_json::from_slice(&event.data).unwrap();
        assert_eq!(message["params"]["progress"], step);
    }
    let rest = events.messages().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn progress_that_nobody_asked_for_is_not_sent() {
    let endpoint = Endpoint::open().await;
    let response = endpoint
        .modern(&tool(1, "progress", &json!({"count": 3})))
        .await;
    assert_eq!(response.headers()["content-type"], "application/json");
}

#[tokio::test]
async fn log_messages_come_only_to_those_who_ask_and_from_their_level_on() {
    let endpoint = Endpoint::open().await;
    let silent = endpoint.modern(&tool(1, "log", &json!({}))).await;
    assert_eq!(silent.headers()["content-type"], "application/json");
    assert_eq!(body(silent).await["result"]["content"][0]["text"], "none");
    for (level, expected) in [("debug", 2), ("error", 1), ("alert", 0)] {
        let mut meta = meta(&able());
        meta["io.modelcontextprotocol/logLevel"] = json!(level);
        let params = json!({"name": "log", "arguments": {}, "_meta": meta});
        let response = endpoint.modern(&modern(1, "tools/call", params)).await;
        let messages = if expected == 0 {
            vec![body(response).await]
        } else {
            EventReader::of(response).messages().await
        };
        assert_eq!(messages.len(), expected + 1, "{level}");
        let answer = messages.last().unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], level);
    }
}

#[tokio::test]
async fn a_panic_costs_one_answer() {
    let endpoint = Endpoint::open().await;
    let answer = endpoint.answer(&tool(1, "panic", &json!({}))).await;
    assert_eq!(answer["error"]["code"], -32603);
    let fine = endpoint.answer(&tool(2, "echo", &json!({}))).await;
    assert!(fine["result"].is_object());
}

#[tokio::test]
async fn the_same_id_twice_is_two_calls() {
    let endpoint = Endpoint::open().await;
    let waiting = tool(1, "wait", &json!({}));
    let (first, ()) = tokio::join!(endpoint.answer(&waiting), async {
        endpoint.script.until(|events| events.begun == 1).await;
        let echo = endpoint.answer(&tool(1, "echo", &json!({}))).await;
        assert!(echo["result"].is_object());
        endpoint.script.release();
    });
    assert_eq!(first["result"]["content"][0]["text"], "released");
}

#[tokio::test]
async fn hanging_up_before_the_answer_began_cancels_the_call() {
    let endpoint = Endpoint::open().await;
    let call = tool(1, "wait", &json!({}));
    let sending = endpoint.modern_post(&call).send();
    tokio::select! {
        _ = sending => panic!("there is no answer yet"),
        () = endpoint.script.until(|events| events.begun == 1) => {}
    }
    endpoint
        .script
        .until(|events| events.cancelled == 1 && events.finished == 1)
        .await;
    assert_eq!(endpoint.script.events.borrow().outbound_gone, 1);
}

#[tokio::test]
async fn closing_the_stream_cancels_the_call() {
    let endpoint = Endpoint::with(HttpOptions {
        patience: Duration::from_millis(10),
        keep_alive: Duration::from_millis(20),
        ..HttpOptions::default()
    })
    .await;
    let call = tool(1, "wait", &json!({}));
    let events = EventReader::of(endpoint.modern(&call).await);
    assert_eq!(endpoint.script.events.borrow().cancelled, 0);
    drop(events);
    endpoint.script.until(|events| events.cancelled == 1).await;
}

#[tokio::test]
async fn reading_to_the_end_is_not_hanging_up() {
    let endpoint = Endpoint::with(HttpOptions {
        patience: Duration::from_millis(10),
        ..HttpOptions::default()
    })
    .await;
    let call = tool(1, "wait", &json!({}));
    let mut events = EventReader::of(endpoint.modern(&call).await);
    endpoint.script.release();
    let answer = events.message().await;
    assert_eq!(answer["result"]["content"][0]["text"], "released");
    assert!(events.next().await.is_none());
    assert_eq!(endpoint.script.events.borrow().cancelled, 0);
}

#[tokio::test]
async fn the_end_of_the_server_cancels_what_runs() {
    let endpoint = Endpoint::open().await;
    let call = tool(1, "wait", &json!({}));
    let (response, ()) = tokio::join!(endpoint.modern(&call), async {
        endpoint.script.until(|events| events.begun == 1).await;
        endpoint.server.end_all_sessions();
    });
    assert_eq!(response.status(), StatusCode::OK);
    assert!(EventReader::of(response).messages().await.is_empty());
    endpoint.script.until(|events| events.cancelled == 1).await;
    // The endpoint itself is still open.
    assert!(endpoint.answer(&tool(2, "echo", &json!({}))).await["result"].is_object());
}
