//! The client over pipes: calls, cancellation, what the server asks, and the end of either side.

use std::time::Duration;

use mcp::client::{Client, CloseReason, Origin, RequestError, RequestOptions};
use serde_json::{Value, json};

use crate::support::{
    Heard, LINE_LIMIT, connect, deadline, eventually, hello, initialize_result, options, pipes,
    raw, recorder, response,
};

fn within(timeout: Duration) -> RequestOptions {
    RequestOptions {
        timeout: Some(timeout),
        ..options()
    }
}

#[tokio::test]
async fn the_handshake_says_who_both_are() {
    deadline(async {
        let (reader, writer, mut peer) = pipes();
        let connecting = Client::connect_lines(reader, writer, LINE_LIMIT, hello(), ());
        let serving = async {
            let initialize = peer.read().await;
            assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
            assert_eq!(initialize["params"]["clientInfo"]["name"], "tester");
            peer.write(&response(&initialize["id"], &initialize_result()))
                .await;
            assert_eq!(
                peer.read().await,
                json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
            );
        };
        let (client, ()) = tokio::join!(connecting, serving);
        let handshake = client.unwrap().handshake();
        assert_eq!(handshake.server.name, "scripted");
        assert!(handshake.announces_tool_changes());
    })
    .await;
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order() {
    deadline(async {
        let (client, mut peer) = connect(()).await;
        let first = client.request("one", None, options());
        let second = client.request("two", None, options());
        let serving = async {
            let (one, two) = (peer.read().await, peer.read().await);
            peer.write(&json!({"jsonrpc": "2.0", "id": 999, "result": "nobody's"}))
                .await;
            peer.write(&json!({"jsonrpc": "2.0", "id": "x", "result": "nobody's"}))
                .await;
            peer.write(&response(&two["id"], &two["method"])).await;
            peer.write(&response(&one["id"], &one["method"])).await;
        };
        let (first, second, ()) = tokio::join!(first, second, serving);
        assert_eq!(first.unwrap().get(), "\"one\"");
        assert_eq!(second.unwrap().get(), "\"two\"");
    })
    .await;
}

#[tokio::test]
async fn an_error_answer_keeps_code_and_data() {
    deadline(async {
        let (client, mut peer) = connect(()).await;
        let serving = async {
            let call = peer.read().await;
            let error = json!({"code": -32602, "message": "no", "data": {"b": 1, "a": 2}});
            peer.write(&json!({"jsonrpc": "2.0", "id": call["id"], "error": error}))
                .await;
        };
        let (outcome, ()) = tokio::join!(client.request("call", None, options()), serving);
        let Err(RequestError::Rpc(error)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(error.code, -32602);
        assert_eq!(error.data.unwrap().get(), r#"{"b":1,"a":2}"#);
    })
    .await;
}

#[tokio::test]
async fn dropping_a_call_cancels_it_and_its_late_answer_is_ignored() {
    deadline(async {
        let (client, mut peer) = connect(()).await;
        let call = tokio::select! {
            _ = client.request("slow", None, options()) => panic!("nobody answered"),
            call = peer.read() => call,
        };
        assert_eq!(
            peer.read().await,
            json!({
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": call["id"]},
            })
        );
        peer.write(&response(&call["id"], &json!("late"))).await;
        let serving = async {
            let next = peer.read().await;
            peer.write(&response(&next["id"], &json!("fine"))).await;
        };
        let (outcome, ()) = tokio::join!(client.request("next", None, options()), serving);
        assert_eq!(outcome.unwrap().get(), "\"fine\"");
    })
    .await;
}

#[tokio::test]
async fn a_timeout_cancels_with_a_reason() {
    deadline(async {
        let (client, mut peer) = connect(()).await;
        let after = Duration::from_millis(20);
        let outcome = client.request("slow", None, within(after)).await;
        assert!(matches!(outcome, Err(RequestError::Timeout { after: it }) if it == after));
        let call = peer.read().await;
        let cancelled = peer.read().await;
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
        assert_eq!(cancelled["params"]["reason"], "timed out after 20 ms");
    })
    .await;
}

#[tokio::test]
async fn giving_up_on_initialize_is_not_announced() {
    deadline(async {
        let (reader, writer, mut peer) = pipes();
        tokio::select! {
            _ = Client::connect_lines(reader, writer, LINE_LIMIT, hello(), ()) => unreachable!(),
            initialize = peer.read() => assert_eq!(initialize["method"], "initialize"),
        }
        assert_eq!(peer.try_read().await, None);
    })
    .await;
}

#[tokio::test]
async fn progress_reaches_whoever_asked_for_it() {
    deadline(async {
        let (events, mut heard) = recorder();
        let (client, mut peer) = connect(events).await;
        let (token, mut reports) = client.progress(8);
        let report = |token: &Value, progress: u32| {
            let params = json!({"progressToken": token, "progress": progress});
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        };
        let token = serde_json::to_value(&token).unwrap();
        peer.write(&report(&token, 1)).await;
        peer.write(&report(&json!("somebody else's"), 2)).await;
        assert_eq!(
            reports.next().await.unwrap().get(),
            json!({"progressToken": token, "progress": 1}).to_string()
        );
        assert!(matches!(heard.recv().await, Some(Heard::Notification(..))));
        assert!(reports.try_next().is_none());
        drop(reports);
        peer.write(&report(&token, 3)).await;
        assert!(matches!(heard.recv().await, Some(Heard::Notification(..))));
    })
    .await;
}

#[tokio::test]
async fn requests_of_the_server_are_answered_beside_each_other() {
    deadline(async {
        let (events, mut heard) = recorder();
        let (_client, mut peer) = connect(events).await;
        let request = |id: Value, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"n": 1.50}});
        peer.write(&request(json!("a"), "slow")).await;
        peer.write(&request(json!(2), "roots/list")).await;
        assert_eq!(
            peer.read().await,
            json!({"jsonrpc": "2.0", "id": 2, "result": {"n": 1.5}})
        );
        peer.write(&request(json!("p"), "ping")).await;
        assert_eq!(peer.read().await, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        for _ in 0..2 {
            assert!(matches!(heard.recv().await, Some(Heard::Request(_, Origin::Connection))));
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_can_cancel_its_request() {
    deadline(async {
        let (events, mut heard) = recorder();
        let (client, mut peer) = connect(events).await;
        peer.write(&json!({"jsonrpc": "2.0", "id": "a", "method": "slow"}))
            .await;
        assert!(matches!(heard.recv().await, Some(Heard::Request(..))));
        let held = heard.sender_strong_count();
        peer.write(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"},
        }))
        .await;
        eventually("the answering future is dropped", || {
            heard.sender_strong_count() < held
        })
        .await;
        drop(client);
        // No answer was sent: the next thing the server sees is the end.
        assert_eq!(peer.try_read().await, None);
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_requests_is_bounded_and_does_not_hold_up_calls() {
    deadline(async {
        let (events, mut heard) = recorder();
        let (client, mut peer) = connect(events).await;
        for id in 0..400 {
            peer.write(&json!({"jsonrpc": "2.0", "id": id, "method": "slow"}))
                .await;
        }
        let serving = async {
            let mut refused = 0;
            let call = loop {
                let message = peer.read().await;
                if message["method"] == "call" {
                    break message;
                }
                // What is too much is refused rather than left waiting.
                assert_eq!(message["error"]["code"], -32600, "{message}");
                assert!(
                    message["id"].as_u64().is_some_and(|id| id >= 256),
                    "{message}"
                );
                refused += 1;
            };
            peer.write(&response(&call["id"], &json!("through"))).await;
            refused
        };
        let (outcome, refused) = tokio::join!(client.request("call", None, options()), serving);
        assert!((1..=144).contains(&refused), "{refused} refused");
        assert_eq!(outcome.unwrap().get(), "\"through\"");
        let mut running = 0;
        while heard.try_recv().is_ok() {
            running += 1;
        }
        assert!((1..=256).contains(&running), "{running} at once");
    })
    .await;
}

#[tokio::test]
async fn without_an_owner_requests_are_unknown_methods() {
    deadline(async {
        let (_client, mut peer) = connect(()).await;
        peer.write(&json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"}))
            .await;
        assert_eq!(peer.read().await["error"]["code"], -32601);
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_server_fails_every_call() {
    deadline(async {
        let (client, mut peer) = connect(()).await;
        let serving = async {
            peer.read().await;
            drop(peer);
        };
        let (outcome, ()) = tokio::join!(client.request("call", None, options()), serving);
        assert!(matches!(
            outcome,
            Err(RequestError::Closed(reason)) if matches!(*reason, CloseReason::Ended { .. })
        ));
        assert!(matches!(*client.closed().await, CloseReason::Ended { .. }));
        let later = client.request("call", None, options()).await;
        assert!(matches!(later, Err(RequestError::NotSent(_))));
        assert!(client.notify("notifications/x", None).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn closing_sends_what_is_queued_and_ends_the_servers_input() {
    deadline(async {
        let (client, mut peer) = connect(()).await;
        client.notify("notifications/last", None).await.unwrap();
        client.close().await;
        assert_eq!(peer.read().await["method"], "notifications/last");
        assert_eq!(peer.try_read().await, None);
        assert!(matches!(*client.closed().await, CloseReason::Requested));
    })
    .await;
}

#[tokio::test]
async fn dropping_the_last_client_ends_the_servers_input() {
    deadline(async {
        let (client, mut peer) = connect(()).await;
        let other = client.clone();
        drop(client);
        other.notify("notifications/x", None).await.unwrap();
        assert_eq!(peer.read().await["method"], "notifications/x");
        drop(other);
        assert_eq!(peer.try_read().await, None);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_does_not_read_makes_callers_wait_but_is_still_heard() {
    deadline(async {
        let (events, mut heard) = recorder();
        let (client, mut peer) = connect(events).await;
        let large = raw(&format!("[\"{}\"]", "x".repeat(40 * 1024)));
        let calls: Vec<_> = (0..200)
            .map(|_| {
                let (client, large) = (client.clone(), large.clone());
                tokio::spawn(async move { client.request("call", Some(large), options()).await })
            })
            .collect();
        peer.write(&json!({"jsonrpc": "2.0", "method": "notifications/message"}))
            .await;
        assert!(matches!(heard.recv().await, Some(Heard::Notification(..))));
        for _ in 0..200 {
            let call = peer.read().await;
            peer.write(&response(&call["id"], &call["id"])).await;
        }
        for call in calls {
            assert!(call.await.unwrap().is_ok());
        }
    })
    .await;
}
