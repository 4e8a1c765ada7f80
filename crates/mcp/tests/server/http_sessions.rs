//! How long sessions live, how many there may be, and whose they are.

use std::time::Duration;

use mcp::server::HttpOptions;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::wire::{Endpoint, EventReader, body, call, hello, request, soon};

#[tokio::test]
async fn a_session_expires_when_it_is_idle_but_not_while_it_listens_or_works() {
    let endpoint = Endpoint::with(HttpOptions {
        idle_timeout: Duration::from_millis(200),
        ..HttpOptions::default()
    })
    .await;
    let idle = endpoint.session("2025-06-18").await;
    let listening = endpoint.session("2025-06-18").await;
    let working = endpoint.session("2025-06-18").await;
    let mut events = listening.listen().await;
    let message = call(1, "wait", &json!({}));
    let (answer, ()) = tokio::join!(working.send(&message), async {
        endpoint.script.until(|events| events.begun == 1).await;
        endpoint.script.until(|events| events.closed == 1).await;
        let ping = request(1, "ping", &json!({}));
        assert_eq!(idle.send(&ping).await.status(), StatusCode::NOT_FOUND);
        assert_eq!(listening.send(&ping).await.status(), StatusCode::OK);
        assert_eq!(endpoint.server.session_count(), 2);
        endpoint.script.release();
    });
    assert_eq!(answer.status(), StatusCode::OK);
    // Nobody listens or works any more, so these two go as well.
    endpoint
        .server
        .broadcast(&mcp::Notification::new("bye", None));
    events.message().await;
    drop(events);
    endpoint.script.until(|events| events.closed == 3).await;
    assert_eq!(endpoint.server.session_count(), 0);
}

#[tokio::test]
async fn a_call_that_its_client_left_does_not_keep_the_session() {
    let endpoint = Endpoint::with(HttpOptions {
        idle_timeout: Duration::from_millis(100),
        patience: Duration::from_millis(10),
        ..HttpOptions::default()
    })
    .await;
    let session = endpoint.session("2025-11-25").await;
    let mut events = EventReader::of(session.call(1, "wait", &json!({})).await);
    events.next().await.unwrap();
    drop(events);
    endpoint
        .script
        .until(|events| events.closed == 1 && events.cancelled == 1)
        .await;
    assert_eq!(endpoint.server.session_count(), 0);
}

#[tokio::test]
async fn a_new_session_costs_the_one_that_was_idle_for_longest() {
    let endpoint = Endpoint::with(HttpOptions {
        max_sessions: 3,
        ..HttpOptions::default()
    })
    .await;
    let listening = endpoint.session("2025-06-18").await;
    let _events = listening.listen().await;
    let oldest = endpoint.session("2025-06-18").await;
    let newer = endpoint.session("2025-06-18").await;
    let newest = endpoint.session("2025-06-18").await;
    let ping = request(1, "ping", &json!({}));
    assert_eq!(oldest.send(&ping).await.status(), StatusCode::NOT_FOUND);
    for session in [&listening, &newer, &newest] {
        assert_eq!(session.send(&ping).await.status(), StatusCode::OK);
    }
    assert_eq!(endpoint.script.events.borrow().closed, 1);
}

#[tokio::test]
async fn sessions_that_were_only_opened_cost_none_in_use() {
    let endpoint = Endpoint::with(HttpOptions {
        max_sessions: 4,
        ..HttpOptions::default()
    })
    .await;
    let ping = request(1, "ping", &json!({}));
    let mut used = Vec::new();
    for _ in 0..3 {
        let session = endpoint.session("2025-06-18").await;
        assert_eq!(session.send(&ping).await.status(), StatusCode::OK);
        used.push(session);
    }
    for _ in 0..20 {
        let opened = endpoint.session("2025-06-18").await;
        let initialized = crate::wire::notification("notifications/initialized", &json!({}));
        assert_eq!(
            opened.send(&initialized).await.status(),
            StatusCode::ACCEPTED
        );
    }
    for session in &used {
        assert_eq!(session.send(&ping).await.status(), StatusCode::OK);
    }
    assert_eq!(endpoint.script.events.borrow().closed, 19);
}

#[tokio::test]
async fn a_client_that_says_too_much_of_itself_gets_no_session() {
    let endpoint = Endpoint::with(HttpOptions {
        session_bytes: 1_000,
        ..HttpOptions::default()
    })
    .await;
    let large = json!({"x": "x".repeat(2_000)});
    let mut legacy: Value = serde_json::from_str(&hello("2025-06-18")).unwrap();
    legacy["params"]["capabilities"] = large.clone();
    let refused = body(endpoint.post(legacy.to_string()).send().await.unwrap()).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("at most 1000 are accepted"), "{said}");
    assert_eq!(endpoint.server.session_count(), 0);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": large});
    let modern = request(1, "tools/list", &json!({"_meta": meta}));
    let refused = body(endpoint.post(modern.to_string()).send().await.unwrap()).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test]
async fn a_busy_session_is_not_given_up_for_a_new_one() {
    let endpoint = Endpoint::with(HttpOptions {
        max_sessions: 1,
        ..HttpOptions::default()
    })
    .await;
    let busy = endpoint.session("2025-06-18").await;
    let message = call(1, "wait", &json!({}));
    let (answer, ()) = tokio::join!(busy.send(&message), async {
        endpoint.script.until(|events| events.begun == 1).await;
        let refused = endpoint.post(hello("2025-06-18")).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        endpoint.script.release();
    });
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_session_belongs_to_whoever_opened_it() {
    let endpoint = Endpoint::open().await;
    let response = endpoint
        .post(hello("2025-06-18"))
        .header("x-principal", "alice")
        .send()
        .await
        .unwrap();
    let id = response.headers()["mcp-session-id"].clone();
    let ping = |principal: &'static str| {
        endpoint
            .post(request(1, "ping", &json!({})).to_string())
            .header("mcp-session-id", id.clone())
            .header("x-principal", principal)
            .send()
    };
    assert_eq!(soon(ping("alice")).await.unwrap().status(), StatusCode::OK);
    assert_eq!(
        soon(ping("mallory")).await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
    let connections = endpoint.server.connections();
    assert_eq!(connections[0].session.as_str(), id.to_str().unwrap());
    assert!(endpoint.server.end_session(&connections[0].session));
    assert!(!endpoint.server.end_session(&connections[0].session));
    assert_eq!(
        soon(ping("alice")).await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn dropping_the_server_ends_its_sessions() {
    let script = crate::script::Script::new();
    let server =
        mcp::server::HttpServer::new(std::sync::Arc::clone(&script), HttpOptions::default());
    let hello = http::Request::post("/")
        .header("content-type", "application/json")
        .body(axum::body::Body::from(hello("2025-06-18")))
        .unwrap();
    assert_eq!(server.handle(hello).await.status(), StatusCode::OK);
    assert_eq!(server.session_count(), 1);
    drop(server);
    script.until(|events| events.closed == 1).await;
}

#[tokio::test]
async fn notifications_reach_the_service() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let initialized = crate::wire::notification("notifications/initialized", &json!({}));
    let changed = crate::wire::notification("notifications/roots/list_changed", &json!({}));
    for message in [&initialized, &changed] {
        let response = session.send(message).await;
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        assert!(soon(response.bytes()).await.unwrap().is_empty());
    }
    let notifications = endpoint.script.events.borrow().notifications.clone();
    assert_eq!(notifications, ["notifications/roots/list_changed"]);
    let again = body(session.send(&request(9, "tools/list", &json!({}))).await).await;
    assert_eq!(again["result"]["tools"][0]["name"], "echo");
}
