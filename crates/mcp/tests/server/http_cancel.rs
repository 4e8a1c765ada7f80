//! The ends of calls that nobody wants to see the end of.

use std::time::Duration;

use mcp::server::HttpOptions;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::wire::{Endpoint, EventReader, Session, body, call, notification, soon};

async fn cancel(session: &Session<'_>, id: &Value) {
    let message = notification("notifications/cancelled", &json!({"requestId": id}));
    assert_eq!(session.send(&message).await.status(), StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_cancelled_call_is_told_and_gets_no_answer() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-11-25").await;
    let message = call(1, "wait", &json!({}));
    let (response, ()) = tokio::join!(session.send(&message), async {
        endpoint.script.until(|events| events.begun == 1).await;
        cancel(&session, &json!("1")).await;
        cancel(&session, &json!(2)).await;
        assert_eq!(endpoint.script.events.borrow().cancelled, 0);
        cancel(&session, &json!(1)).await;
        endpoint.script.until(|events| events.cancelled == 1).await;
    });
    let mut events = EventReader::of(response);
    assert!(events.next().await.is_none());
    endpoint.script.until(|events| events.finished == 1).await;
    assert_eq!(endpoint.script.events.borrow().outbound_gone, 1);
}

#[tokio::test]
async fn a_call_that_already_streams_is_cancelled_alike() {
    let endpoint = Endpoint::with(HttpOptions {
        patience: Duration::from_millis(10),
        ..HttpOptions::default()
    })
    .await;
    let session = endpoint.session("2025-11-25").await;
    let mut events = EventReader::of(session.call(1, "wait", &json!({})).await);
    cancel(&session, &json!(1)).await;
    assert!(events.messages().await.is_empty());
    endpoint.script.until(|events| events.cancelled == 1).await;
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_until_it_is_answered() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let message = call(1, "wait", &json!({}));
    let (first, ()) = tokio::join!(session.send(&message), async {
        endpoint.script.until(|events| events.begun == 1).await;
        let second = body(session.call(1, "echo", &json!({})).await).await;
        assert_eq!(second["error"]["code"], -32600);
        endpoint.script.release();
    });
    assert!(body(first).await["result"].is_object());
    let third = body(session.call(1, "echo", &json!({})).await).await;
    assert!(third["result"].is_object());
}

#[tokio::test]
async fn the_same_id_in_two_sessions_is_two_calls() {
    let endpoint = Endpoint::open().await;
    let one = endpoint.session("2025-06-18").await;
    let two = endpoint.session("2025-06-18").await;
    let message = call(1, "wait", &json!({}));
    let (first, ()) = tokio::join!(one.send(&message), async {
        endpoint.script.until(|events| events.begun == 1).await;
        cancel(&two, &json!(1)).await;
        assert!(body(two.call(1, "echo", &json!({})).await).await["result"].is_object());
        endpoint.script.release();
    });
    assert_eq!(
        body(first).await["result"]["content"][0]["text"],
        "released"
    );
}

#[tokio::test]
async fn the_end_of_a_session_cancels_its_calls_and_closes_its_streams() {
    let endpoint = Endpoint::with(HttpOptions {
        patience: Duration::from_millis(10),
        ..HttpOptions::default()
    })
    .await;
    let session = endpoint.session("2025-06-18").await;
    let mut listener = session.listen().await;
    let mut streaming = EventReader::of(session.call(1, "wait", &json!({})).await);
    let mut asking = EventReader::of(session.call(2, "roots", &json!({})).await);
    asking.message().await;
    assert_eq!(session.delete().await, StatusCode::NO_CONTENT);
    assert!(listener.next().await.is_none());
    assert!(streaming.next().await.is_none());
    assert!(asking.next().await.is_none());
    endpoint
        .script
        .until(|events| events.cancelled == 1 && events.finished == 2 && events.closed == 1)
        .await;
    assert_eq!(session.delete().await, StatusCode::NOT_FOUND);
    let after = soon(session.post(&call(3, "echo", &json!({}))).send())
        .await
        .unwrap();
    assert_eq!(after.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_call_that_waits_for_json_learns_that_its_session_ended() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let message = call(1, "wait", &json!({}));
    let (response, ()) = tokio::join!(session.send(&message), async {
        endpoint.script.until(|events| events.begun == 1).await;
        endpoint.server.end_all_sessions();
    });
    // 404 would make the client send the call again, although it ran.
    let answer = body(response).await;
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("may have been carried out"), "{message}");
}
