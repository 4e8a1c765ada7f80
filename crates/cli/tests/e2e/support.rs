//! What most tests begin with.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{
    DEADLINE, Home, Record, Script, Session, TestDaemon, Tool, http_client, wait_for, wait_until,
};

/// An empty home for the binary under test.
pub(crate) fn home() -> Home {
    Home::new(Path::new(env!("CARGO_BIN_EXE_mcpproxy")))
}

/// A daemon in front of one scripted upstream called `up`.
pub(crate) struct Front {
    pub(crate) daemon: TestDaemon,
    pub(crate) record: Record,
}

impl Front {
    pub(crate) async fn of(tools: impl IntoIterator<Item = Tool>) -> Self {
        Self::with(json!({}), &Script::new(tools)).await
    }

    /// With more in the config than the upstream.
    pub(crate) async fn with(mut config: Value, script: &Script) -> Self {
        let home = home();
        let upstream = home.upstream("up", script);
        config["mcpServers"] = json!({"up": upstream.config()});
        Self {
            daemon: TestDaemon::start(home, config).await,
            record: upstream.record(),
        }
    }

    /// A session, once this tool of the upstream can be found.
    pub(crate) async fn session(&self, tool: &str) -> Session {
        self.daemon.session_with(&[&format!("up:{tool}")]).await
    }
}

/// The arguments of `call_tool_*` for a tool without arguments of its own.
pub(crate) fn call(tool: &str, operation_type: &str) -> Value {
    json!({"name": tool, "intent": {"operation_type": operation_type}})
}

/// Calls a tool on the read lane and returns the text of the result.
pub(crate) async fn read(session: &Session, tool: &str) -> String {
    session.call("call_tool_read", &call(tool, "read")).await
}

/// The text of a result's first block.
pub(crate) fn text_of(result: &str) -> String {
    let result: Value = serde_json::from_str(result).unwrap();
    assert_ne!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Waits until a call on the read lane is carried out.
pub(crate) async fn wait_until_callable(session: &Session, tool: &str) {
    wait_until(&format!("{tool} takes calls"), DEADLINE, async || {
        let result: Value = serde_json::from_str(&read(session, tool).await).unwrap();
        result["isError"] != true
    })
    .await;
}

/// Asks the REST API of a daemon with its key; the status and the answer.
pub(crate) async fn rest(
    daemon: &TestDaemon,
    method: &str,
    path: &str,
    body: Option<&str>,
) -> (u16, Value) {
    let (status, text) = rest_with(daemon, &api_key(&daemon.home), method, path, body).await;
    let answer = serde_json::from_str(&text);
    (
        status,
        answer.unwrap_or_else(|error| panic!("{error} in {text}")),
    )
}

/// The same with a key of one's own, and the text as it is.
pub(crate) async fn rest_with(
    daemon: &TestDaemon,
    key: &str,
    method: &str,
    path: &str,
    body: Option<&str>,
) -> (u16, String) {
    let method = method.parse().unwrap();
    let mut request = http_client()
        .request(method, daemon.url(&format!("/api/v1{path}")))
        .header("x-api-key", key)
        .header("content-type", "application/json");
    if let Some(body) = body {
        request = request.body(body.to_owned());
    }
    let answer = request.send().await.expect("the daemon answers");
    let status = answer.status().as_u16();
    (status, answer.text().await.expect("a whole answer"))
}

/// The key of a daemon whose config has none.
pub(crate) fn api_key(home: &Home) -> String {
    let key = std::fs::read_to_string(home.path().join(".mcpproxy/api_key"));
    key.expect("the key of the API").trim().to_owned()
}

/// Waits until a server is in this state, and returns what the API says of it.
pub(crate) async fn server_in(daemon: &TestDaemon, name: &str, state: &str) -> Value {
    let what = format!("{name} is {state}");
    wait_for(&what, DEADLINE, async || {
        let (_, mut answer) = rest(daemon, "GET", &format!("/servers/{name}"), None).await;
        (answer["data"]["state"] == state).then(|| answer["data"].take())
    })
    .await
}
