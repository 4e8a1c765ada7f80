//! The wire towards clients: versions, sessions, and what a client may leave out.

use serde_json::{Value, json};
use testkit::{TestDaemon, http_client};

use crate::support::home;

async fn daemon() -> TestDaemon {
    TestDaemon::with_servers(home(), json!({})).await
}

/// Posts without any of the headers a session adds.
async fn post(daemon: &TestDaemon, session: Option<&str>, body: &Value) -> reqwest::Response {
    let mut request = http_client()
        .post(daemon.url("/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body.to_string());
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    request.send().await.unwrap()
}

fn initialize(version: &str) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

#[tokio::test]
async fn every_legacy_version_is_spoken_and_others_get_the_latest() {
    let daemon = daemon().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let answer = post(&daemon, None, &initialize(version))
            .await
            .text()
            .await
            .unwrap();
        assert!(
            answer.contains(&format!("\"protocolVersion\":\"{version}\"")),
            "{answer}"
        );
    }
    let answer = post(&daemon, None, &initialize("1999-01-01"))
        .await
        .text()
        .await
        .unwrap();
    assert!(
        answer.contains("\"protocolVersion\":\"2025-11-25\""),
        "{answer}"
    );
}

#[tokio::test]
async fn a_client_may_leave_out_the_version_header() {
    let daemon = daemon().await;
    let session = daemon.session().await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let answer = post(&daemon, Some(session.id()), &list).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.text().await.unwrap().contains("retrieve_tools"));
}

#[tokio::test]
async fn a_session_that_is_unknown_or_ended_is_not_found() {
    let daemon = daemon().await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    assert_eq!(post(&daemon, Some("made-up"), &list).await.status(), 404);
    assert_eq!(post(&daemon, None, &list).await.status(), 400);
    let session = daemon.session().await;
    let ended = http_client()
        .delete(daemon.url("/mcp"))
        .header("mcp-session-id", session.id())
        .send()
        .await
        .unwrap();
    assert!(ended.status().is_success(), "{}", ended.status());
    assert_eq!(post(&daemon, Some(session.id()), &list).await.status(), 404);
}

#[tokio::test]
async fn ping_is_answered_and_the_capabilities_are_true() {
    let daemon = daemon().await;
    let session = daemon.session().await;
    assert_eq!(session.request("ping", "{}").await.result.unwrap(), "{}");
    let answer = post(&daemon, None, &initialize("2025-11-25"))
        .await
        .text()
        .await
        .unwrap();
    // The tools are six whatever is connected, so their list does not change.
    assert!(answer.contains("\"tools\":{}"), "{answer}");
    for (capability, method) in [("prompts", "prompts/list"), ("resources", "resources/list")] {
        assert!(answer.contains(&format!("\"{capability}\"")), "{answer}");
        assert!(session.request(method, "{}").await.result.is_ok());
    }
    let level = session.request("logging/setLevel", r#"{"level":"info"}"#);
    assert!(level.await.result.is_ok());
    assert!(session.request("no/such", "{}").await.result.is_err());
}

#[tokio::test]
async fn ids_of_every_kind_come_back_as_they_were() {
    let daemon = daemon().await;
    let session = daemon.session().await;
    for id in ["0", "-7", "9007199254740993", "\"text\"", "\"\"", "\"7\""] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let reply = session.post(&body).await;
        assert!(
            reply.body.contains(&format!("\"id\":{id}")),
            "{id}: {}",
            reply.body
        );
    }
}

#[tokio::test]
async fn health_and_readiness_are_told() {
    let daemon = daemon().await;
    for path in ["/healthz", "/readyz"] {
        let answer = http_client().get(daemon.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
    }
}
