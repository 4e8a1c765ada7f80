//! Commands that only read the log, without a daemon: they show what was recorded and change
//! nothing.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Outcome, TestDaemon, Tool, wait_until};

use crate::support::{Proxy, database, home};
use crate::wire::McpClient;

/// Every file and directory below, with the sizes of files.
fn below(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        let length = if metadata.is_dir() { 0 } else { metadata.len() };
        found.push((entry.path().display().to_string(), length));
        if metadata.is_dir() {
            found.extend(below(&entry.path()));
        }
    }
    found.sort();
    found
}

async fn read(home: &Home, arguments: &[&str]) -> Value {
    let arguments = ["activity"].iter().chain(arguments).chain(&["-o", "json"]);
    home.cli(arguments).await.succeeded().json()
}

#[tokio::test]
async fn a_log_that_is_not_there_is_empty_and_stays_away() {
    let home = home();
    home.write_config(&json!({"mcpServers": {}}));
    let before = below(home.path());
    assert_eq!(read(&home, &["list"]).await["activities"], json!([]));
    assert_eq!(read(&home, &["summary"]).await["total"]["records"], 0);
    assert_eq!(read(&home, &["verify"]).await["valid"], true);
    assert_eq!(read(&home, &["export"]).await, json!([]));
    let missing = ["activity", "show", "01M7GHBHDX81ER1ETMD9HPHM5B"];
    home.cli(missing).await.ended_with(6);
    assert_eq!(below(home.path()), before);
    // Not even a directory that was named is made.
    let elsewhere = home.path().join("elsewhere");
    let named = elsewhere.display().to_string();
    home.cli(["--data-dir", &named, "activity", "list"])
        .await
        .succeeded();
    assert!(!elsewhere.exists());
}

#[tokio::test]
async fn reading_does_not_end_what_a_dead_daemon_left_open() {
    let tools = [
        Tool::read_only("hangs").outcome(Outcome::Hang),
        Tool::read_only("look"),
    ];
    let proxy = Proxy::with(json!({}), tools).await;
    let address = proxy.daemon.address().to_owned();
    proxy.daemon.session_with(&["up:hangs"]).await;
    let hanging = tokio::spawn(async move {
        let mut client = McpClient::connect(&address).await.unwrap();
        let call = json!({"name": "up:hangs", "intent": {"operation_type": "read"}});
        client.call("call_tool_read", &call).await
    });
    wait_until("the call is under way", DEADLINE, async || {
        proxy.list("?status=pending").await.len() == 1
    })
    .await;
    let mut client = proxy.client().await;
    client
        .succeed(crate::support::READ, &json!({"n": "acknowledged"}))
        .await;
    let home = proxy.daemon.killed().await;
    assert_eq!(hanging.await.unwrap(), None);

    let head = read(&home, &["verify"]).await["head"].clone();
    for _ in 0..2 {
        let pending = read(&home, &["list", "--status", "pending"]).await;
        assert_eq!(pending["total"], 1, "{pending}");
        assert_eq!(pending["activities"][0]["tool_name"], "hangs");
        let done = read(&home, &["list", "--tool", "look", "--status", "success"]).await;
        assert_eq!(done["total"], 1, "{done}");
        assert_eq!(read(&home, &["verify"]).await["head"], head);
    }
    assert!(database(&home).exists());
    let config: Value =
        serde_json::from_slice(&std::fs::read(home.config_file()).unwrap()).unwrap();
    let daemon = TestDaemon::start(home, config).await;
    let ended = daemon.api("/activity?status=interrupted").await;
    assert_eq!(ended["activities"][0]["tool_name"], "hangs", "{ended}");
}
