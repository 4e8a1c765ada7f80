//! X15 to X17: HTTP upstreams that answer with floods and streams without an end.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::case::{Case, Report, case};
use super::machine::Usage;
use super::proxy::{Lane, Proxy};
use super::setup::Setup;
use super::wire::{connections, modern_call};
use crate::{Outcome, Part, Script, Tool, Wire};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "X15",
            "heads, bodies and events of an HTTP upstream that never end",
            endless_answers,
        )
        .alone(),
        case(
            "X16",
            "results of 50 MiB over HTTP, as JSON and as an event",
            large_over_http,
        )
        .alone(),
        case(
            "X17",
            "100,000 progress reports towards a client that does not read",
            progress_flood,
        )
        .alone(),
    ]
}

/// A server that answers each request with a head and then one chunk for ever.
async fn pouring(head: &'static str, chunk: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 1 << 16];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(head.as_bytes()).await;
                let chunk = chunk.repeat(1 << 10);
                // At most 512 MiB: enough to show that nothing bounds it.
                for _ in 0..(512 << 20) / chunk.len() {
                    if stream.write_all(chunk.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// The most memory above the start in this many seconds.
async fn peak(proxy: &Proxy, seconds: u64) -> f64 {
    let mut peak = 0.0_f64;
    for _ in 0..seconds * 20 {
        peak = peak.max(Usage::of(proxy.daemon.pid()).rss_mib - proxy.before.rss_mib);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    peak
}

async fn endless_answers() -> Report {
    let kinds = [
        (
            "head",
            "HTTP/1.1 200 OK\r\n",
            "X-A: bbbbbbbbbbbbbbbbbbbbbbbb\r\n",
        ),
        (
            "body",
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
            "{\"a\": 1111111111111111111111111",
        ),
        (
            "event",
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ),
        (
            "comments",
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
            ": xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n\n",
        ),
        (
            "plain",
            "HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\n\r\n",
            "an error text without an end, ",
        ),
    ];
    let mut setup = Setup::new();
    for (name, head, chunk) in kinds {
        let address = pouring(head, chunk).await;
        setup.server(
            name,
            json!({"url": format!("http://{address}/mcp"), "timeout": "5s"}),
        );
    }
    let mut proxy = setup.start().await;
    let highest = peak(&proxy, 8).await;
    assert!(highest < 128.0, "RSS +{highest:.0} MiB");
    for (name, _, _) in kinds {
        let server = proxy.server(name).await;
        assert_ne!(server["state"], "ready", "{server}");
        let text = server.to_string().len();
        assert!(text < 20_000, "the error of {name} has {text} bytes");
    }
    proxy.note(format!("5 kinds, RSS +{highest:.0}"));
    proxy.finish().await
}

async fn large_over_http() -> Report {
    let mut setup = Setup::new();
    let large = Outcome::Large {
        part: Part::Text,
        mebibytes: 50,
    };
    let mut upstreams = Vec::new();
    for (name, wire) in [("json", Wire::Json), ("events", Wire::EventStream)] {
        let tools = [
            Tool::read_only("large").outcome(large.clone()),
            Tool::read_only("look"),
        ];
        upstreams.push(
            setup
                .http(name, Script::new(tools).wire(wire), json!({}))
                .await,
        );
    }
    let proxy = setup.start().await;
    for name in ["json", "events"] {
        proxy.ready(name).await;
        let called = proxy
            .call_within(
                Duration::from_secs(30),
                Lane::Read,
                &format!("{name}:large"),
                json!({}),
            )
            .await;
        assert!(called.refused().message.contains("limit"), "{called:?}");
        proxy
            .until("the next call works", 20, async || {
                !proxy.read(&format!("{name}:look")).await.failed()
            })
            .await;
    }
    proxy.finish().await
}

async fn progress_flood() -> Report {
    let mut setup = Setup::new();
    let tool = Tool::read_only("flood")
        .progress(100_000)
        .outcome(Outcome::Echo);
    setup.stdio("up", &Script::new([tool]), json!({"timeout": "15s"}));
    setup.set(json!({"limits": {"write_timeout": "3s"}}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let address = proxy.daemon.address().to_owned();
    let request = modern_call(&address, "/mcp/server/up", "flood");
    let request = String::from_utf8(request).expect("text");
    let token = r#""_meta":{"progressToken":"p","#;
    let body = request.replacen(r#""_meta":{"#, token, 1);
    let added = body.len() - request.len();
    let length = request
        .split("Content-Length: ")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next())
        .expect("a length");
    let longer: usize = length.parse::<usize>().expect("a number") + added;
    let body = body.replacen(
        &format!("Content-Length: {length}"),
        &format!("Content-Length: {longer}"),
        1,
    );
    let readers = connections(&address, 3, body.as_bytes()).await;
    let highest = peak(&proxy, 6).await;
    drop(readers);
    assert!(highest < 64.0, "RSS +{highest:.0} MiB");
    proxy.note(format!("RSS +{highest:.0}"));
    proxy.finish().await
}
