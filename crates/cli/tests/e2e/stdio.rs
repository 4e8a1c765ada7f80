//! `mcpproxy stdio`: MCP on stdin and stdout, with a daemon and without one.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Outcome, Record, Script, TestDaemon, Tool, process, wait_until};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::support::{call, home};

pub(crate) struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Client {
    pub(crate) async fn start(home: &Home) -> Self {
        let mut command = home.command();
        let mut child = command
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut client = Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let hello = client.request("initialize", &params).await;
        assert_eq!(hello["result"]["protocolVersion"], "2025-11-25", "{hello}");
        client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        client
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.stdin.write_all(line.as_bytes()).await.unwrap();
    }

    /// Sends a request and reads lines until its answer.
    async fn request(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params});
        self.send(&request).await;
        loop {
            let line = self.stdout.next_line().await.unwrap().expect("an answer");
            let message: Value = serde_json::from_str(&line).expect("only JSON on stdout");
            if message["id"] == "r" {
                return message;
            }
        }
    }

    pub(crate) async fn call(&mut self, tool: &str) -> Value {
        let params = json!({"name": "call_tool_read", "arguments": call(tool, "read")});
        self.request("tools/call", &params).await["result"].clone()
    }

    /// Waits until the upstream takes calls.
    pub(crate) async fn wait_for(&mut self, tool: &str) {
        let this = &mut *self;
        wait_until("the tool takes calls", DEADLINE, async || {
            this.call(tool).await["isError"] != true
        })
        .await;
    }
}

/// A home with a daemon in it, or without one.
enum Place {
    Empty(Home),
    Running(Box<TestDaemon>),
}

impl Place {
    fn home(&self) -> &Home {
        match self {
            Self::Empty(home) => home,
            Self::Running(daemon) => &daemon.home,
        }
    }
}

fn script() -> Script {
    Script::new([
        Tool::read_only("look"),
        Tool::read_only("hang").outcome(Outcome::Hang),
    ])
}

fn prepared() -> (Home, Record) {
    let home = home();
    let upstream = home.upstream("up", &script());
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    (home, upstream.record())
}

async fn lists_and_calls(client: &mut Client) {
    let list = client.request("tools/list", &json!({})).await;
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 6);
    client.wait_for("up:look").await;
    let mismatch = json!({"name": "call_tool_read", "arguments": call("up:look", "write")});
    let refused = client.request("tools/call", &mismatch).await;
    assert_eq!(
        refused["result"]["structuredContent"]["code"],
        "INTENT_MISMATCH"
    );
    let unknown = client.request("no/such/method", &json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
}

#[tokio::test]
async fn without_a_daemon() {
    let (home, record) = prepared();
    let mut client = Client::start(&home).await;
    lists_and_calls(&mut client).await;
    assert_eq!(record.pids().len(), 1);
    drop(client.stdin);
    let status = tokio::time::timeout(DEADLINE, client.child.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success(), "{status}");
    // Others go on with what it started.
    assert!(process::is_alive(record.pids()[0]));
}

#[tokio::test]
async fn through_the_daemon_that_runs() {
    let home = home();
    let upstream = home.upstream("up", &script());
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    daemon.session_with(&["up:look"]).await;
    let mut client = Client::start(&daemon.home).await;
    lists_and_calls(&mut client).await;
    // One upstream for everybody.
    assert_eq!(upstream.record().pids().len(), 1);
    drop(client.stdin);
    let status = tokio::time::timeout(DEADLINE, client.child.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success(), "{status}");
    assert!(daemon.is_up().await);
}

#[tokio::test]
async fn cancellation_passes_through() {
    for with_daemon in [false, true] {
        let (home, record) = prepared();
        let upstream = home.upstream("up", &script());
        let servers = json!({"up": upstream.config()});
        let place = if with_daemon {
            Place::Running(Box::new(TestDaemon::with_servers(home, servers).await))
        } else {
            Place::Empty(home)
        };
        let mut client = Client::start(place.home()).await;
        client.wait_for("up:look").await;
        let params = json!({"name": "call_tool_read", "arguments": call("up:hang", "read")});
        let request = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params});
        client.send(&request).await;
        let arrived = async || record.calls().iter().any(|call| call["name"] == "hang");
        wait_until("the call arrived", DEADLINE, arrived).await;
        let cancelled = json!({"requestId": 9});
        let method = "notifications/cancelled";
        client
            .send(&json!({"jsonrpc": "2.0", "method": method, "params": cancelled}))
            .await;
        wait_until("the upstream is told", DEADLINE, async || {
            !record.received("notifications/cancelled").is_empty()
        })
        .await;
        client.wait_for("up:look").await;
    }
}
