//! R1 to R10: programs behind the daemon that die, hang, flood and talk nonsense.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{Case, Report, case};
use super::machine::Usage;
use super::proxy::{Lane, Proxy};
use super::setup::Setup;
use crate::{Outcome, Part, Script, Tool, malformed_frames};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "R1",
            "exits with code 7 in a read and in a write",
            exits_mid_call,
        ),
        case("R2", "exits at every start", crash_loop),
        case("R3", "never answers; stops by SIGSTOP", never_answers),
        case(
            "R4",
            "hangs at initialize, and at tools/list",
            hangs_at_start,
        ),
        case(
            "R5",
            "boots in 6 s, also after a restart of the daemon",
            boots_slowly,
        ),
        case("R6", "64 MiB line, endless line", endless_line).alone(),
        case(
            "R7",
            "results of 1, 5 and 50 MiB of every kind",
            large_results,
        )
        .alone(),
        case("R8", "50 malformed frames around an answer", malformed),
        case(
            "R9",
            "50 and 3,000 lines on stdout before the handshake",
            banners,
        ),
        case("R10", "stderr without a pause for 5 s", stderr_flood).alone(),
    ]
}

/// An upstream `up` with a tool for reads, one for writes and one for destruction, all with this outcome.
pub(super) fn tools(outcome: &Outcome) -> [Tool; 3] {
    let writes = json!({"readOnlyHint": false, "destructiveHint": false});
    let tools = [
        Tool::read_only("look"),
        Tool::annotated("save", &writes),
        Tool::destructive("wipe"),
    ];
    tools.map(|tool| tool.outcome(outcome.clone()))
}

async fn start(script: &Script, entry: Value) -> (Proxy, crate::Record) {
    let mut setup = Setup::new();
    let upstream = setup.stdio("up", script, entry);
    let proxy = setup.start().await;
    (proxy, upstream.record())
}

async fn exits_mid_call() -> Report {
    let (mut proxy, record) = start(&Script::new(tools(&Outcome::Exit(7))), json!({})).await;
    for (lane, tool) in [(Lane::Read, "up:look"), (Lane::Write, "up:save")] {
        proxy.ready("up").await;
        let called = proxy.call(lane, tool, json!({})).await;
        let refusal = called.refused();
        assert!(called.took < Duration::from_secs(1), "{:?}", called.took);
        for part in ["up", "7"] {
            assert!(
                refusal.message.contains(part),
                "{part:?} is not in {refusal:?}"
            );
        }
        proxy.note(format!("{} {:.0} ms", lane.operation(), called.ms()));
    }
    proxy.ready("up").await;
    let writes = record
        .calls()
        .iter()
        .filter(|call| call["name"] == "save")
        .count();
    assert_eq!(writes, 1, "a write was sent again");
    assert!(
        record.calls().len() <= 3,
        "the read was sent more than twice"
    );
    proxy.finish().await
}

async fn crash_loop() -> Report {
    let mut script = Script::default();
    script.start.exit_code = Some(3);
    let mut setup = Setup::new();
    let upstream = setup.stdio("up", &script, json!({}));
    setup.set(json!({"limits": {"starts": 4, "start_window": "60s"}}));
    let mut proxy = setup.start().await;
    let record = upstream.record();
    proxy
        .until("the state says that it is a crash loop", 40, async || {
            let server = proxy.server("up").await;
            server["state"] == "failed" && server.to_string().contains("crash loop")
        })
        .await;
    let starts = record.pids().len();
    assert!(starts <= 4, "started {starts} times");
    let server = proxy.server("up").await;
    assert!(server["advice"].is_string(), "no hint: {server}");
    let (status, answer) = proxy.rest("POST", "/servers/up/restart", None).await;
    assert!((200..300).contains(&status), "{status} {answer}");
    proxy
        .until("it is started again by hand", 10, async || {
            record.pids().len() > starts
        })
        .await;
    proxy.note(format!("{starts} starts"));
    proxy.finish().await
}

async fn never_answers() -> Report {
    let tools = [
        Tool::read_only("hang").outcome(Outcome::Hang),
        Tool::read_only("freeze").outcome(Outcome::Freeze),
    ];
    let (mut proxy, record) = start(&Script::new(tools), json!({"timeout": "1s"})).await;
    proxy.ready("up").await;
    let called = proxy.read("up:hang").await;
    assert_eq!(called.refused().code, "TIMEOUT");
    assert!(
        (900.0..3_000.0).contains(&called.ms()),
        "{} ms",
        called.ms()
    );
    proxy.note(format!("1 s deadline: {:.0} ms", called.ms()));
    proxy
        .until("the upstream is told", 5, async || {
            !record.received("notifications/cancelled").is_empty()
        })
        .await;
    let found = proxy.own("retrieve_tools", &json!({"query": "hang"})).await;
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "up:hang");
    // Frozen: after some timeouts in a row it no longer counts as ready, and is started again.
    let began = Instant::now();
    proxy
        .until("a frozen upstream is noticed", 40, async || {
            let _ = proxy.read("up:freeze").await;
            let server = proxy.server("up").await;
            server["state"] != "ready" || !server["last_error"].is_null() || record.pids().len() > 1
        })
        .await;
    proxy.note(format!(
        "frozen: noticed in {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    proxy.finish().await
}

async fn hangs_at_start() -> Report {
    let mut setup = Setup::new();
    for (name, method) in [("one", "initialize"), ("two", "tools/list")] {
        let mut script = Script::new([Tool::read_only("look")]);
        script.hang_at = vec![method.to_owned()];
        setup.stdio(name, &script, json!({"timeout": "3s"}));
        // With the timeout of two minutes that servers have by default, it still hangs at the end,
        // when the daemon is stopped.
        setup.stdio(&format!("{name}-still"), &script, json!({}));
    }
    let began = Instant::now();
    // The start waits for the other upstream, not for these.
    let mut proxy = setup.start().await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    proxy.note(format!("others usable after {:.1} s", took.as_secs_f64()));
    for name in ["one:look", "two:look"] {
        assert!(
            proxy
                .call_within(Duration::from_secs(40), Lane::Read, name, json!({}))
                .await
                .failed()
        );
    }
    proxy.finish().await
}

async fn boots_slowly() -> Report {
    let mut script = Script::new([Tool::read_only("look")]);
    script.start.boot_ms = 6_000;
    let (proxy, record) = start(&script, json!({})).await;
    assert_ne!(proxy.server("up").await["state"], "ready");
    proxy.ready("up").await;
    proxy.read("up:look").await.ok();
    let starts = record.pids().len();
    assert!(starts <= 2, "started {starts} times for one boot");
    let home = proxy.stopped().await;
    let mut setup = Setup::in_home(home);
    setup.stdio("up", &script, json!({}));
    let mut proxy = setup.start().await;
    let found = proxy
        .own("retrieve_tools", &json!({"query": "look", "server": "up"}))
        .await;
    let known = &found["structuredContent"]["tools"][0];
    assert_eq!(
        known["name"], "up:look",
        "not known after a restart until it is up"
    );
    assert_eq!(proxy.server("up").await["stale"], true);
    proxy.ready("up").await;
    proxy.read("up:look").await.ok();
    proxy.note(format!("{starts} starts"));
    proxy.finish().await
}

async fn endless_line() -> Report {
    let tools = [
        Tool::read_only("huge").outcome(Outcome::Huge { mebibytes: 64 }),
        Tool::read_only("endless").outcome(Outcome::EndlessLine),
        Tool::read_only("look"),
    ];
    let (mut proxy, record) = start(&Script::new(tools), json!({"timeout": "20s"})).await;
    proxy.ready("up").await;
    for tool in ["up:huge", "up:endless"] {
        let called = proxy
            .call_within(Duration::from_secs(25), Lane::Read, tool, json!({}))
            .await;
        let message = called.refused().message;
        assert!(message.contains("limit"), "{message}");
        assert!(
            called.took < Duration::from_secs(15),
            "the connection was not ended"
        );
        let peak = Usage::of(proxy.daemon.pid()).rss_mib - proxy.before.rss_mib;
        proxy.note(format!(
            "{tool} {:.1} s, RSS +{peak:.0}",
            called.took.as_secs_f64()
        ));
        assert!(peak < 64.0, "RSS +{peak:.0} MiB");
        proxy.ready("up").await;
        proxy.read("up:look").await.ok();
    }
    assert!(
        record.pids().len() >= 3,
        "it was not started again: {:?}",
        record.pids()
    );
    proxy.finish().await
}

async fn large_results() -> Report {
    let sizes = [1, 5, 50];
    let name = |part: Part, mebibytes: usize| format!("{part:?}_{mebibytes}").to_lowercase();
    let tools = sizes.iter().flat_map(|mebibytes| {
        let mebibytes = *mebibytes;
        Part::ALL.map(|part| {
            Tool::read_only(&name(part, mebibytes)).outcome(Outcome::Large { part, mebibytes })
        })
    });
    let (mut proxy, _) = start(&Script::new(tools), json!({})).await;
    let mut largest = 0;
    for mebibytes in sizes {
        for part in Part::ALL {
            proxy.ready("up").await;
            let tool = format!("up:{}", name(part, mebibytes));
            let called = proxy
                .call_within(Duration::from_secs(30), Lane::Read, &tool, json!({}))
                .await;
            let text = called.answer.as_ref().expect("a result");
            largest = largest.max(text.len());
            // The limit of 100,000 characters, with room for what is said beside them.
            assert!(
                text.len() < 150_000,
                "{tool}: {} bytes to an agent",
                text.len()
            );
            if mebibytes > 16 {
                let message = called.refused().message;
                assert!(message.contains("limit"), "{message}");
            } else {
                let kept = text.contains("read_cache");
                assert!(kept, "{tool} says nothing of read_cache: {text:.300}");
            }
        }
    }
    proxy.note(format!("largest answer {largest} bytes"));
    proxy.memory_slack = 64.0;
    proxy.finish().await
}

async fn malformed() -> Report {
    let tool = Tool::read_only("look").outcome(Outcome::Frames(malformed_frames()));
    let (mut proxy, record) = start(&Script::new([tool]), json!({})).await;
    proxy.ready("up").await;
    for _ in 0..3 {
        proxy.read("up:look").await.ok();
    }
    assert_eq!(record.pids().len(), 1, "the connection was not kept");
    proxy.note(format!("{} frames", malformed_frames().len()));
    proxy.finish().await
}

async fn banners() -> Report {
    let script = |lines: usize| {
        let mut script = Script::new([Tool::read_only("look")]);
        let line = "\u{1b}[31mWelcome to the banner\u{202e}".to_owned();
        script.start.banner = vec![line; lines];
        script
    };
    let mut setup = Setup::new();
    setup.stdio("few", &script(50), json!({}));
    setup.stdio("many", &script(3_000), json!({}));
    let proxy = setup.start().await;
    proxy.ready("few").await;
    proxy.read("few:look").await.ok();
    proxy
        .until("it is told that the banner is in the way", 30, async || {
            let server = proxy.server("many").await;
            let error = server["last_error"].as_str().unwrap_or_default();
            server["state"] != "ready" && error.contains("Welcome to the banner")
        })
        .await;
    let output = proxy.daemon.home.cli(["upstream", "list"]).await;
    assert!(
        !output.stdout.contains(['\u{1b}', '\u{202e}']),
        "{}",
        output.stdout
    );
    proxy.finish().await
}

async fn stderr_flood() -> Report {
    let mut script = Script::new([Tool::read_only("look")]);
    script.start.stderr_flood = true;
    let (mut proxy, _) = start(&script, json!({})).await;
    proxy.ready("up").await;
    let end = Instant::now() + Duration::from_secs(5);
    let mut latencies = Vec::new();
    while Instant::now() < end {
        let called = proxy.read("up:look").await;
        called.ok();
        latencies.push(called.ms());
    }
    let logs = proxy.daemon.home.path().join(".mcpproxy/logs");
    let bytes: u64 = std::fs::read_dir(logs).map_or(0, |files| {
        files
            .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
            .sum()
    });
    assert!(bytes < 32 << 20, "{bytes} bytes of logs");
    let p99 = super::invariants::p99(&latencies);
    proxy.note(format!("its own p99 {p99:.1} ms, log {} kB", bytes >> 10));
    proxy.finish().await
}
