//! What most tests begin with.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{Home, Script, TestDaemon, Tool};

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
