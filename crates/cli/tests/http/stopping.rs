//! SIGTERM: what is under way gets its time, and nothing keeps the daemon from ending.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{
    DEADLINE, Home, Outcome, Record, Script, Session, TestDaemon, Tool, process, wait_until,
};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::support::{api_key, hangs_in_listing, home};
use crate::wire::{get, head, modern_call, open, post, send, status};

/// A daemon may take this long beyond its grace; the rest is for a busy machine.
const BEYOND_GRACE: Duration = Duration::from_secs(5 + 5);

/// The ways a call can come in.
#[derive(Debug, Clone, Copy)]
struct Way {
    path: &'static str,
    modern: bool,
}

const WAYS: [Way; 4] = [
    Way {
        path: "/mcp",
        modern: false,
    },
    Way {
        path: "/mcp/server/up",
        modern: false,
    },
    Way {
        path: "/mcp",
        modern: true,
    },
    Way {
        path: "/mcp/server/up",
        modern: true,
    },
];

async fn daemon(grace: &str, tool: Tool) -> (TestDaemon, Record) {
    let home = home();
    let upstream = home.upstream("up", &Script::new([tool]));
    let config = json!({"shutdown_grace": grace, "mcpServers": {"up": upstream.config()}});
    let daemon = TestDaemon::start(home, config).await;
    daemon.wait_for_server("up").await;
    (daemon, upstream.record())
}

impl Way {
    /// Calls the one tool `work`; the answer's `result` or `error`.
    async fn call(self, address: &str) -> Result<Value, Value> {
        let (tool, arguments) = if self.path == "/mcp" {
            let arguments = json!({"name": "up:work", "intent": {"operation_type": "read"}});
            ("call_tool_read", arguments)
        } else {
            ("work", json!({}))
        };
        if self.modern {
            let mut stream = open(address).await;
            let call = modern_call(self.path, tool, &arguments).replacen(
                "host: localhost\r\n",
                "host: localhost\r\nconnection: close\r\n",
                1,
            );
            send(&mut stream, &call).await;
            return answer_in(&mut stream).await;
        }
        let session = Session::open(&format!("http://{address}{}", self.path)).await;
        let params = json!({"name": tool, "arguments": arguments});
        let answer = session.request("tools/call", &params.to_string()).await;
        answer
            .result
            .map(|text| serde_json::from_str(&text).unwrap())
    }
}

/// The message with an id in an answer, be it JSON or events.
async fn answer_in(stream: &mut TcpStream) -> Result<Value, Value> {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let message = text
        .lines()
        .map(|line| line.strip_prefix("data: ").unwrap_or(line))
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|message| message["id"] == 7);
    let mut message = message.unwrap_or_else(|| panic!("no answer in {text}"));
    match message.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(message["result"].take()),
    }
}

/// Calls in every way, asks the daemon to stop once the upstream has all calls, and returns the
/// answers.
async fn stop_during_calls(daemon: &TestDaemon, record: &Record) -> Vec<Result<Value, Value>> {
    let calls = WAYS.map(|way| way.call(daemon.address()));
    let stop = async {
        wait_until("all calls are under way", DEADLINE, async || {
            record.calls().len() == WAYS.len()
        })
        .await;
        process::terminate(daemon.pid());
    };
    tokio::join!(futures_util::future::join_all(calls), stop).0
}

async fn statuses(home: &Home) -> Vec<Value> {
    let listed = home
        .cli(["activity", "list", "-o", "json", "--type", "tool_call"])
        .await;
    let listed = listed.succeeded().json();
    let records = listed["activities"].as_array().unwrap().iter();
    records.map(|record| record["status"].clone()).collect()
}

#[tokio::test]
async fn a_call_that_ends_within_the_grace_is_answered() {
    let tool = Tool::read_only("work")
        .after_ms(3_000)
        .returns(r#"{"content":[{"type":"text","text":"done"}]}"#);
    let (daemon, record) = daemon("25s", tool).await;
    let answers = stop_during_calls(&daemon, &record).await;
    for (way, answer) in WAYS.iter().zip(answers) {
        let result = answer.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert_eq!(result["content"][0]["text"], "done", "{way:?}");
    }
    let (home, status) = daemon.ended().await;
    assert_eq!(status.code(), Some(0));
    assert_eq!(statuses(&home).await, vec![json!("success"); WAYS.len()]);
    assert!(!home.path().join(".mcpproxy/mcpproxy.sock").exists());
}

#[tokio::test]
async fn a_call_that_does_not_end_is_answered_with_an_error_and_marked_as_interrupted() {
    let (daemon, record) = daemon("1s", Tool::read_only("work").outcome(Outcome::Hang)).await;
    let begun = Instant::now();
    let answers = stop_during_calls(&daemon, &record).await;
    for (way, answer) in WAYS.iter().zip(answers) {
        let error = answer.expect_err("it cannot have been answered");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("was sent and may still run"),
            "{way:?}: {error}"
        );
        assert_eq!(error["data"]["code"], "INTERRUPTED", "{way:?}: {error}");
        assert_eq!(error["data"]["details"]["sent"], true, "{way:?}: {error}");
    }
    let (home, status) = daemon.ended().await;
    assert_eq!(status.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(1) + BEYOND_GRACE);
    assert_eq!(
        statuses(&home).await,
        vec![json!("interrupted"); WAYS.len()]
    );
    home.cli(["activity", "verify"]).await.succeeded();
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_is_said_not_to_be_sent() {
    let home = home();
    let script = Script::new([Tool::read_only("work").outcome(Outcome::Hang)]);
    let upstream = home.upstream("up", &script);
    let mut server = upstream.config();
    server["max_concurrency"] = json!(1);
    let config = json!({"shutdown_grace": "1s", "mcpServers": {"up": server}});
    let daemon = TestDaemon::start(home, config).await;
    daemon.wait_for_server("up").await;
    let record = upstream.record();
    let first = WAYS[0].call(daemon.address());
    let second = async {
        wait_until("the first call has the one slot", DEADLINE, async || {
            record.calls().len() == 1
        })
        .await;
        WAYS[1].call(daemon.address()).await
    };
    let stop = async {
        wait_until("both calls are recorded", DEADLINE, async || {
            let listed = daemon.api("/activity?status=pending").await;
            listed["total"] == 2
        })
        .await;
        process::terminate(daemon.pid());
    };
    let (first, second, ()) = tokio::join!(first, second, stop);
    assert_eq!(first.unwrap_err()["data"]["details"]["sent"], true);
    let error = second.unwrap_err();
    assert_eq!(error["data"]["details"]["sent"], false);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("was not sent"), "{error}");
    assert_eq!(record.calls().len(), 1);
    let (home, _) = daemon.ended().await;
    assert_eq!(statuses(&home).await, vec![json!("interrupted"); 2]);
}

#[tokio::test]
async fn nothing_new_is_begun_during_the_grace() {
    let (daemon, record) = daemon("4s", Tool::read_only("work").outcome(Outcome::Hang)).await;
    let key = api_key(&daemon.home);
    let mut mcp = open(daemon.address()).await;
    let mut rest = open(daemon.address()).await;
    for stream in [&mut mcp, &mut rest] {
        assert_eq!(status(stream, &get("/healthz", &[])).await, 200);
    }
    let call = tokio::spawn({
        let address = daemon.address().to_owned();
        async move { WAYS[2].call(&address).await }
    });
    wait_until("a call is under way", DEADLINE, async || {
        record.calls().len() == 1
    })
    .await;
    process::terminate(daemon.pid());
    wait_until("no connection is accepted", DEADLINE, async || {
        TcpStream::connect(daemon.address()).await.is_err()
    })
    .await;
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    for (stream, request) in [
        (&mut mcp, post("/mcp", &[], initialize)),
        (&mut rest, get("/api/v1/status", &[("x-api-key", &key)])),
    ] {
        send(stream, &request).await;
        let answer = head(stream).await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("retry-after: 5"), "{answer}");
    }
    call.await.unwrap().expect_err("it is interrupted");
    let (home, status) = daemon.ended().await;
    assert_eq!(status.code(), Some(0));
    assert_eq!(statuses(&home).await, [json!("interrupted")]);
}

#[tokio::test]
async fn a_stream_ends_in_order_after_the_calls() {
    let (daemon, record) = daemon("2s", Tool::read_only("work").outcome(Outcome::Hang)).await;
    let session = Session::open(&daemon.url("/mcp")).await;
    let mut stream = open(daemon.address()).await;
    let headers = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", session.id()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    assert_eq!(status(&mut stream, &get("/mcp", &headers)).await, 200);
    let call = WAYS[0].call(daemon.address());
    let stop = async {
        wait_until("a call is under way", DEADLINE, async || {
            record.calls().len() == 1
        })
        .await;
        process::terminate(daemon.pid());
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        rest
    };
    let (answer, rest) = tokio::join!(call, stop);
    answer.expect_err("it is interrupted");
    assert!(rest.ends_with("0\r\n\r\n"), "cut off: {rest:?}");
    assert_eq!(daemon.ended().await.1.code(), Some(0));
}

#[tokio::test]
async fn an_upstream_that_hangs_in_its_listing_does_not_hold_the_daemon_up() {
    let home = home();
    let listed = home.path().join("listed");
    let server = hangs_in_listing(&listed);
    let stubborn = home.upstream(
        "stubborn",
        &Script {
            stubborn: true,
            ..Script::new([])
        },
    );
    let servers = json!({"up": server, "stubborn": stubborn.config()});
    let daemon = TestDaemon::with_servers(home, servers).await;
    wait_until("the listing is asked for", DEADLINE, async || {
        listed.exists()
    })
    .await;
    daemon.wait_for_server("stubborn").await;
    let begun = Instant::now();
    process::terminate(daemon.pid());
    let (home, status) = daemon.ended().await;
    assert_eq!(status.code(), Some(0));
    // No call is under way, so there is nothing to give a grace to.
    assert!(begun.elapsed() < BEYOND_GRACE, "{:?}", begun.elapsed());
    wait_until("no process is left", DEADLINE, async || {
        stubborn
            .record()
            .pids()
            .into_iter()
            .all(|pid| !process::is_alive(pid))
    })
    .await;
    drop(home);
}

#[tokio::test]
async fn a_second_signal_ends_the_daemon_at_once() {
    let (daemon, record) = daemon("10m", Tool::read_only("work").outcome(Outcome::Hang)).await;
    let mut stream = open(daemon.address()).await;
    send(
        &mut stream,
        &modern_call("/mcp/server/up", "work", &json!({})),
    )
    .await;
    wait_until("a call is under way", DEADLINE, async || {
        record.calls().len() == 1
    })
    .await;
    process::terminate(daemon.pid());
    wait_until("the daemon is stopping", DEADLINE, async || {
        TcpStream::connect(daemon.address()).await.is_err()
    })
    .await;
    process::terminate(daemon.pid());
    let (home, status) = daemon.ended().await;
    assert_eq!(status.code(), Some(1));
    let restarted = TestDaemon::start(home, json!({})).await;
    let (home, _) = restarted.stop().await;
    assert_eq!(statuses(&home).await, [json!("interrupted")]);
}
