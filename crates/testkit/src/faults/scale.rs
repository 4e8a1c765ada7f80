//! R31 to R34: many tools, many agents, process trees that do not end, no file descriptors left.

use std::time::{Duration, Instant};

use rustix::process::Resource;
use serde_json::json;
use tokio::task::JoinSet;

use super::case::{Case, Report, case};
use super::invariants::percentile;
use super::log::limit;
use super::machine::{Usage, descendants};
use super::proxy::{ANSWER, Lane, call};
use super::setup::{Setup, binary};
use super::upstreams::tools;
use super::wire;
use crate::{HttpUpstream, Outcome, Script, Tool, process, wait_until};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("R31", "10,000 tools of 500 servers", many_tools).alone(),
        case(
            "R32",
            "10 agents for 10 s in front of 5 upstreams",
            many_agents,
        )
        .alone(),
        case(
            "R33",
            "process trees that ignore SIGTERM; a child outlives its parent",
            stubborn_trees,
        ),
        case("R34", "no file descriptor left", no_descriptors),
    ]
}

async fn many_tools() -> Report {
    let mut setup = Setup::new();
    let words = [
        "invoice", "calendar", "deploy", "ticket", "photo", "metric", "branch", "contact",
    ];
    let mut upstreams = Vec::new();
    for server in 0..500 {
        let tools = (0..20).map(|number| {
            let word = words[(server + number) % words.len()];
            Tool::defined(&json!({
                "name": format!("{word}_{number}"),
                "description": format!("Handles the {word} number {number} of customer {server}"),
                "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}},
                "annotations": {"readOnlyHint": true},
            }))
        });
        let name = format!("server{server}");
        let upstream = HttpUpstream::start(setup.home.path(), &name, Script::new(tools)).await;
        setup.server(&name, upstream.config());
        upstreams.push(upstream);
    }
    let began = Instant::now();
    let mut proxy = setup.start().await;
    let ready = began.elapsed();
    proxy
        .until("all tools are known", 60, async || {
            let status = proxy.daemon.api("/servers").await;
            let servers = status["servers"].as_array().expect("servers").clone();
            let known: u64 = servers
                .iter()
                .filter_map(|server| server["tools"].as_u64())
                .sum();
            known > 10_000
        })
        .await;
    let all = began.elapsed();
    let mut latencies = Vec::new();
    for number in 0..100 {
        let query = format!("{} of customer {number}", words[number % words.len()]);
        let asked = Instant::now();
        let found = proxy.own("retrieve_tools", &json!({"query": query})).await;
        latencies.push(asked.elapsed().as_secs_f64() * 1e3);
        assert!(
            found["structuredContent"]["total"].as_u64() > Some(0),
            "{query}"
        );
    }
    // What is compiled without optimisation gets ten times as long.
    let debug = binary()
        .components()
        .any(|part| part.as_os_str() == "debug");
    let (allowed, start) = if debug { (200.0, 10) } else { (20.0, 3) };
    let p95 = percentile(&latencies, 0.95);
    assert!(p95 <= allowed, "search p95 {p95:.1} ms");
    assert!(
        ready < Duration::from_secs(start),
        "first call after {ready:?}"
    );
    let rss = Usage::of(proxy.daemon.pid()).rss_mib;
    assert!(rss <= 300.0, "RSS {rss:.0} MiB");
    proxy.note(format!(
        "ready {:.1} s, first call {:.1} s, all listed {:.1} s",
        proxy.ready_after.as_secs_f64(),
        ready.as_secs_f64(),
        all.as_secs_f64()
    ));
    proxy.note(format!("search p95 {p95:.1} ms"));
    // What the start cost was measured before all servers were there.
    proxy.before = Usage::of(proxy.daemon.pid());
    proxy.finish().await
}

async fn many_agents() -> Report {
    let mut setup = Setup::new();
    for number in 0..5 {
        setup.stdio(
            &format!("up{number}"),
            &Script::new(tools(&Outcome::Echo)),
            json!({}),
        );
    }
    let mut proxy = setup.start().await;
    for number in 0..5 {
        proxy.ready(&format!("up{number}")).await;
    }
    let children = descendants(proxy.daemon.pid()).len();
    let end = Instant::now() + Duration::from_secs(10);
    let mut agents = JoinSet::new();
    for agent in 0..10 {
        let session = proxy.daemon.session().await;
        agents.spawn(async move {
            let mut calls = 0_u32;
            while Instant::now() < end {
                let tool = format!("up{}:look", (agent + calls) % 5);
                call(&session, ANSWER, Lane::Read, &tool, json!({"n": calls}))
                    .await
                    .ok();
                calls += 1;
            }
            calls
        });
    }
    let calls: u32 = agents.join_all().await.iter().sum();
    assert_eq!(
        descendants(proxy.daemon.pid()).len(),
        children,
        "children came or went"
    );
    proxy.note(format!("{} calls/s, {children} processes", calls / 10));
    proxy.finish().await
}

async fn stubborn_trees() -> Report {
    let mut script = Script::new([
        Tool::read_only("look"),
        Tool::read_only("die").outcome(Outcome::Exit(1)),
    ]);
    script.start.grandchild = true;
    let mut holding = script.clone();
    holding.start.grandchild_holds_stdout = true;
    script.stubborn = true;
    let mut leaving = script.clone();
    leaving.start.grandchild_leaves_group = true;
    let gone = async |pids: &[u32], what: &str| {
        let began = Instant::now();
        wait_until(what, Duration::from_secs(6), async || {
            !pids.iter().copied().any(process::is_alive)
        })
        .await;
        format!("{what} {:.1} s", began.elapsed().as_secs_f64())
    };
    let mut setup = Setup::new();
    let stubborn = setup.stdio("stubborn", &script, json!({}));
    let holding = setup.stdio("holding", &holding, json!({}));
    let leaving = setup.stdio("leaving", &leaving, json!({}));
    let mut proxy = setup.start().await;
    for name in ["stubborn", "holding", "leaving"] {
        proxy.ready(name).await;
    }
    // Documented: what left the group of its parent is out of reach.
    proxy.exempt = leaving.record().grandchildren();
    let tree = [stubborn.record().pids(), stubborn.record().grandchildren()].concat();
    let (status, answer) = proxy.rest("POST", "/servers/stubborn/disable", None).await;
    assert!((200..300).contains(&status), "{answer}");
    let figure = gone(&tree, "disabled").await;
    proxy.note(figure);
    // The child dies, its own child keeps the pipe open: the connection is lost all the same.
    let first = holding.record().pids().len();
    assert!(proxy.read("holding:die").await.failed());
    proxy
        .until("the dead child is noticed", 20, async || {
            holding.record().pids().len() > first
        })
        .await;
    proxy.ready("holding").await;
    proxy.read("holding:look").await.ok();
    let tree: Vec<u32> = descendants(proxy.daemon.pid()).into_keys().collect();
    let tree: Vec<u32> = tree
        .into_iter()
        .filter(|pid| !proxy.exempt.contains(pid))
        .collect();
    let exempt = proxy.exempt.clone();
    let home = proxy.killed().await;
    let figure = gone(&tree, "kill -9").await;
    exempt.into_iter().for_each(process::kill);
    let mut proxy = Setup::in_home(home).start().await;
    proxy.note(figure);
    proxy.finish().await
}

async fn no_descriptors() -> Report {
    let mut proxy = Setup::new().start().await;
    let address = proxy.daemon.address().to_owned();
    let used = proxy.before.fds as u64;
    limit(&proxy, Resource::Nofile, Some(used + 30));
    let idle = wire::connections(&address, 80, b"").await;
    proxy
        .until("it is told", 10, async || {
            let log = proxy.daemon.log().to_lowercase();
            log.contains("too many open files") || log.contains("file descriptor")
        })
        .await;
    // A client that is connected goes on.
    proxy.read("other:look").await.ok();
    let lines = proxy.daemon.log().lines().count();
    assert!(lines < 200, "the log is flooded: {lines} lines");
    drop(idle);
    proxy
        .until("new clients are taken again", 10, async || {
            proxy.daemon.is_up().await
        })
        .await;
    limit(&proxy, Resource::Nofile, Some(1_024));
    proxy.note("told, recovered");
    proxy.finish().await
}
