//! Processes: none is left behind, none is restarted without need.

use std::time::Duration;

use serde_json::json;
use testkit::{DEADLINE, Script, TestDaemon, Tool, process, wait_until};

use crate::support::home;

/// What the daemon may take until nothing of it is left.
const GONE: Duration = Duration::from_secs(5);

/// An upstream that stays when its stdin ends and ignores SIGTERM, with a child that does, too.
fn stubborn() -> Script {
    let mut script = Script::new([Tool::read_only("any")]);
    script.stubborn = true;
    script.start.grandchild = true;
    script
}

async fn assert_gone(pids: &[u32]) {
    wait_until("the processes are gone", GONE, async || {
        !pids.iter().copied().any(process::is_alive)
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_a_daemon_that_is_killed() {
    let home = home();
    let upstream = home.upstream("up", &stubborn());
    let mut daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    daemon.session_with(&["up:any"]).await;
    let record = upstream.record();
    let pids = [record.pids(), record.grandchildren()].concat();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().copied().all(process::is_alive));
    daemon.kill().await;
    assert_gone(&pids).await;
}

/// The watchdog that replaces a killed one is told of the upstreams that run.
#[tokio::test]
async fn a_killed_watchdog_is_replaced() {
    let home = home();
    let (first, second) = (
        home.upstream("first", &stubborn()),
        home.upstream("second", &stubborn()),
    );
    let servers = json!({"first": first.config()});
    let mut daemon = TestDaemon::with_servers(home, servers).await;
    daemon.session_with(&["first:any"]).await;
    let old = process::watchdog_of(daemon.pid()).expect("a watchdog");
    process::kill(old);
    wait_until("another watchdog runs", DEADLINE, async || {
        process::watchdog_of(daemon.pid()).is_some_and(|new| new != old)
    })
    .await;
    // An upstream starts only when the watchdog knows it, and all that were started before.
    let servers = json!({"first": first.config(), "second": second.config()});
    daemon.reconfigure(json!({"mcpServers": servers}));
    daemon.session_with(&["second:any"]).await;
    let records = [first.record(), second.record()];
    let pids = records.map(|record| [record.pids(), record.grandchildren()].concat());
    let pids = pids.concat();
    assert_eq!(pids.len(), 4, "an upstream was started again: {pids:?}");
    daemon.kill().await;
    assert_gone(&pids).await;
}

#[tokio::test]
async fn a_graceful_stop_ends_children_that_do_not_listen() {
    let home = home();
    let upstream = home.upstream("up", &stubborn());
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    daemon.session_with(&["up:any"]).await;
    let record = upstream.record();
    let pids = [record.pids(), record.grandchildren()].concat();
    let (_home, status) = daemon.stop().await;
    assert!(status.success(), "{status}");
    assert_gone(&pids).await;
}

#[tokio::test]
async fn a_changed_config_touches_only_what_it_changes() {
    let home = home();
    let tools = |name| Script::new([Tool::read_only(name)]);
    let kept = home.upstream("kept", &tools("kept_tool"));
    let changed = home.upstream("changed", &tools("changed_tool"));
    let removed = home.upstream("removed", &tools("removed_tool"));
    let added = home.upstream("added", &tools("added_tool"));
    let servers = json!({
        "kept": kept.config(), "changed": changed.config(), "removed": removed.config(),
    });
    let daemon = TestDaemon::with_servers(home, servers).await;
    let tools = [
        "kept:kept_tool",
        "changed:changed_tool",
        "removed:removed_tool",
    ];
    let session = daemon.session_with(&tools).await;
    let entry = changed.config_with(&json!({"env": {"CHANGED": "yes"}}));
    daemon.reconfigure(json!({"mcpServers": {
        "kept": kept.config(), "changed": entry, "added": added.config(),
    }}));
    daemon.wait_for_tool(&session, "added:added_tool").await;
    wait_until(
        "the changed server is started again",
        DEADLINE,
        async || changed.record().pids().len() == 2,
    )
    .await;
    assert_gone(&[removed.record().pids()[0], changed.record().pids()[0]]).await;
    assert_eq!(kept.record().pids().len(), 1);
    assert!(process::is_alive(kept.record().pids()[0]));
    // The session of the client goes on.
    daemon.wait_for_tool(&session, "kept:kept_tool").await;
}

#[tokio::test]
async fn a_broken_config_keeps_the_old_one_and_says_where() {
    let home = home();
    let kept = home.upstream("kept", &Script::new([Tool::read_only("kept_tool")]));
    let daemon = TestDaemon::with_servers(home, json!({"kept": kept.config()})).await;
    let session = daemon.session_with(&["kept:kept_tool"]).await;
    daemon.home.write_config_text("{\n  \"mcpServers\": {,\n}");
    wait_until("the fault is told", DEADLINE, async || {
        daemon.log().contains("line 2")
    })
    .await;
    daemon.wait_for_tool(&session, "kept:kept_tool").await;
    assert_eq!(kept.record().pids().len(), 1);
}

#[tokio::test]
async fn the_rules_can_be_changed_while_running() {
    let home = home();
    let upstream = home.upstream("up", &Script::new([Tool::read_only("any")]));
    let servers = json!({"up": upstream.config()});
    let daemon = TestDaemon::with_servers(home, servers.clone()).await;
    let session = daemon.session_with(&["up:any"]).await;
    let arguments = json!({"name": "up:any"});
    let refusal = session.refusal("call_tool_read", &arguments).await;
    assert_eq!(refusal.code, "MISSING_INTENT");
    daemon.reconfigure(json!({"mcpServers": servers, "intent_declaration": {"mode": "inferred"}}));
    wait_until("the new mode counts", DEADLINE, async || {
        let result = session.call("call_tool_read", &arguments).await;
        !result.contains("MISSING_INTENT")
    })
    .await;
    assert_eq!(upstream.record().pids().len(), 1);
}

#[tokio::test]
async fn a_second_daemon_on_the_same_data_is_refused() {
    let daemon = TestDaemon::with_servers(home(), json!({})).await;
    let output = daemon.home.cli(["serve", "--listen", "127.0.0.1:0"]).await;
    assert_ne!(output.code, 0);
    assert!(
        output.stderr.contains(&daemon.pid().to_string()),
        "{}",
        output.stderr
    );
    assert!(daemon.is_up().await);
}
