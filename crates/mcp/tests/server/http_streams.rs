//! Answers by JSON and by events, and streams that are resumed.

use std::time::Duration;

use mcp::Notification;
use mcp::server::HttpOptions;
use reqwest::StatusCode;
use serde_json::json;

use crate::script::raw;
use crate::wire::{Endpoint, EventReader, body, request, soon};

fn hasty() -> HttpOptions {
    HttpOptions {
        patience: Duration::from_millis(20),
        keep_alive: Duration::from_millis(30),
        ..HttpOptions::default()
    }
}

#[tokio::test]
async fn a_quiet_call_is_answered_by_json_with_its_bytes_untouched() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-11-25").await;
    let arguments = r#"{"b":1.0,  "a":12345678901234567890123, "é":"\u00e9"}"#;
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":"α","method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
    );
    let response = endpoint
        .post(message)
        .header("mcp-session-id", &session.id)
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    let text = soon(response.text()).await.unwrap();
    assert_eq!(
        text,
        format!(r#"{{"jsonrpc":"2.0","id":"α","result":{arguments}}}"#)
    );
}

#[tokio::test]
async fn progress_turns_the_answer_into_events_in_order() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    // More than a reader may be behind, so that the service has to wait for it.
    let count = 500;
    let response = session.call(1, "progress", &json!({"count": count})).await;
    let messages = EventReader::of(response).messages().await;
    assert_eq!(messages.len(), count + 1);
    for (step, message) in messages[..count].iter().enumerate() {
        assert_eq!(message["params"]["progress"], json!(step + 1));
    }
    assert_eq!(messages[count]["id"], 1);
    assert_eq!(messages[count]["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn newlines_in_a_result_survive_events() {
    let endpoint = Endpoint::with(hasty()).await;
    let session = endpoint.session("2025-03-26").await;
    let batch = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\n\"a\":\n1}}},\
        {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"progress\",\"arguments\":{\"count\":1}}}]";
    let response = endpoint
        .post(batch)
        .header("mcp-session-id", &session.id)
        .send()
        .await
        .unwrap();
    let mut events = EventReader::of(response);
    assert_eq!(events.message().await["method"], "notifications/progress");
    let event = events.next().await.unwrap();
    assert_eq!(
        event.data,
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\n\"a\":\n1}}"
    );
    assert_eq!(events.message().await["id"], 2);
}

#[tokio::test]
async fn a_slow_answer_becomes_a_stream_that_is_primed_and_kept_alive() {
    let endpoint = Endpoint::with(hasty()).await;
    let session = endpoint.session("2025-11-25").await;
    let mut events = EventReader::of(session.call(1, "wait", &json!({})).await);
    let priming = events.next().await.unwrap();
    assert!(priming.data.is_empty());
    assert!(priming.id.is_some());
    // Java SDK clients fail on the field, and a stream that ends by itself needs none.
    assert_eq!(priming.retry, None);
    // No blank line after a comment, for which some clients dispatch an empty event.
    events.until_seen("\n\n:\n:\n").await;
    endpoint.script.release();
    let messages = events.messages().await;
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["result"]["content"][0]["text"], "released");
}

#[tokio::test]
async fn versions_before_2025_11_25_get_no_priming_event() {
    let endpoint = Endpoint::with(hasty()).await;
    let session = endpoint.session("2025-06-18").await;
    let mut events = EventReader::of(session.call(1, "wait", &json!({})).await);
    endpoint.script.release();
    assert_eq!(events.message().await["id"], 1);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_call_outlives_its_connection_and_its_answer_is_fetched_by_resuming() {
    let endpoint = Endpoint::with(hasty()).await;
    let session = endpoint.session("2025-11-25").await;
    let mut events = EventReader::of(session.call(1, "wait", &json!({})).await);
    let last = events.next().await.unwrap().id.unwrap();
    drop(events);
    endpoint.script.release();
    endpoint.script.until(|events| events.finished == 1).await;
    assert_eq!(endpoint.script.events.borrow().cancelled, 0);

    // Twice, because the first resumption may break off as well.
    for _ in 0..2 {
        let messages = session.resume(&last).await.messages().await;
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0]["id"], 1);
        assert_eq!(messages[0]["result"]["content"][0]["text"], "released");
    }
}

#[tokio::test]
async fn a_resumed_stream_goes_on_after_the_last_event_and_waits_for_the_rest() {
    let endpoint = Endpoint::with(hasty()).await;
    let session = endpoint.session("2025-06-18").await;
    let mut first = EventReader::of(session.call(1, "progress", &json!({"count": 5})).await);
    let mut second = EventReader::of(session.call(2, "wait", &json!({})).await);
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(first.next().await.unwrap());
    }
    drop(first);
    let last = seen[2].id.clone().unwrap();
    let messages = session.resume(&last).await.messages().await;
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["params"]["progress"], 4);
    assert_eq!(messages[2]["id"], 1);
    endpoint.script.release();
    assert_eq!(second.message().await["id"], 2);
}

#[tokio::test]
async fn a_call_that_loses_its_client_before_any_event_still_ends() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let message = crate::wire::call(1, "wait", &json!({}));
    let post = tokio::spawn(session.post(&message).send());
    endpoint.script.until(|events| events.begun == 1).await;
    post.abort();
    let _ = post.await;
    endpoint.script.release();
    endpoint.script.until(|events| events.finished == 1).await;
    assert_eq!(endpoint.script.events.borrow().cancelled, 0);
}

#[tokio::test]
async fn an_event_that_nobody_sent_cannot_be_resumed_from() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    for event in ["99-1", "x", "1-", "-", "18446744073709551616-0"] {
        let request = session.get().header("last-event-id", event);
        let response = soon(request.send()).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{event}");
    }
}

#[tokio::test]
async fn a_question_reaches_the_client_on_the_stream_of_its_call() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let mut events = EventReader::of(session.call(1, "roots", &json!({})).await);
    let question = events.message().await;
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    assert_eq!(session.send(&answer).await.status(), StatusCode::ACCEPTED);
    let result = events.message().await;
    assert_eq!(result["result"]["content"][0]["text"], r#"{"roots":[]}"#);
}

#[tokio::test]
async fn a_notification_may_make_the_service_ask_on_the_listener() {
    let endpoint = Endpoint::with(hasty()).await;
    let session = endpoint.session("2025-06-18").await;
    let mut listener = session.listen().await;
    let ask = crate::wire::notification("notifications/test/ask", &json!({}));
    // Accepted although the service has not got its answer yet.
    assert_eq!(session.send(&ask).await.status(), StatusCode::ACCEPTED);
    let question = listener.message().await;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {}});
    session.send(&answer).await;
    endpoint
        .script
        .until(|events| events.notifications == ["notifications/test/ask"])
        .await;
}

#[tokio::test]
async fn a_client_may_refuse_a_question() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let mut events = EventReader::of(session.call(1, "roots", &json!({})).await);
    let question = events.message().await;
    let refusal = json!({
        "jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "no roots here"},
    });
    session.send(&refusal).await;
    let result = events.message().await;
    assert_eq!(result["result"]["content"][0]["text"], "no roots here");
}

#[tokio::test]
async fn a_question_that_is_given_up_is_taken_back() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let mut events = EventReader::of(session.call(1, "impatient", &json!({})).await);
    let question = events.message().await;
    let cancelled = events.message().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    assert_eq!(events.message().await["id"], 1);
}

#[tokio::test]
async fn a_panic_costs_one_answer() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let answer = body(session.call(1, "panic", &json!({})).await).await;
    assert_eq!(answer["error"]["code"], -32603);
    let answer = body(session.call(2, "echo", &json!({"still": "here"})).await).await;
    assert_eq!(answer["result"]["still"], "here");
}

#[tokio::test]
async fn broadcasts_reach_listeners_and_those_who_listen_later() {
    let endpoint = Endpoint::open().await;
    let listening = endpoint.session("2025-06-18").await;
    let later = endpoint.session("2025-06-18").await;
    let mut events = listening.listen().await;
    let changed = Notification::new(
        "notifications/tools/list_changed",
        Some(raw(r#"{"why":1.0}"#)),
    );
    endpoint.server.broadcast(&changed);
    let expected =
        br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"why":1.0}}"#;
    let event = events.next().await.unwrap();
    assert_eq!(event.data, expected);
    assert_eq!(later.listen().await.next().await.unwrap().data, expected);

    // What happens while nobody listens is there for whoever resumes.
    drop(events);
    endpoint.server.broadcast(&changed);
    let mut resumed = listening.resume(&event.id.unwrap()).await;
    assert_eq!(resumed.next().await.unwrap().data, expected);
}

#[tokio::test]
async fn a_second_listener_takes_over_from_the_first() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let mut first = session.listen().await;
    let mut second = session.listen().await;
    assert!(first.next().await.is_none());
    endpoint.server.broadcast(&Notification::new("one", None));
    assert_eq!(second.message().await["method"], "one");
}

#[tokio::test]
async fn a_listener_that_does_not_read_holds_up_nobody_and_can_resume() {
    let endpoint = Endpoint::open().await;
    let slow = endpoint.session("2025-11-25").await;
    let quick = endpoint.session("2025-11-25").await;
    let mut stuck = slow.listen().await;
    let start = stuck.next().await.unwrap().id.unwrap();
    let mut reading = quick.listen().await;
    reading.next().await.unwrap();

    // Large enough that the sockets between cannot hold it all.
    let filler = "x".repeat(256 * 1024);
    for number in 0..200 {
        let params = raw(&format!(r#"{{"number":{number},"filler":"{filler}"}}"#));
        endpoint
            .server
            .broadcast(&Notification::new("tick", Some(params)));
        assert_eq!(reading.message().await["params"]["number"], number);
        let pong = body(slow.send(&request(number, "ping", &json!({}))).await).await;
        assert_eq!(pong["result"], json!({}));
    }
    drop(stuck);
    endpoint.server.broadcast(&Notification::new("last", None));
    let mut resumed = slow.resume(&start).await;
    loop {
        let message = resumed.message().await;
        if message["method"] == "last" {
            break;
        }
        // The oldest had to make way, but what is left is the newest, without a gap.
        assert!(message["params"]["number"].as_u64().unwrap() > 190);
    }
}
