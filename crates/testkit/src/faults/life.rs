//! R35 to R38: two daemons, clients that go away, a queue that is full. And what is added later.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::case::{Case, Report, case, not_yet};
use super::proxy::{ANSWER, Lane, Proxy, call};
use super::setup::Setup;
use super::wire;
use crate::{Outcome, Record, Script, Tool};

pub(super) fn cases() -> Vec<Case> {
    vec![
        not_yet(
            "R16",
            "refresh of a token without a network",
            "n/a: added with login",
        ),
        not_yet(
            "R17",
            "refresh by 50 calls at once",
            "n/a: added with login",
        ),
        not_yet(
            "R18",
            "token revoked by the server",
            "n/a: added with login",
        ),
        case("R35", "port in use; stale socket", port_in_use),
        case("R36", "two daemons, one data directory", two_daemons),
        case(
            "R37",
            "client cancels or disconnects, in the queue and in the call",
            clients_leave,
        ),
        case(
            "R38",
            "limit 1, queue 1, 100 calls; limit 1, queue 8",
            overload,
        ),
        not_yet(
            "R40",
            "mixed load with random faults",
            "the soak: --soak SECONDS; one hour by hand",
        ),
    ]
}

async fn port_in_use() -> Report {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    // The port is held by this process, in a home without a daemon.
    let proxy = Setup::new().start().await;
    let home = proxy.killed().await;
    let output = home.cli(["serve", "--listen", &address]).await;
    assert_eq!(output.code, 1, "{}", output.stderr);
    for part in [address.as_str(), &std::process::id().to_string()] {
        assert!(
            output.stderr.contains(part),
            "{part} is not in: {}",
            output.stderr
        );
    }
    // The killed daemon left its socket behind; it is in nobody's way.
    let mut proxy = Setup::in_home(home).start().await;
    let status = proxy.daemon.home.cli(["status"]).await;
    assert_eq!(status.code, 0, "{}", status.stderr);
    proxy.note("exit 1, pid named");
    proxy.finish().await
}

async fn two_daemons() -> Report {
    let mut proxy = Setup::new().start().await;
    let output = proxy
        .daemon
        .home
        .cli(["serve", "--listen", "127.0.0.1:0"])
        .await;
    assert_eq!(output.code, 1, "{}", output.stderr);
    let pid = proxy.daemon.pid().to_string();
    assert!(
        output.stderr.contains(&pid),
        "the pid is not named: {}",
        output.stderr
    );
    let status = proxy.daemon.home.cli(["status"]).await;
    assert_eq!(
        status.code, 0,
        "the first daemon lost its socket: {}",
        status.stderr
    );
    proxy.note("exit 1, pid named");
    proxy.finish().await
}

/// An upstream that takes one call at a time.
async fn narrow(tools: Vec<Tool>, limits: Value) -> (Proxy, Record) {
    let mut setup = Setup::new();
    let entry = json!({"max_concurrency": 1, "timeout": "30s"});
    let upstream = setup.stdio("up", &Script::new(tools), entry);
    setup.set(json!({ "limits": limits }));
    let proxy = setup.start().await;
    proxy.ready("up").await;
    (proxy, upstream.record())
}

async fn clients_leave() -> Report {
    let tools = vec![
        Tool::read_only("hang").outcome(Outcome::Hang),
        Tool::read_only("look"),
    ];
    let (mut proxy, record) = narrow(tools, json!({})).await;
    let (name, arguments) = Lane::Read.call("up:hang", &json!({}));
    let request = |id: u32| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}})
        .to_string()
    };
    let cancelled = async |proxy: &Proxy, count: usize| {
        proxy
            .until("it is recorded as cancelled", 10, async || {
                proxy.log("status=cancelled&server=up").await.len() == count
            })
            .await;
    };
    // One in the call and one in the queue behind it, both cancelled by a notification.
    let (one, two) = (proxy.daemon.session().await, proxy.daemon.session().await);
    let (first, second) = (request(501), request(502));
    let cancelling = async {
        proxy
            .until("the call is under way", 5, async || {
                record.calls().len() == 1
            })
            .await;
        proxy
            .until("the other one waits", 5, async || {
                proxy.log("status=pending&server=up").await.len() == 2
            })
            .await;
        for (session, id) in [(&two, 502), (&one, 501)] {
            let params = json!({"requestId": id});
            let cancel =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            session.post(&cancel.to_string()).await;
        }
        cancelled(&proxy, 2).await;
    };
    tokio::join!(one.post(&first), two.post(&second), cancelling);
    assert_eq!(
        record.calls().len(),
        1,
        "a call was sent after it was cancelled"
    );
    let freed = proxy.read("up:look").await;
    freed.ok();
    proxy.note(format!("slot free: next call {:.0} ms", freed.ms()));
    // A modern client that closes its connection.
    let address = proxy.daemon.address().to_owned();
    let streams = wire::connections(
        &address,
        1,
        &wire::modern_call(&address, "/mcp/server/up", "hang"),
    )
    .await;
    proxy
        .until("the call is under way", 5, async || {
            record.calls().len() == 3
        })
        .await;
    drop(streams);
    cancelled(&proxy, 3).await;
    proxy.read("up:look").await.ok();
    proxy
        .until("the upstream is told", 5, async || {
            record.received("notifications/cancelled").len() >= 2
        })
        .await;
    proxy.finish().await
}

async fn overload() -> Report {
    let slow = || vec![Tool::read_only("slow").after_ms(1_500)];
    let (mut proxy, record) = narrow(slow(), json!({"queued_calls": 1})).await;
    let mut calls = JoinSet::new();
    for number in 0..100 {
        let session = proxy.daemon.session().await;
        calls.spawn(async move {
            call(
                &session,
                ANSWER,
                Lane::Read,
                "up:slow",
                json!({"n": number}),
            )
            .await
        });
    }
    let called = calls.join_all().await;
    let (shed, served): (Vec<_>, Vec<_>) =
        called.into_iter().partition(super::proxy::Called::failed);
    assert!(
        (2..=8).contains(&served.len()),
        "{} of 100 were served",
        served.len()
    );
    assert_eq!(record.calls().len(), served.len());
    let slowest = shed
        .iter()
        .map(|called| called.took)
        .max()
        .unwrap_or_default();
    assert!(
        slowest < Duration::from_secs(1),
        "the slowest was told after {slowest:?}"
    );
    let refusal = shed[0].refused();
    let text = format!("{} {}", refusal.message, refusal.details).to_lowercase();
    assert!(
        text.contains("retry") || text.contains("again"),
        "no hint: {text}"
    );
    assert!(
        text.contains("not sent"),
        "it does not say that the call was not sent: {text}"
    );
    proxy.note(format!(
        "{} shed, slowest {:.0} ms",
        shed.len(),
        slowest.as_secs_f64() * 1e3
    ));
    let _report = proxy.finish().await;

    let (mut proxy, record) = narrow(
        vec![Tool::read_only("slow").after_ms(100)],
        json!({"queued_calls": 8}),
    )
    .await;
    let mut calls = JoinSet::new();
    for number in 0..8 {
        let session = proxy.daemon.session().await;
        let (name, arguments) = Lane::Read.call("up:slow", &json!({"n": number}));
        calls.spawn(async move { session.call(&name, &arguments).await });
        let end = Instant::now() + ANSWER;
        while proxy.log("server=up").await.len() <= number && Instant::now() < end {}
    }
    calls.join_all().await;
    let order: Vec<_> = record
        .calls()
        .iter()
        .map(|call| call["arguments"]["n"].clone())
        .collect();
    assert_eq!(
        order,
        (0..8).map(Value::from).collect::<Vec<_>>(),
        "not first in, first out"
    );
    proxy.note("first in, first out");
    proxy.finish().await
}
