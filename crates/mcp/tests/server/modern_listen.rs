//! Streams of subscriptions.

use mcp::Notification;
use mcp::server::HttpOptions;
use serde_json::{Value, json};

use crate::modern_wire::{modern, tool};
use crate::script::raw;
use crate::wire::{Endpoint, EventReader, body};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(id: u64, filter: &Value) -> Value {
    modern(
        id,
        "subscriptions/listen",
        json!({ "notifications": filter }),
    )
}

async fn listening(endpoint: &Endpoint, id: u64, filter: Value) -> (EventReader, Value) {
    let mut events = EventReader::of(endpoint.modern(&listen(id, &filter)).await);
    let first = events.message().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"][TAG], id);
    let accepted = first["params"]["notifications"].clone();
    (events, accepted)
}

fn updated(uri: &str) -> Notification {
    let params = format!(r#"{{"uri":"{uri}"}}"#);
    Notification::new("notifications/resources/updated", Some(raw(&params)))
}

fn changed(what: &str) -> Notification {
    Notification::new(format!("notifications/{what}/list_changed"), None)
}

#[tokio::test]
async fn each_stream_hears_what_it_asked_for_under_its_own_name() {
    let endpoint = Endpoint::open().await;
    let (mut tools, accepted) = listening(&endpoint, 1, json!({"toolsListChanged": true})).await;
    assert_eq!(accepted, json!({"toolsListChanged": true}));
    let both = json!({"toolsListChanged": true, "resourcesListChanged": true});
    let (mut all, _) = listening(&endpoint, 2, both).await;
    endpoint.server.broadcast(&changed("resources"));
    endpoint.server.broadcast(&changed("tools"));
    let resources = all.message().await;
    assert_eq!(resources["method"], "notifications/resources/list_changed");
    for (events, id) in [(&mut all, 2), (&mut tools, 1)] {
        let message = events.message().await;
        assert_eq!(message["method"], "notifications/tools/list_changed");
        assert_eq!(message["params"]["_meta"][TAG], id);
    }
}

#[tokio::test]
async fn what_a_call_changes_is_told_to_those_who_listen_and_not_to_the_call() {
    let endpoint = Endpoint::open().await;
    let (mut events, _) = listening(&endpoint, 1, json!({"toolsListChanged": true})).await;
    let answer = endpoint.modern(&tool(2, "change", &json!({}))).await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    let message = events.message().await;
    assert_eq!(message["method"], "notifications/tools/list_changed");
    // A session hears of the same through its own call.
    let session = endpoint.session("2025-06-18").await;
    let response = session.call(1, "change", &json!({})).await;
    let messages = EventReader::of(response).messages().await;
    assert_eq!(messages[0]["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn what_the_server_does_not_offer_is_not_acknowledged() {
    let endpoint = Endpoint::open().await;
    let filter = json!({"promptsListChanged": true, "toolsListChanged": false});
    let (mut events, accepted) = listening(&endpoint, 1, filter).await;
    assert_eq!(accepted, json!({}));
    endpoint.server.broadcast(&changed("prompts"));
    endpoint.server.broadcast(&changed("tools"));
    endpoint.server.end_all_sessions();
    let rest = events.messages().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["id"], 1);
    assert_eq!(rest[0]["result"]["resultType"], "complete");
    assert_eq!(rest[0]["result"]["_meta"][TAG], 1);
}

#[tokio::test]
async fn resources_are_subscribed_to_as_long_as_the_stream_lasts() {
    let endpoint = Endpoint::open().await;
    let filter = json!({"resourceSubscriptions": ["test://a", "secret:b", "test://c"]});
    let (mut events, accepted) = listening(&endpoint, 1, filter).await;
    assert_eq!(
        accepted,
        json!({"resourceSubscriptions": ["test://a", "test://c"]})
    );
    assert_eq!(
        endpoint.script.events.borrow().subscriptions,
        ["+test://a", "+test://c"]
    );
    let connections = endpoint.server.connections();
    assert_eq!(connections.len(), 1);
    assert_eq!(connections[0].protocol.as_str(), "2026-07-28");
    for uri in ["secret:b", "test://c"] {
        connections[0]
            .outbound()
            .notify(updated(uri))
            .await
            .unwrap();
    }
    let message = events.message().await;
    assert_eq!(message["params"]["uri"], "test://c");
    assert_eq!(message["params"]["_meta"][TAG], 1);
    drop(events);
    endpoint.script.until(|events| events.closed == 1).await;
    assert_eq!(
        endpoint.script.events.borrow().subscriptions[2..],
        ["-test://a", "-test://c"]
    );
    assert!(endpoint.server.connections().is_empty());
    assert!(
        connections[0]
            .outbound()
            .notify(updated("test://c"))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_listener_that_must_not_be_is_refused() {
    let endpoint = Endpoint::with(HttpOptions {
        max_sessions: 1,
        ..HttpOptions::default()
    })
    .await;
    let broken = modern(1, "subscriptions/listen", json!({"notifications": 7}));
    assert_eq!(endpoint.answer(&broken).await["error"]["code"], -32602);
    let missing = modern(1, "subscriptions/listen", json!({}));
    assert_eq!(endpoint.answer(&missing).await["error"]["code"], -32602);
    let (_events, _) = listening(&endpoint, 1, json!({"toolsListChanged": true})).await;
    let second = endpoint
        .modern(&listen(2, &json!({"toolsListChanged": true})))
        .await;
    assert_eq!(body(second).await["error"]["code"], -32000);
}
