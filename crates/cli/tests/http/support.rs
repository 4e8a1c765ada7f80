//! What most tests begin with.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{Home, Script, TestDaemon, Tool, http_client};

/// An upstream that answers the handshake and then nothing.
const HANGS_IN_LISTING: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}\n' "$id";;
    *'"method":"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
    *'"method":"tools/list"'*) touch "$1";;
  esac
done
"#;

/// The config of a server that hangs in `tools/list`, and makes the file `listed` when it does.
pub(crate) fn hangs_in_listing(listed: &Path) -> Value {
    json!({"command": "sh", "args": ["-c", HANGS_IN_LISTING, "sh", listed]})
}

/// Asks the REST API with the key; the status and the answer.
pub(crate) async fn rest(daemon: &TestDaemon, method: &str, path: &str) -> (u16, Value) {
    let request = http_client()
        .request(
            method.parse().unwrap(),
            daemon.url(&format!("/api/v1{path}")),
        )
        .header("x-api-key", api_key(&daemon.home));
    let answer = request.send().await.expect("the daemon answers");
    let status = answer.status().as_u16();
    let text = answer.text().await.expect("a whole answer");
    let body = serde_json::from_str(&text);
    (
        status,
        body.unwrap_or_else(|error| panic!("{error} in {text}")),
    )
}

pub(crate) fn home() -> Home {
    Home::new(Path::new(env!("CARGO_BIN_EXE_mcpproxy")))
}

/// A daemon without upstreams, with these limits.
pub(crate) async fn limited(limits: Value) -> TestDaemon {
    TestDaemon::start(home(), json!({"limits": limits})).await
}

/// A daemon in front of one upstream called `up`.
pub(crate) async fn in_front_of(
    mut config: Value,
    tools: impl IntoIterator<Item = Tool>,
) -> TestDaemon {
    let home = home();
    let upstream = home.upstream("up", &Script::new(tools));
    config["mcpServers"] = json!({"up": upstream.config()});
    let daemon = TestDaemon::start(home, config).await;
    daemon.wait_for_server("up").await;
    daemon
}

pub(crate) fn api_key(home: &Home) -> String {
    let key = std::fs::read_to_string(home.path().join(".mcpproxy/api_key"));
    key.expect("the key of the API").trim().to_owned()
}

/// The memory that a process has in use, in mebibytes.
pub(crate) fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes
        .expect("VmRSS")
        .trim()
        .parse::<u64>()
        .expect("a number")
        / 1024
}

pub(crate) fn open_files(pid: u32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
    files.expect("a process").count()
}
