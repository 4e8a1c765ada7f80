//! Many connections at once.

use std::time::Duration;

use serde_json::json;
use testkit::DEADLINE;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{api_key, limited, resident};
use crate::wire::{get, head, is_closed, open, send, status};

const MOST: usize = 8;

/// Streams of events, which keep their connections busy.
async fn watchers(address: &str, key: &str, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = open(address).await;
        assert_eq!(
            status(&mut stream, &get("/events", &[("x-api-key", key)])).await,
            200
        );
        streams.push(stream);
    }
    streams
}

#[tokio::test]
async fn beyond_the_cap_clients_wait_and_the_operator_gets_in() {
    let daemon = limited(json!({"connections": MOST})).await;
    let mut streams = watchers(daemon.address(), &api_key(&daemon.home), MOST).await;
    let mut waiting = open(daemon.address()).await;
    send(&mut waiting, &get("/healthz", &[])).await;
    let early = timeout(Duration::from_secs(2), head(&mut waiting)).await;
    assert!(early.is_err(), "served beyond the cap: {early:?}");
    daemon.home.cli(["status"]).await.succeeded();
    assert!(
        daemon.log().contains("all connections are in use"),
        "{}",
        daemon.log()
    );
    streams.pop();
    let answer = timeout(DEADLINE, head(&mut waiting)).await;
    assert!(answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")));
}

#[tokio::test]
async fn an_idle_connection_makes_room_for_a_new_one() {
    let daemon = limited(json!({"connections": MOST})).await;
    let mut idle = open(daemon.address()).await;
    assert_eq!(status(&mut idle, &get("/healthz", &[])).await, 200);
    let _busy = watchers(daemon.address(), &api_key(&daemon.home), MOST - 1).await;
    let mut new = open(daemon.address()).await;
    let answered = timeout(DEADLINE, status(&mut new, &get("/healthz", &[]))).await;
    assert_eq!(answered.expect("room is made"), 200);
    assert!(is_closed(&mut idle, DEADLINE).await);
}

/// Clients that never get done with their requests cannot keep others out.
#[tokio::test]
async fn a_request_that_never_gets_done_makes_room_too() {
    let daemon =
        limited(json!({"connections": MOST, "header_timeout": "10m", "body_timeout": "10m"})).await;
    let mut slow = Vec::new();
    for number in 0..MOST {
        let mut stream = open(daemon.address()).await;
        let text = if number % 2 == 0 {
            "GET / HTTP/1.1\r\nhost: "
        } else {
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: 100\r\n\r\n"
        };
        send(&mut stream, text).await;
        slow.push(stream);
    }
    let mut new = open(daemon.address()).await;
    let answered = timeout(DEADLINE, status(&mut new, &get("/healthz", &[]))).await;
    assert_eq!(answered.expect("room is made"), 200);
}

#[tokio::test]
async fn a_thousand_idle_connections_cost_little() {
    let daemon = limited(json!({})).await;
    assert!(daemon.is_up().await);
    let before = resident(daemon.pid());
    let mut idle = Vec::new();
    for _ in 0..1_000 {
        let mut stream = open(daemon.address()).await;
        assert_eq!(status(&mut stream, &get("/healthz", &[])).await, 200);
        idle.push(stream);
    }
    let after = resident(daemon.pid());
    assert!(
        after < before + 64,
        "{before} MiB before, {after} MiB after"
    );
    assert!(daemon.is_up().await);
}
