//! T13, T14 and F7 to F9: one client or one server that wants all memory, all connections, all time.

use std::time::{Duration, Instant};

use serde_json::json;

use super::case::{Case, Report, case, shown_by};
use super::machine::Usage;
use super::proxy::{ANSWER, Proxy, within};
use super::setup::Setup;
use super::wire::{Agent, connections, head};
use crate::{Script, Tool, http_client};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "T13",
            "body of 5 MiB, depth 100,000, a million members, too many tools, large schemas",
            payloads,
        )
        .alone(),
        case("T14", "300 stalled bodies, idle connections", stalled),
        shown_by("F6", "readers that do not read", &["R11"]),
        case("F7", "3,000 silent connections", silent_connections).alone(),
        case(
            "F8",
            "100 sessions with 3.9 MB of capabilities each",
            large_sessions,
        )
        .alone(),
        case(
            "F9",
            "describe_tool: one tool of 200 kB fifty times",
            described_again,
        )
        .alone(),
    ]
}

/// The most memory above the start while something goes on.
async fn peak_while<T>(proxy: &Proxy, work: impl Future<Output = T>) -> (T, f64) {
    let (pid, before) = (proxy.daemon.pid(), proxy.before.rss_mib);
    let mut peak = 0.0_f64;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return (done, peak),
            _ = ticks.tick() => peak = peak.max(Usage::of(pid).rss_mib - before),
        }
    }
}

async fn payloads() -> Report {
    let mut setup = Setup::new();
    let schema = json!({"type": "object", "description": "x".repeat(300_000)});
    let mut tools = vec![
        Tool::read_only("look"),
        Tool::defined(&json!({"name": "large", "inputSchema": schema})),
    ];
    tools.extend((0..60).map(|number| Tool::read_only(&format!("more{number}"))));
    setup.stdio("up", &Script::new(tools), json!({}));
    setup.set(json!({"limits": {"tools_per_server": 50}}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let server = proxy.server("up").await;
    assert!(server["tools"].as_u64() <= Some(50), "{server}");
    assert!(
        proxy.read("up:large").await.failed(),
        "a tool with a schema of 300 kB is offered"
    );
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let members: Vec<_> = (0..300_000)
        .map(|number| format!("\"k{number}\":1"))
        .collect();
    let bodies = [
        ("5 MiB", format!("\"{}\"", "x".repeat(5 << 20)), true),
        ("depth", nested, true),
        ("members", format!("{{{}}}", members.join(",")), false),
    ];
    let mut highest = 0.0_f64;
    for (name, agent) in Agent::everywhere(&proxy.daemon).await {
        for (what, value, refused) in &bodies {
            let tool = if name.ends_with("/mcp") {
                "call_tool_read"
            } else {
                "look"
            };
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"a":{value}}},META}}}}"#
            );
            let (reply, peak) = peak_while(&proxy, agent.post("tools/call", tool, &body)).await;
            assert!(!refused || reply.refused(), "{what} was taken on {name}");
            highest = highest.max(peak);
        }
    }
    assert!(highest < 96.0, "RSS +{highest:.0} MiB");
    proxy.note(format!("3 bodies on 6 ways in, RSS +{highest:.0}"));
    proxy.finish().await
}

async fn stalled() -> Report {
    let mut setup = Setup::new();
    setup.set(
        json!({"limits": {"body_timeout": "3s", "idle_timeout": "3s", "header_timeout": "3s"}}),
    );
    let mut proxy = setup.start().await;
    let address = proxy.daemon.address().to_owned();
    let stalling = head(
        "POST",
        "/mcp",
        &address,
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"jsonrpc\"",
    );
    let idle = head("GET", "/healthz", &address, "\r\n");
    let bodies = connections(&address, 300, stalling.as_bytes()).await;
    let idlers = connections(&address, 50, idle.as_bytes()).await;
    assert_eq!(bodies.len() + idlers.len(), 350);
    let began = Instant::now();
    proxy
        .until("stalled and idle connections are closed", 25, async || {
            Usage::of(proxy.daemon.pid()).fds <= proxy.before.fds + 10
        })
        .await;
    proxy.note(format!(
        "3 s allowed, closed after {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    proxy.finish().await
}

async fn silent_connections() -> Report {
    let mut setup = Setup::new();
    setup.set(json!({"limits": {"header_timeout": "3s"}}));
    let mut proxy = setup.start().await;
    let address = proxy.daemon.address().to_owned();
    let (silent, peak) = peak_while(&proxy, connections(&address, 3_000, b"")).await;
    let began = Instant::now();
    // A client that was there before goes on (the probe); a new one is served in a while.
    proxy
        .until("a new client is served", 40, async || {
            proxy.daemon.is_up().await
        })
        .await;
    proxy.note(format!(
        "{} connections, RSS +{peak:.0}, new client after {:.1} s",
        silent.len(),
        began.elapsed().as_secs_f64()
    ));
    assert!(peak < 100.0, "RSS +{peak:.0} MiB");
    drop(silent);
    proxy.finish().await
}

async fn large_sessions() -> Report {
    let mut proxy = Setup::new().start().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "clientInfo": {"name": "x", "version": "1"},
        "capabilities": {"experimental": {"x": "y".repeat(3_900_000)}}}})
    .to_string();
    let http = http_client();
    let attack = async {
        let mut statuses = Vec::new();
        for _ in 0..100 {
            let request = http
                .post(proxy.daemon.url("/mcp"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .body(body.clone());
            let answer = within(ANSWER, "initialize", request.send())
                .await
                .expect("an answer");
            statuses.push(answer.status().as_u16());
        }
        statuses.sort_unstable();
        statuses.dedup();
        statuses
    };
    let (statuses, peak) = peak_while(&proxy, attack).await;
    assert!(
        peak < 96.0,
        "RSS +{peak:.0} MiB for 100 sessions ({statuses:?})"
    );
    proxy.note(format!("{statuses:?}, RSS +{peak:.0}"));
    drop(http);
    proxy.finish().await
}

async fn described_again() -> Report {
    let tool = Tool::defined(&json!({"name": "look", "description": "d".repeat(200_000),
        "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}));
    let many = (0..15).map(|number| {
        Tool::defined(&json!({"name": format!("t{number}"), "description": "d".repeat(200_000), "inputSchema": {"type": "object"}}))
    });
    let mut setup = Setup::new();
    setup.stdio(
        "up",
        &Script::new([tool].into_iter().chain(many)),
        json!({}),
    );
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let mut largest = 0;
    for names in [
        vec!["up:look".to_owned(); 50],
        (0..15).map(|number| format!("up:t{number}")).collect(),
        vec!["nope".repeat(1_000); 50],
    ] {
        let arguments = json!({ "names": names });
        let asked = proxy.agent.call("describe_tool", &arguments);
        let (answer, peak) = peak_while(&proxy, within(ANSWER, "describe_tool", asked)).await;
        assert!(answer.len() < 400_000, "{} bytes", answer.len());
        assert!(peak < 64.0, "RSS +{peak:.0} MiB");
        largest = largest.max(answer.len());
    }
    proxy.note(format!("largest answer {} kB", largest / 1_000));
    proxy.finish().await
}
