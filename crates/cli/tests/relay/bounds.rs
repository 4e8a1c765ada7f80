//! What a client may make the relay hold, and how long it may keep it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{DEADLINE, wait_until};

use crate::client::{Client, ERAS, Era, Place};

/// More than a relay has under way at once.
const FLOOD: usize = 200;

#[tokio::test]
async fn a_line_over_the_limit_is_refused_and_the_next_one_read() {
    for era in ERAS {
        let place = Place::new(json!({})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        let padded = |mebibytes: usize| {
            let padding = "x".repeat(mebibytes << 20);
            json!({"cursor": padding})
        };
        let refused = client.request("tools/list", padded(5)).await;
        assert_eq!(refused["error"]["code"], -32600, "{}", refused["error"]);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("4194304"), "{message}");
        let taken = client.request("tools/list", padded(3)).await;
        assert!(taken["result"]["tools"].is_array(), "{}", taken["error"]);
        client.call_ok("look").await;
    }
}

#[tokio::test]
async fn the_limit_is_the_one_of_the_config() {
    let place = Place::new(json!({"limits": {"request_bytes": 2000}})).await;
    let mut client = Client::start(&place.daemon.home, Era::Modern).await;
    let long = json!({"cursor": "x".repeat(2000)});
    let refused = client.request("tools/list", long).await;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("2000"), "{refused}");
    client.call_ok("look").await;
}

#[tokio::test]
async fn every_message_of_a_flood_is_answered_once() {
    for era in ERAS {
        let place = Place::new(json!({})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        let mut open = HashSet::new();
        for _ in 0..FLOOD {
            open.insert(client.send_call("look").await);
        }
        while !open.is_empty() {
            let message = client.next().await;
            let id = message["id"].as_u64().unwrap();
            assert!(open.remove(&id), "answered twice: {message}");
            if let Some(error) = message["error"]["message"].as_str() {
                assert!(error.contains("was not sent"), "{message}");
            }
        }
        client.call_ok("look").await;
    }
}

#[tokio::test]
async fn cancellations_are_read_while_as_many_calls_hang_as_may() {
    for era in ERAS {
        let place = Place::new(json!({})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        let mut ids = Vec::new();
        for _ in 0..FLOOD {
            ids.push(client.send_call("hang").await);
        }
        // Those beyond the bound are refused at once; nothing else is answered.
        let first = client.next().await;
        let error = first["error"]["message"].as_str().unwrap_or_default();
        assert!(error.contains("was not sent"), "{first}");
        // In the modern era a call that is cancelled before it is sent never reaches the upstream.
        place.until_called("hang", 1).await;
        for id in ids {
            let params = json!({"requestId": id});
            client.notify("notifications/cancelled", &params).await;
        }
        wait_until("the upstream is told", DEADLINE, async || {
            !place.record.received("notifications/cancelled").is_empty()
        })
        .await;
        let id = client.send_call("look").await;
        loop {
            let message = client.next().await;
            if message["id"] == id {
                assert!(message.get("result").is_some(), "{message}");
                break;
            }
            assert!(message.get("error").is_some(), "{message}");
        }
    }
}

#[tokio::test]
async fn the_end_of_stdin_ends_a_call_that_hangs_within_the_grace() {
    for era in ERAS {
        let place = Place::new(json!({"shutdown_grace": "500ms"})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        let id = client.send_call("hang").await;
        place.until_called("hang", 1).await;
        let began = Instant::now();
        client.close_stdin();
        let answer = client.answer(id).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("stdin was closed"), "{answer}");
        assert!(client.ended().await.success());
        assert!(began.elapsed() < Duration::from_secs(20));
        wait_until("the upstream is told", DEADLINE, async || {
            !place.record.received("notifications/cancelled").is_empty()
        })
        .await;
    }
}
