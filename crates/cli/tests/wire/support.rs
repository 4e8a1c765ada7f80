//! A daemon in front of one scripted upstream, and raw bytes on every way into it.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Home, Record, Script, Session, TestDaemon, http_client};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) fn home() -> Home {
    Home::new(Path::new(env!("CARGO_BIN_EXE_mcpproxy")))
}

/// A daemon in front of one scripted upstream called `up`.
pub(crate) struct Front {
    pub(crate) daemon: TestDaemon,
    pub(crate) record: Record,
}

impl Front {
    /// With more in the config than the upstream; the tool `look` of it can be found.
    pub(crate) async fn with(mut config: Value, script: &Script) -> Self {
        let home = home();
        let upstream = home.upstream("up", script);
        config["mcpServers"] = json!({"up": upstream.config()});
        let daemon = TestDaemon::start(home, config).await;
        daemon.session_with(&["up:look"]).await;
        Self {
            daemon,
            record: upstream.record(),
        }
    }
}

/// How a message gets to mcpproxy.
pub(crate) enum Way {
    Legacy(Session),
    Modern { url: String },
    Stdio(Box<Pipe>),
}

/// `mcpproxy stdio` and both ends of its pipe.
pub(crate) struct Pipe {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Way {
    /// Sends a message as it is; the answer, or nothing where none came with it.
    pub(crate) async fn send(&mut self, message: &str) -> Value {
        match self {
            Self::Legacy(session) => {
                let reply = session.post(message).await;
                last_message(&reply.body)
            }
            Self::Modern { url } => last_message(&post_modern(url, message).await.1),
            Self::Stdio(pipe) => pipe.send(message).await,
        }
    }

    pub(crate) fn is_modern(&self) -> bool {
        matches!(self, Self::Modern { .. })
    }
}

/// Posts a modern message with the headers that its body calls for.
pub(crate) async fn post_modern(url: &str, message: &str) -> (u16, String) {
    let body: Value = serde_json::from_str(message).unwrap_or_default();
    let visible = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let text = |value: &Value| value.as_str().filter(visible).unwrap_or("none").to_owned();
    let answer = http_client()
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", text(&body["method"]))
        .header("mcp-name", text(&body["params"]["name"]))
        .body(message.to_owned())
        .send()
        .await
        .expect("the endpoint answers");
    let status = answer.status().as_u16();
    (status, answer.text().await.expect("a whole answer"))
}

/// The message of a JSON body, or the last one of a stream of events.
fn last_message(body: &str) -> Value {
    let mut events = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let message = events.next_back().unwrap_or(body);
    serde_json::from_str(message).unwrap_or_default()
}

impl Pipe {
    /// Starts `mcpproxy stdio` in a home and says hello.
    pub(crate) async fn open(home: &Home) -> Self {
        let mut child = home
            .command()
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary can be run");
        let mut pipe = Self {
            stdin: child.stdin.take().expect("stdin is piped"),
            lines: BufReader::new(child.stdout.take().expect("stdout is piped")).lines(),
            _child: child,
        };
        let hello = pipe.send(HELLO).await;
        assert!(hello["result"].is_object(), "{hello}");
        pipe.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        pipe
    }

    pub(crate) async fn write(&mut self, message: &str) {
        let line = format!("{message}\n");
        let written = self.stdin.write_all(line.as_bytes()).await;
        written.expect("the pipe is open");
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = timeout(testkit::DEADLINE, self.lines.next_line()).await;
        let line = line.expect("an answer in time").expect("a readable pipe");
        serde_json::from_str(&line.expect("the pipe is open")).expect("a line is JSON")
    }

    async fn send(&mut self, message: &str) -> Value {
        self.write(message).await;
        self.next().await
    }
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"pipe","version":"1"}}}"#;
