//! What is kept: a log that is damaged, changed or too new, and pins that are. Looking at it leaves
//! it as it is.

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::{Home, TestDaemon};

use super::{codes, named, place, problems, quiet_home, repair, set_mode};
use crate::support::home;

fn database(home: &Home) -> PathBuf {
    home.path().join(".mcpproxy/activity/activity.db")
}

/// A home with the log of a daemon that has stopped, and a server or none in the config.
async fn stopped(servers: Value) -> Home {
    let daemon = TestDaemon::with_servers(home(), json!({})).await;
    let (home, status) = daemon.stop().await;
    assert!(status.success(), "{status}");
    home.write_config(&json!({"listen": "127.0.0.1:0", "mcpServers": servers}));
    set_mode(&home.config_file(), 0o600);
    home
}

fn change(home: &Home, sql: &str) {
    let connection = Connection::open(database(home)).unwrap();
    connection.execute_batch(sql).unwrap();
}

async fn started(home: Home) -> TestDaemon {
    let daemon = TestDaemon::start(home, json!({})).await;
    set_mode(&daemon.home.config_file(), 0o600);
    daemon
}

type Damage = fn(&mut Vec<u8>);

#[tokio::test]
async fn a_damaged_log_is_seen_and_left_to_the_daemon() {
    let damages: [Damage; 3] = [
        |bytes| *bytes = b"not a database at all".repeat(1_000),
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| {
            let middle = bytes.len() / 3;
            bytes[4_096..middle * 2].fill(0xa5);
        },
    ];
    for damage in damages {
        // With servers in the config the log is opened for another reason, and as carefully.
        let home = stopped(json!({"off": {"command": "true", "enabled": false}})).await;
        let mut bytes = std::fs::read(database(&home)).unwrap();
        damage(&mut bytes);
        std::fs::write(database(&home), &bytes).unwrap();
        let found = problems(&home, &[], &[]).await;
        assert_eq!(named(&found, "STORE_UNREADABLE").fix, "mcpproxy serve");
        for command in ["list", "verify"] {
            let output = home.cli(["activity", command]).await;
            output.ended_with(1);
            assert!(output.stderr.contains("damaged"), "{}", output.stderr);
        }
        assert_eq!(std::fs::read(database(&home)).unwrap(), bytes);
        let daemon = started(home).await;
        assert_eq!(codes(&daemon.home).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_log_of_a_newer_version_is_seen() {
    let home = stopped(json!({})).await;
    change(&home, "PRAGMA user_version = 99");
    let found = problems(&home, &[], &[]).await;
    let problem = named(&found, "STORE_UNREADABLE");
    assert!(problem.cause.contains("newer"), "{problem:?}");
    repair(&home, problem).await;
    assert_eq!(codes(&home).await, [""; 0]);
}

#[tokio::test]
async fn a_log_that_was_changed_is_seen_with_and_without_a_daemon() {
    let home = stopped(json!({})).await;
    let first = "(SELECT min(id) FROM records)";
    change(&home, &format!("DELETE FROM records WHERE id = {first}"));
    let found = problems(&home, &[], &[]).await;
    let problem = named(&found, "STORE_TAMPERED");
    assert_eq!(problem.fix, "mcpproxy activity verify");
    home.cli(["activity", "verify"]).await.ended_with(1);
    let daemon = started(home).await;
    assert_eq!(codes(&daemon.home).await, ["STORE_TAMPERED"]);
}

#[tokio::test]
async fn pins_of_a_newer_version_are_seen() {
    let home = quiet_home(json!({}));
    place(&home, ".mcpproxy/pins/up.json", r#"{"version": 99}"#);
    home.cli(["serve"]).await.ended_with(1);
    let found = problems(&home, &[], &[]).await;
    let problem = named(&found, "PINS_UNREADABLE");
    repair(&home, problem).await;
    assert_eq!(codes(&home).await, [""; 0]);
}
