//! A client that writes and reads lines, in either era.

use std::path::Path;
use std::process::{ExitStatus, Stdio};

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Outcome, Record, Script, TestDaemon, Tool, wait_until};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

pub(crate) struct Client {
    era: Era,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

/// A daemon in front of one upstream called `up`, with a tool that answers and one that hangs.
pub(crate) struct Place {
    pub(crate) daemon: TestDaemon,
    pub(crate) record: Record,
    config: Value,
}

impl Place {
    pub(crate) async fn new(mut config: Value) -> Self {
        let home = Home::new(Path::new(env!("CARGO_BIN_EXE_mcpproxy")));
        let script = Script::new([
            Tool::read_only("look"),
            Tool::read_only("hang").outcome(Outcome::Hang),
        ]);
        let upstream = home.upstream("up", &script);
        config["mcpServers"] = json!({"up": upstream.config()});
        let daemon = TestDaemon::start(home, config.clone()).await;
        daemon.wait_for_server("up").await;
        Self {
            daemon,
            record: upstream.record(),
            config,
        }
    }

    /// The daemon of this home, started again.
    pub(crate) async fn again(home: Home, old: PlaceLeft) -> Self {
        let daemon = TestDaemon::start(home, old.config.clone()).await;
        daemon.wait_for_server("up").await;
        Self {
            daemon,
            record: old.record,
            config: old.config,
        }
    }

    pub(crate) async fn killed(self) -> (Home, PlaceLeft) {
        let (record, config) = (self.record, self.config);
        (self.daemon.killed().await, PlaceLeft { record, config })
    }

    pub(crate) async fn stopped(self) -> (Home, PlaceLeft) {
        let (record, config) = (self.record, self.config);
        let (home, status) = self.daemon.stop().await;
        assert!(status.success(), "{status}");
        (home, PlaceLeft { record, config })
    }

    pub(crate) fn calls_of(&self, tool: &str) -> usize {
        calls_of(&self.record, tool)
    }

    pub(crate) async fn until_called(&self, tool: &str, times: usize) {
        wait_until("the upstream was called", DEADLINE, async || {
            self.calls_of(tool) >= times
        })
        .await;
    }
}

/// What is needed to start the daemon again.
pub(crate) struct PlaceLeft {
    pub(crate) record: Record,
    config: Value,
}

pub(crate) fn calls_of(record: &Record, tool: &str) -> usize {
    let calls = record.calls();
    calls.iter().filter(|call| call["name"] == tool).count()
}

impl Client {
    /// Starts `mcpproxy stdio` and, in the legacy era, opens a session.
    pub(crate) async fn start(home: &Home, era: Era) -> Self {
        let mut child = home
            .command()
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut client = Self {
            era,
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            last_id: 0,
        };
        if era == Era::Legacy {
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"}});
            let hello = client.request("initialize", params).await;
            assert_eq!(hello["result"]["protocolVersion"], "2025-11-25", "{hello}");
            client.notify("notifications/initialized", &json!({})).await;
        }
        client
    }

    pub(crate) async fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).await.unwrap();
        stdin.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn notify(&mut self, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(&message.to_string()).await;
    }

    /// Sends a request and returns its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&request.to_string()).await;
        id
    }

    pub(crate) async fn send_call(&mut self, tool: &str) -> u64 {
        let arguments = json!({"name": format!("up:{tool}"), "intent": {"operation_type": "read"}});
        let params = json!({"name": "call_tool_read", "arguments": arguments});
        self.send("tools/call", params).await
    }

    /// The next message, whatever it is.
    pub(crate) async fn next(&mut self) -> Value {
        let line = timeout(DEADLINE, self.stdout.next_line()).await;
        let line = line.expect("a message in time").unwrap();
        serde_json::from_str(&line.expect("a message")).expect("only JSON on stdout")
    }

    /// Reads until the answer to this request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message;
            }
            assert!(message.get("method").is_some(), "unexpected: {message}");
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool that has to answer.
    pub(crate) async fn call_ok(&mut self, tool: &str) {
        let id = self.send_call(tool).await;
        let answer = self.answer(id).await;
        let result = &answer["result"];
        assert!(result["content"].is_array(), "{answer}");
        assert_ne!(result["isError"], true, "{answer}");
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let status = timeout(DEADLINE, self.child.wait()).await;
        status.expect("it ends in time").unwrap()
    }
}
