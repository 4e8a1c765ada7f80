//! X3 to X7: `mcpproxy stdio` in front of a daemon, and stopping.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::case::{Case, Report, case};
use super::proxy::{ANSWER, Lane, within};
use super::setup::Setup;
use super::upstreams::tools;
use super::wire::META;
use crate::{Home, Outcome, Script, Tool, process};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "X3",
            "a modern client over mcpproxy stdio with a daemon",
            modern_over_stdio,
        ),
        case(
            "X4",
            "the daemon restarts under a client of mcpproxy stdio",
            restart_under_stdio,
        ),
        case(
            "X5",
            "SIGTERM while a write and a read hang",
            stop_during_calls,
        ),
        case(
            "X6",
            "restart, disable and removal of a server that hangs",
            administration_of_hung,
        ),
        case(
            "X7",
            "a line of 5 MiB over stdio; 100 hung calls and their cancellation",
            limits_of_stdio,
        ),
    ]
}

/// A client of `mcpproxy stdio`.
struct Relay {
    _child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Relay {
    fn start(home: &Home) -> Self {
        let mut child = home
            .command()
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary can be run");
        Self {
            stdin: child.stdin.take().expect("piped"),
            stdout: BufReader::new(child.stdout.take().expect("piped")).lines(),
            _child: child,
        }
    }

    async fn initialized(home: &Home) -> Self {
        let mut relay = Self::start(home);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "relay", "version": "1"}});
        let hello = relay.request(1, "initialize", &params.to_string()).await;
        assert!(hello.get("result").is_some(), "{hello}");
        relay
            .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        relay
    }

    async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        within(
            ANSWER,
            "a line is taken",
            self.stdin.write_all(line.as_bytes()),
        )
        .await
        .expect("it reads");
    }

    async fn request(&mut self, id: u32, method: &str, params: &str) -> Value {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ))
        .await;
        self.answer(id).await
    }

    async fn answer(&mut self, id: u32) -> Value {
        let read = async {
            loop {
                let line = self
                    .stdout
                    .next_line()
                    .await
                    .expect("a line")
                    .expect("the relay runs");
                let message: Value = serde_json::from_str(&line).expect("only JSON on stdout");
                if message["id"] == id {
                    return message;
                }
            }
        };
        within(Duration::from_secs(20), "an answer over stdio", read).await
    }

    async fn read(&mut self, id: u32, tool: &str) -> Value {
        let (name, arguments) = Lane::Read.call(tool, &json!({}));
        let params = json!({"name": name, "arguments": arguments});
        self.request(id, "tools/call", &params.to_string()).await
    }
}

async fn modern_over_stdio() -> Report {
    let mut setup = Setup::new();
    setup.stdio("up", &Script::new(tools(&Outcome::Echo)), json!({}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let mut relay = Relay::start(&proxy.daemon.home);
    let discovered = relay
        .request(1, "server/discover", &format!("{{{META}}}"))
        .await;
    assert!(
        discovered["result"]["supportedVersions"].is_array(),
        "{discovered}"
    );
    let listed = relay.request(2, "tools/list", &format!("{{{META}}}")).await;
    assert_eq!(
        listed["result"]["tools"].as_array().map(Vec::len),
        Some(6),
        "{listed}"
    );
    let (name, arguments) = Lane::Read.call("up:look", &json!({}));
    let params = format!(r#"{{"name":"{name}","arguments":{arguments},{META}}}"#);
    let called = relay.request(3, "tools/call", &params).await;
    assert_ne!(called["result"]["isError"], true, "{called}");
    assert!(called["result"]["content"].is_array(), "{called}");
    proxy.note("discover, list, call");
    drop(relay);
    proxy.finish().await
}

async fn restart_under_stdio() -> Report {
    let add = |setup: &mut Setup| setup.stdio("up", &Script::new(tools(&Outcome::Echo)), json!({}));
    let mut setup = Setup::new();
    add(&mut setup);
    let proxy = setup.start().await;
    proxy.ready("up").await;
    let address = proxy.daemon.address().to_owned();
    let mut relay = Relay::initialized(&proxy.daemon.home).await;
    assert_ne!(relay.read(2, "up:look").await["result"]["isError"], true);
    let home = proxy.killed().await;
    let mut setup = Setup::in_home(home);
    add(&mut setup);
    let mut proxy = setup.start_at(&address).await;
    proxy.ready("up").await;
    let began = Instant::now();
    let mut id = 10;
    let mut last = Value::Null;
    while began.elapsed() < Duration::from_secs(20) {
        last = relay.read(id, "up:look").await;
        if last["result"]["content"].is_array() && last["result"]["isError"] != true {
            break;
        }
        id += 1;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(
        last["result"]["content"].is_array(),
        "the client is lost: {last}"
    );
    proxy.note(format!(
        "back after {} calls, {:.1} s",
        id - 9,
        began.elapsed().as_secs_f64()
    ));
    drop(relay);
    proxy.finish().await
}

async fn stop_during_calls() -> Report {
    let writes = json!({"readOnlyHint": false, "destructiveHint": false});
    let hang = vec![
        Tool::annotated("save", &writes).outcome(Outcome::Hang),
        Tool::read_only("look").outcome(Outcome::Hang),
        Tool::read_only("slow").after_ms(1_500),
    ];
    let mut setup = Setup::new();
    let upstream = setup.stdio("up", &Script::new(hang), json!({}));
    setup.without_probe().set(json!({"shutdown_grace": "3s"}));
    let proxy = setup.start().await;
    proxy.ready("up").await;
    let (pid, record) = (proxy.daemon.pid(), upstream.record());
    let sessions = [
        proxy.daemon.session().await,
        proxy.daemon.session().await,
        proxy.daemon.session().await,
    ];
    let patience = Duration::from_secs(20);
    let calls = async {
        tokio::join!(
            super::proxy::call(&sessions[0], patience, Lane::Write, "up:save", json!({})),
            super::proxy::call(&sessions[1], patience, Lane::Read, "up:look", json!({})),
            super::proxy::call(&sessions[2], patience, Lane::Read, "up:slow", json!({})),
        )
    };
    let stopping = async {
        proxy
            .until("all calls are under way", 10, async || {
                record.calls().len() == 3
            })
            .await;
        process::terminate(pid);
        let began = Instant::now();
        crate::wait_until("the daemon ends", Duration::from_secs(9), async || {
            !process::is_alive(pid)
        })
        .await;
        began.elapsed()
    };
    let ((save, look, slow), took) = tokio::join!(calls, stopping);
    slow.ok();
    for called in [&save, &look] {
        let text = format!("{:?}", called.answer);
        assert!(
            called.failed() && text.contains("sent"),
            "it does not say whether it was sent: {text}"
        );
    }
    let home = proxy.killed().await;
    let ended = home
        .cli(["activity", "list", "--status", "interrupted", "-o", "json"])
        .await
        .json();
    assert_eq!(ended["total"], 2, "{ended}");
    let mut proxy = Setup::in_home(home).start().await;
    proxy.note(format!(
        "ended in {:.1} s of 3 + 5; finished 1, interrupted 2",
        took.as_secs_f64()
    ));
    proxy.finish().await
}

async fn administration_of_hung() -> Report {
    let mut script = Script::new([Tool::read_only("look")]);
    script.hang_at = vec!["tools/list".to_owned()];
    script.stubborn = true;
    let mut setup = Setup::new();
    for name in ["one", "two", "three"] {
        setup.stdio(name, &script, json!({}));
    }
    let mut proxy = setup.start().await;
    let mut slowest = Duration::ZERO;
    for (method, path) in [
        ("POST", "/servers/one/restart"),
        ("POST", "/servers/two/disable"),
        ("DELETE", "/servers/three"),
    ] {
        let began = Instant::now();
        let (status, answer) = proxy.rest(method, path, None).await;
        assert_eq!(status, 202, "{method} {path}: {answer}");
        slowest = slowest.max(began.elapsed());
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let began = Instant::now();
    let output = proxy
        .daemon
        .home
        .cli(["upstream", "restart", "one", "--no-wait"])
        .await;
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(began.elapsed() < Duration::from_secs(5));
    proxy.note(format!("202 within {:.0} ms", slowest.as_secs_f64() * 1e3));
    proxy.config["mcpServers"]
        .as_object_mut()
        .expect("servers")
        .remove("three");
    proxy.finish().await
}

async fn limits_of_stdio() -> Report {
    let tools = [
        Tool::read_only("look"),
        Tool::read_only("hang").outcome(Outcome::Hang),
    ];
    let mut setup = Setup::new();
    let upstream = setup.stdio("up", &Script::new(tools), json!({"max_concurrency": 200}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let mut relay = Relay::initialized(&proxy.daemon.home).await;
    let (name, arguments) = Lane::Read.call("up:look", &json!({"x": "y".repeat(5 << 20)}));
    let params = json!({"name": name, "arguments": arguments}).to_string();
    let refused = relay.request(5, "tools/call", &params).await;
    let is_error = refused.get("error").is_some() || refused["result"]["isError"] == true;
    assert!(is_error, "5 MiB are taken over stdio and refused over HTTP");
    assert_ne!(
        relay.read(6, "up:look").await["result"]["isError"],
        true,
        "the client is lost after it"
    );
    let (name, arguments) = Lane::Read.call("up:hang", &json!({}));
    for id in 100..200 {
        let params = json!({"name": name, "arguments": arguments});
        relay
            .send(
                &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
                    .to_string(),
            )
            .await;
    }
    proxy
        .until("calls are under way", 10, async || {
            upstream.record().calls().len() >= 64
        })
        .await;
    for id in 100..200 {
        relay.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string()).await;
    }
    proxy
        .until("all of them end", 15, async || {
            proxy.daemon.api("/activity?status=pending").await["total"] == 0
        })
        .await;
    assert_ne!(relay.read(300, "up:look").await["result"]["isError"], true);
    proxy.note("refused in words; 100 cancelled");
    drop(relay);
    proxy.finish().await
}
