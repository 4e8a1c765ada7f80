//! Clients that take their time with a head, with a body, between requests or with an answer.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use testkit::{DEADLINE, Outcome, Session, Tool, wait_until};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use crate::support::{api_key, in_front_of, limited, open_files, resident};
use crate::wire::{get, head, is_closed, modern_call, open, open_narrow, post, send, status};

const PAUSE: Duration = Duration::from_millis(200);
/// A build without optimisation takes seconds for one answer of 10 MiB.
const LARGE_ANSWERS: Duration = Duration::from_mins(2);

#[tokio::test]
async fn five_hundred_heads_that_drip_are_cut_off_while_others_are_served() {
    let daemon = limited(json!({"header_timeout": "1s"})).await;
    let dripping = (0..500).map(async |_| {
        let mut stream = open(daemon.address()).await;
        send(
            &mut stream,
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ",
        )
        .await;
        let begun = Instant::now();
        loop {
            // Once the daemon has hung up, writing fails.
            if stream.write_all(b"x").await.is_err() || is_closed(&mut stream, PAUSE).await {
                return;
            }
            assert!(begun.elapsed() < DEADLINE, "the head may take for ever");
        }
    });
    let served = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let begun = Instant::now();
            assert!(daemon.is_up().await);
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    };
    let (_, slowest) = tokio::join!(join_all(dripping), served);
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    assert!(
        daemon.log().contains("too slow with the head"),
        "{}",
        daemon.log()
    );
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_cut_off_too() {
    let daemon = limited(json!({"header_timeout": "1s"})).await;
    let mut stream = open(daemon.address()).await;
    assert!(is_closed(&mut stream, DEADLINE).await);
}

#[tokio::test]
async fn a_body_that_stalls_is_cut_off_on_every_route() {
    let daemon = limited(json!({"body_timeout": "1s"})).await;
    let key = api_key(&daemon.home);
    for path in [
        "/mcp",
        "/mcp/direct",
        "/api/v1/servers",
        "/api/v1/tools/call",
    ] {
        let mut stream = open(daemon.address()).await;
        let whole = post(path, &[("x-api-key", &key)], &"x".repeat(100));
        send(&mut stream, &whole[..whole.len() - 50]).await;
        assert!(is_closed(&mut stream, DEADLINE).await, "{path}");
    }
    assert!(daemon.is_up().await);
}

#[tokio::test]
async fn a_body_in_pieces_may_take_longer_than_the_time_for_one_piece() {
    let daemon = limited(json!({"body_timeout": "2s", "header_timeout": "1s"})).await;
    let mut stream = open(daemon.address()).await;
    let whole = post("/mcp", &[], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let (start, body) = whole.split_at(whole.len() - 20);
    send(&mut stream, start).await;
    for byte in body.chars() {
        sleep(PAUSE).await;
        send(&mut stream, &byte.to_string()).await;
    }
    // It is answered, though not with what a session would be.
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn a_body_that_never_ends_is_cut_off() {
    let daemon = limited(json!({"body_timeout": "500ms"})).await;
    let mut stream = open(daemon.address()).await;
    let whole = post("/mcp", &[], &"x".repeat(100_000));
    send(&mut stream, &whole[..whole.len() - 99_999]).await;
    let begun = Instant::now();
    // One byte after the other, each of them in time, until the daemon has hung up.
    while stream.write_all(b"x").await.is_ok() && !is_closed(&mut stream, PAUSE).await {
        assert!(begun.elapsed() < DEADLINE, "the body may take for ever");
    }
    assert!(
        begun.elapsed() > Duration::from_secs(4),
        "it was cut off for a pause"
    );
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_in_use_is_not() {
    let daemon = limited(json!({"idle_timeout": "1s", "header_timeout": "10s"})).await;
    let (mut idle, mut used) = (open(daemon.address()).await, open(daemon.address()).await);
    assert_eq!(status(&mut idle, &get("/healthz", &[])).await, 200);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(status(&mut used, &get("/healthz", &[])).await, 200);
        sleep(PAUSE).await;
    }
    assert!(is_closed(&mut idle, Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_stream_on_which_nothing_happens_is_left_open() {
    let limits = json!({
        "idle_timeout": "1s", "write_timeout": "1s", "header_timeout": "1s", "body_timeout": "1s",
    });
    let daemon = limited(limits).await;
    let session = Session::open(&daemon.url("/mcp")).await;
    let mut stream = open(daemon.address()).await;
    let headers = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", session.id()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    assert_eq!(status(&mut stream, &get("/mcp", &headers)).await, 200);
    assert!(!is_closed(&mut stream, Duration::from_secs(4)).await);
}

/// Twenty answers of 10 MiB that no client reads.
#[tokio::test]
async fn answers_that_are_not_read_are_given_up() {
    let huge = Tool::read_only("huge").outcome(Outcome::Huge { mebibytes: 10 });
    let config = json!({"limits": {"write_timeout": "2s", "idle_timeout": "1s"}});
    let daemon = in_front_of(config, [huge, Tool::read_only("small")]).await;
    // What one such answer leaves behind does not count.
    let mut reader = open(daemon.address()).await;
    send(
        &mut reader,
        &modern_call("/mcp/server/up", "huge", &json!({})),
    )
    .await;
    head(&mut reader).await;
    assert!(is_closed(&mut reader, DEADLINE).await, "the idle timeout");
    let (before, files) = (resident(daemon.pid()), open_files(daemon.pid()));
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut stream = open_narrow(daemon.address()).await;
        send(
            &mut stream,
            &modern_call("/mcp/server/up", "huge", &json!({})),
        )
        .await;
        silent.push(stream);
    }
    for stream in &mut silent {
        // The answer has begun, and is not read on.
        stream.readable().await.unwrap();
    }
    wait_until("the clients are dropped", LARGE_ANSWERS, async || {
        open_files(daemon.pid()) <= files
    })
    .await;
    let after = resident(daemon.pid());
    assert!(
        after < before + 64,
        "{before} MiB before, {after} MiB after"
    );
    assert!(
        daemon.log().contains("reading an answer"),
        "{}",
        daemon.log()
    );
    let mut stream = open(daemon.address()).await;
    let small = modern_call("/mcp/server/up", "small", &json!({}));
    assert_eq!(status(&mut stream, &small).await, 200);
}

/// More unread bytes than all clients together may leave are given up long before the time is.
#[tokio::test]
async fn unread_answers_are_bounded_in_all() {
    let huge = Tool::read_only("huge").outcome(Outcome::Huge { mebibytes: 10 });
    // The kernel takes up to 4 MB of each answer, so at least 6 MB of each are held for its client.
    let limits = json!({"write_timeout": "10m", "unread_bytes": 15 * 1024 * 1024});
    let daemon = in_front_of(json!({"limits": limits}), [huge]).await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        let mut stream = open_narrow(daemon.address()).await;
        send(
            &mut stream,
            &modern_call("/mcp/server/up", "huge", &json!({})),
        )
        .await;
        stream.readable().await.unwrap();
        silent.push(stream);
    }
    // The first ones to stop reading are the first ones to go.
    for stream in &mut silent[..3] {
        assert!(is_reset(stream).await);
    }
}

/// Whether the daemon gives the connection up although its answer is not read.
async fn is_reset(stream: &mut tokio::net::TcpStream) -> bool {
    wait_until("the connection is reset", LARGE_ANSWERS, async || {
        stream.take_error().ok().flatten().is_some()
    })
    .await;
    true
}
