//! What most tests begin with: a daemon in front of an upstream with one tool for each lane.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Home, Record, Script, TestDaemon, Tool};

use crate::wire::{Connection, McpClient};

/// One of the three variants, with a tool of the upstream that belongs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) variant: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) operation_type: &'static str,
}

pub(crate) const READ: Lane = Lane {
    variant: "call_tool_read",
    tool: "look",
    operation_type: "read",
};
pub(crate) const WRITE: Lane = Lane {
    variant: "call_tool_write",
    tool: "save",
    operation_type: "write",
};
pub(crate) const DESTRUCTIVE: Lane = Lane {
    variant: "call_tool_destructive",
    tool: "wipe",
    operation_type: "destructive",
};
pub(crate) const LANES: [Lane; 3] = [READ, WRITE, DESTRUCTIVE];

/// A daemon in front of one scripted upstream called `up`.
pub(crate) struct Proxy {
    pub(crate) daemon: TestDaemon,
    pub(crate) record: Record,
}

impl Lane {
    /// The arguments of the variant for a call of its tool.
    pub(crate) fn call(self, arguments: &Value) -> Value {
        json!({
            "name": format!("up:{}", self.tool),
            "args": arguments,
            "intent": {"operation_type": self.operation_type},
        })
    }
}

impl Proxy {
    pub(crate) async fn start() -> Self {
        Self::with(json!({}), tools()).await
    }

    /// With more in the config than the upstream.
    pub(crate) async fn with(
        mut config: Value,
        tools: impl IntoIterator<Item = Tool> + Send,
    ) -> Self {
        let home = home();
        let upstream = home.upstream("up", &Script::new(tools));
        config["mcpServers"] = json!({"up": upstream.config()});
        Self {
            daemon: TestDaemon::start(home, config).await,
            record: upstream.record(),
        }
    }

    pub(crate) async fn client(&self) -> McpClient {
        let client = McpClient::connect(self.daemon.address()).await;
        client.expect("the daemon takes connections")
    }

    /// Makes this many calls on each lane, one after the other.
    pub(crate) async fn calls(&self, number: usize) {
        let mut client = self.client().await;
        for number in 0..number {
            for lane in LANES {
                client.succeed(lane, &json!({"n": number})).await;
            }
        }
    }

    /// The answer of a route of the REST API: its status and its JSON.
    pub(crate) async fn rest(&self, path: &str) -> (u16, Value) {
        rest(&self.daemon, path).await
    }

    /// The `data` of an answer that has to be one.
    pub(crate) async fn data(&self, path: &str) -> Value {
        let (status, mut answer) = self.rest(path).await;
        assert_eq!(
            (status, &answer["success"]),
            (200, &json!(true)),
            "{answer}"
        );
        answer["data"].take()
    }

    /// The records of a list, newest first.
    pub(crate) async fn list(&self, query: &str) -> Vec<Value> {
        let mut page = self.data(&format!("/activity{query}")).await;
        serde_json::from_value(page["activities"].take()).unwrap()
    }

    /// The calls and refusals, oldest first.
    pub(crate) async fn recorded_calls(&self) -> Vec<Value> {
        let mut records = self.list("?limit=100").await;
        records.retain(|record| record["metadata"]["tool_variant"].is_string());
        records.reverse();
        records
    }
}

/// An empty home for the binary under test.
pub(crate) fn home() -> Home {
    Home::new(Path::new(env!("CARGO_BIN_EXE_mcpproxy")))
}

/// One tool for each lane; all answer with what they were called with.
pub(crate) fn tools() -> [Tool; 3] {
    let writes = json!({"readOnlyHint": false, "destructiveHint": false});
    [
        Tool::read_only("look"),
        Tool::annotated("save", &writes),
        Tool::destructive("wipe"),
    ]
}

/// The file that holds the log.
pub(crate) fn database(home: &Home) -> PathBuf {
    home.path().join(".mcpproxy/activity/activity.db")
}

pub(crate) fn api_key(home: &Home) -> String {
    let key = std::fs::read_to_string(home.path().join(".mcpproxy/api_key"));
    key.expect("the key of the API").trim().to_owned()
}

/// The answer of a route of the REST API: its status and its JSON.
pub(crate) async fn rest(daemon: &TestDaemon, path: &str) -> (u16, Value) {
    let (status, body) = rest_text(daemon, path).await;
    let answer = serde_json::from_str(&body);
    (
        status,
        answer.unwrap_or_else(|error| panic!("{error} in {body}")),
    )
}

/// The answer of a route that is not in the envelope.
pub(crate) async fn rest_text(daemon: &TestDaemon, path: &str) -> (u16, String) {
    let mut connection = Connection::open(daemon.address()).await.unwrap();
    let key = api_key(&daemon.home);
    let (path, key) = (format!("/api/v1{path}"), [("x-api-key", key.as_str())]);
    let answer = connection.get(&path, &key).await;
    answer.expect("the daemon answers")
}
