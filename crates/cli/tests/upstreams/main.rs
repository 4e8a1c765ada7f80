//! Upstreams that die, hang, crash in a loop or are overrun, as callers and operators see it.
#![cfg(test)]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{
    DEADLINE, Home, HttpUpstream, Outcome, Refusal, Script, Session, StdioUpstream, TestDaemon,
    Tool, wait_for, wait_until,
};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

fn home() -> Home {
    Home::new(Path::new(env!("CARGO_BIN_EXE_mcpproxy")))
}

/// The arguments of `call_tool_*` for a tool without arguments of its own.
fn call(tool: &str, operation_type: &str) -> Value {
    json!({"name": tool, "intent": {"operation_type": operation_type}})
}

fn is_refused(result: &str) -> bool {
    let result: Value = serde_json::from_str(result).unwrap();
    result["isError"] == true
}

async fn server_in(daemon: &TestDaemon, state: &str) -> Value {
    wait_for(&format!("up is {state}"), DEADLINE, async || {
        let server = daemon.api("/servers/up").await;
        (server["state"] == state).then_some(server)
    })
    .await
}

/// The entry for an upstream that runs a line of shell before it starts.
fn after_shell(line: &str, upstream: &StdioUpstream) -> Value {
    let config = upstream.config();
    let script = format!("{line}; exec \"$0\" \"$@\"");
    let mut arguments = vec![json!("-c"), json!(script), config["command"].clone()];
    arguments.extend(config["args"].as_array().unwrap().iter().cloned());
    json!({"command": "sh", "args": arguments})
}

#[tokio::test]
async fn a_call_whose_server_died_says_how_and_what_it_last_wrote() {
    let home = home();
    let script = Script::new([
        Tool::read_only("quit").outcome(Outcome::Exit(7)),
        Tool::read_only("abort").outcome(Outcome::Crash),
    ]);
    let upstream = home.upstream("up", &script);
    let entry = after_shell("echo 'panic: out of cheese' >&2", &upstream);
    let daemon = TestDaemon::with_servers(home, json!({ "up": entry })).await;
    let session = daemon.session_with(&["up:quit"]).await;
    for (tool, how) in [
        ("up:quit", "exit code 7"),
        ("up:abort", "signal 6 (SIGABRT)"),
    ] {
        server_in(&daemon, "ready").await;
        let refusal = session.refusal("call_tool_read", &call(tool, "read")).await;
        assert_eq!(refusal.code, "UPSTREAM_ERROR", "{refusal:?}");
        assert_eq!(refusal.details["sent"], true, "{refusal:?}");
        for part in [
            "up",
            how,
            "out of cheese",
            "may have been carried out",
            "mcpproxy upstream logs up",
        ] {
            assert!(refusal.message.contains(part), "{part}: {refusal:?}");
        }
    }
}

/// What npm says of a package that does not exist, before the general advice that it ends with.
#[tokio::test]
async fn a_server_that_cannot_be_fetched_says_what_npm_said() {
    let home = home();
    let words = "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/nope\n\
        npm error 404\nnpm error 404 Note that you can also install from a\n\
        npm error 404 tarball, folder, http url, or git folder.\n\
        npm error A complete log of this run can be found in: debug-0.log\n";
    let script = format!("printf '{words}' >&2; exit 1");
    let entry = json!({"command": "sh", "args": ["-c", script]});
    let daemon = TestDaemon::with_servers(home, json!({ "up": entry })).await;
    let server = server_in(&daemon, "waiting").await;
    let error = server["last_error"].as_str().unwrap();
    for part in ["exit code 1", "E404", "registry.example/nope"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let added = ["upstream", "add", "again", "--", "sh", "-c", &script];
    let added = daemon.home.cli(added).await;
    added.ended_with(1);
    assert!(added.stderr.contains("registry.example/nope"), "{added:?}");
}

#[tokio::test]
async fn a_write_is_not_sent_twice_when_the_session_is_lost() {
    let home = home();
    let mut script = Script::new([
        Tool::annotated(
            "change",
            &json!({"readOnlyHint": false, "destructiveHint": false}),
        ),
        Tool::read_only("look"),
        Tool::echo("unknown"),
    ]);
    script.http.calls_per_session = Some(1);
    let http = HttpUpstream::start(home.path(), "http", script).await;
    let daemon = TestDaemon::with_servers(home, json!({"up": http.config()})).await;
    let session = daemon.session_with(&["up:change"]).await;
    let calls = |name: &str| {
        let calls = http.record().calls();
        calls.iter().filter(|call| call["name"] == name).count()
    };
    // Each second call finds that the session is gone.
    let first = session
        .call("call_tool_write", &call("up:change", "write"))
        .await;
    assert!(!is_refused(&first), "{first}");
    let refusal = session
        .refusal("call_tool_write", &call("up:change", "write"))
        .await;
    assert_eq!(refusal.code, "UPSTREAM_ERROR", "{refusal:?}");
    assert!(
        refusal.message.contains("may have been carried out"),
        "{refusal:?}"
    );
    assert_eq!(calls("change"), 2);
    for _ in 0..3 {
        let read = session
            .call("call_tool_read", &call("up:look", "read"))
            .await;
        assert!(!is_refused(&read), "{read}");
    }
    assert_eq!(calls("look"), 5, "a read is sent again");
    // A lane is what the caller says; nothing says that this tool only reads.
    let refusal = session
        .refusal("call_tool_read", &call("up:unknown", "read"))
        .await;
    assert!(
        refusal.message.contains("may have been carried out"),
        "{refusal:?}"
    );
    assert_eq!(calls("unknown"), 1);
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_used_but_not_for_this_machine() {
    let home = home();
    let script = || Script::new([Tool::read_only("look")]);
    let near = HttpUpstream::start(home.path(), "near", script()).await;
    // It looks at the path only, so it can stand for a proxy and for what is behind it.
    let proxy = HttpUpstream::start(home.path(), "proxy", script()).await;
    let url = proxy.config()["url"].as_str().unwrap().to_owned();
    let tunnels = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tunnels_url = format!("http://me:secret@{}", tunnels.local_addr().unwrap());
    let servers = json!({
        "near": near.config(),
        "far": {"url": "http://upstream.invalid/mcp"},
        "far-tls": {"url": "https://upstream.invalid/mcp"},
    });
    let environment = [("HTTP_PROXY", &*url), ("HTTPS_PROXY", &*tunnels_url)];
    let config = json!({ "mcpServers": servers });
    let daemon = TestDaemon::start_at(home, config, &environment, "").await;
    let session = daemon.session_with(&["near:look", "far:look"]).await;
    for tool in ["near:look", "far:look"] {
        let read = session.call("call_tool_read", &call(tool, "read")).await;
        assert!(!is_refused(&read), "{read}");
    }
    assert_eq!(near.record().calls().len(), 1);
    assert_eq!(proxy.record().calls().len(), 1);

    let tunnel = async {
        let (mut stream, _) = tunnels.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    };
    let head = tokio::time::timeout(DEADLINE, tunnel).await.unwrap();
    assert!(head.starts_with("CONNECT upstream.invalid:443 HTTP/1.1\r\n"));
    // The text "me:secret" in base64.
    assert!(head.contains("Basic bWU6c2VjcmV0\r\n"), "{head}");
}

#[tokio::test]
async fn a_full_queue_sheds_with_a_hint_and_the_log_says_what_was_not_sent() {
    let home = home();
    let upstream = home.upstream(
        "up",
        &Script::new([Tool::read_only("hang").outcome(Outcome::Hang)]),
    );
    let entry = upstream.config_with(&json!({"max_concurrency": 1, "timeout": "4s"}));
    let config = json!({"limits": {"queued_calls": 1}, "mcpServers": {"up": entry}});
    let daemon = TestDaemon::start(home, config).await;
    let session = daemon.session_with(&["up:hang"]).await;
    let hang = call("up:hang", "read");
    let shed = async {
        wait_until("the first call is sent", DEADLINE, async || {
            !upstream.record().calls().is_empty()
        })
        .await;
        // Of two that come now one waits, and the other is refused before anything ends.
        let (one, other) = (daemon.session().await, daemon.session().await);
        let (mut one, mut other) = (
            Box::pin(one.call("call_tool_read", &hang)),
            Box::pin(other.call("call_tool_read", &hang)),
        );
        let began = Instant::now();
        let first = tokio::select! {
            first = &mut one => (first, began.elapsed(), other.await),
            first = &mut other => (first, began.elapsed(), one.await),
        };
        first
    };
    let (sent, (shed, took, waited)) = tokio::join!(session.call("call_tool_read", &hang), shed);
    assert!(took < Duration::from_secs(2), "{took:?}");
    let shed = Refusal::of(&shed);
    assert_eq!(shed.code, "SERVER_UNAVAILABLE", "{shed:?}");
    assert_eq!(shed.details["sent"], false, "{shed:?}");
    assert!(
        shed.details["retry_after_seconds"].as_u64() >= Some(1),
        "{shed:?}"
    );
    let waited = Refusal::of(&waited);
    assert_eq!(waited.code, "SERVER_UNAVAILABLE", "{waited:?}");
    assert!(waited.message.contains("was not sent"), "{waited:?}");
    let sent = Refusal::of(&sent);
    assert_eq!(sent.code, "TIMEOUT", "{sent:?}");
    assert!(sent.message.contains("may still be running"), "{sent:?}");
    assert_eq!(upstream.record().calls().len(), 1);
    let records = daemon.api("/activity?type=tool_call&status=error").await;
    let records = records["activities"].as_array().unwrap();
    let not_sent = records.iter().filter(|record| {
        let message = record["error_message"].as_str().unwrap();
        message.contains("was not sent")
    });
    assert_eq!(not_sent.count(), 2, "{records:?}");
}

#[tokio::test]
async fn a_crash_loop_is_told_and_can_be_tried_again() {
    let home = home();
    let mut script = Script::new([Tool::read_only("late")]);
    script.start.exit_code = Some(3);
    let upstream = home.upstream("up", &script);
    let config = json!({"limits": {"starts": 3}, "mcpServers": {"up": upstream.config()}});
    let daemon = TestDaemon::start(home, config).await;
    let server = server_in(&daemon, "failed").await;
    let error = server["last_error"].as_str().unwrap();
    assert!(
        error.contains("crash loop") && error.contains("exit code 3"),
        "{error}"
    );
    let advice = server["advice"].as_str().unwrap();
    assert!(
        advice.contains("upstream logs up") && advice.contains("upstream restart up"),
        "{advice}"
    );
    assert_eq!(upstream.record().pids().len(), 3);
    daemon
        .home
        .upstream("up", &Script::new([Tool::read_only("late")]));
    daemon
        .home
        .cli(["upstream", "restart", "up"])
        .await
        .succeeded();
    server_in(&daemon, "ready").await;
}

#[tokio::test]
async fn a_daemon_ends_although_a_server_hangs_in_its_list() {
    let home = home();
    let line = "trap '' TERM; while read -r line; do id=${line#*'\"id\":'}; id=${id%%,*}; \
                case \"$line\" in *initialize\\\"*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\
                {\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"sh\",\
                \"version\":\"1\"}}}\\n' \"$id\";; *server/discover*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\
                \"error\":{\"code\":-32601,\"message\":\"?\"}}\\n' \"$id\";; *tools/list*) : > listing; \
                while :; do sleep 1; done;; esac; done";
    let entry = json!({"command": "sh", "args": ["-c", line]});
    let daemon = TestDaemon::with_servers(home, json!({ "up": entry })).await;
    let listing = daemon.home.path().join("listing");
    wait_until("the server hangs", DEADLINE, async || listing.exists()).await;
    let began = Instant::now();
    daemon.stop().await;
    assert!(
        began.elapsed() < Duration::from_secs(12),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn tools_are_known_while_their_server_starts_after_a_restart_of_the_daemon() {
    let home = home();
    let mut script = Script::new([Tool::read_only("early_bird")]);
    let upstream = home.upstream("up", &script);
    let servers = json!({"up": upstream.config()});
    let daemon = TestDaemon::with_servers(home, servers.clone()).await;
    daemon.session_with(&["up:early_bird"]).await;
    server_in(&daemon, "ready").await;
    let (home, _) = daemon.stop().await;
    script.start.delay_ms = 6_000;
    home.upstream("up", &script);
    let daemon = TestDaemon::with_servers(home, servers).await;
    let session = daemon.session().await;
    let found = session.retrieve(&json!({"query": "early bird"})).await;
    assert_eq!(found["tools"][0]["name"], "up:early_bird", "{found}");
    assert_eq!(found["tools"][0]["stale"], true, "{found}");
    assert_eq!(daemon.api("/servers/up").await["state"], "connecting");
    // A call waits for the server.
    let read = session
        .call("call_tool_read", &call("up:early_bird", "read"))
        .await;
    assert!(!is_refused(&read), "{read}");
    let found = session.retrieve(&json!({"query": "early bird"})).await;
    assert_eq!(found["tools"][0]["stale"], Value::Null, "{found}");
    let drift = daemon.api("/activity?type=quarantine_change").await;
    assert_eq!(drift["total"], 0, "{drift}");
}

/// Resources are collected page by page for `/mcp/direct`, within the same budget as tools.
#[tokio::test]
async fn an_endless_list_of_resources_is_left_out() {
    let home = home();
    let line = "while read -r line; do id=${line#*'\"id\":'}; id=${id%%[,\\}]*}; r='{}'; \
                case \"$line\" in \
                *server/discover*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"?\"}}\\n' \"$id\"; continue;; \
                *initialize\\\"*) r='{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"resources\":{},\"tools\":{}},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}';; \
                *tools/list*) r='{\"tools\":[]}';; \
                *resources/list*) echo >> pages; r='{\"resources\":[{\"uri\":\"a:'$id'\",\"name\":\"n\"}],\"nextCursor\":\"'$id'\"}';; \
                *notifications/*) continue;; esac; \
                printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\\n' \"$id\" \"$r\"; done";
    let entry = json!({"command": "sh", "args": ["-c", line]});
    let config = json!({"limits": {"listing_pages": 7}, "mcpServers": {"up": entry}});
    let daemon = TestDaemon::start(home, config).await;
    server_in(&daemon, "ready").await;
    let session = Session::open(&daemon.url("/mcp/direct")).await;
    let answer = session.request("resources/list", "{}").await;
    let result: Value = serde_json::from_str(&answer.result.unwrap()).unwrap();
    assert_eq!(result["resources"], json!([]), "{result}");
    let pages = std::fs::read_to_string(daemon.home.path().join("pages")).unwrap();
    assert_eq!(pages.lines().count(), 7);
    assert!(daemon.log().contains("7 pages"), "{}", daemon.log());
}
