//! The config file edited a hundred times a second, cut off at every byte, removed and put back:
//! what is not touched by an edit runs on, and the last good config stays in force.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{DEADLINE, Script, TestDaemon, Tool, wait_until};

use crate::support::{Front, server_in};

/// The text of a config with this address, an upstream called `up`, and something that differs.
fn text(front: &Front, up: &Value, records: u32, more: bool) -> String {
    let mut servers = json!({"up": up});
    if more {
        servers["other"] = json!({"command": "not-started", "enabled": false});
    }
    let config = json!({
        "listen": front.daemon.address(),
        "activity": {"max_records": records},
        "mcpServers": servers,
    });
    format!("{config:#}\n")
}

async fn front() -> (Front, Value) {
    let front = Front::with(json!({}), &Script::new([Tool::read_only("look")])).await;
    server_in(&front.daemon, "up", "ready").await;
    let config = std::fs::read(front.daemon.home.config_file()).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    let up = config["mcpServers"]["up"].clone();
    (front, up)
}

async fn max_records(daemon: &TestDaemon) -> Value {
    daemon.api("/config").await["activity"]["max_records"].clone()
}

async fn wait_for_records(daemon: &TestDaemon, records: u32) {
    let what = format!("max_records is {records}");
    wait_until(&what, DEADLINE, async || {
        max_records(daemon).await == records
    })
    .await;
}

/// It was started once, and takes calls.
async fn assert_untouched(front: &Front) {
    let up = server_in(&front.daemon, "up", "ready").await;
    assert_eq!(up["connections"], 1, "{up}");
    assert_eq!(front.record.pids().len(), 1);
}

#[tokio::test]
async fn a_hundred_edits_a_second_touch_only_what_they_change() {
    let (front, up) = front().await;
    for round in 0..200_u32 {
        let text = text(&front, &up, 1_000 + round, round % 2 == 0);
        if round % 3 == 0 {
            // As some editors do: not in one step.
            std::fs::write(front.daemon.home.config_file(), text).unwrap();
        } else {
            front.daemon.home.write_config_text(&text);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    wait_for_records(&front.daemon, 1_199).await;
    assert_untouched(&front).await;
    assert!(front.daemon.is_up().await);
}

#[tokio::test]
async fn a_file_cut_off_at_any_byte_changes_nothing() {
    let (front, up) = front().await;
    front
        .daemon
        .home
        .write_config_text(&text(&front, &up, 2_000, false));
    wait_for_records(&front.daemon, 2_000).await;
    // Had a part of this been taken for the whole, the limit would be another one.
    let next = text(&front, &up, 3_000, true);
    let whole = next.trim_end().len();
    for end in 0..whole {
        std::fs::write(front.daemon.home.config_file(), &next.as_bytes()[..end]).unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    wait_until("the daemon says where it is broken", DEADLINE, async || {
        let log = front.daemon.log();
        log.contains("the last good one stays in force")
            && log.contains("line ")
            && log.contains("column ")
    })
    .await;
    assert_eq!(max_records(&front.daemon).await, 2_000);
    assert_untouched(&front).await;
    std::fs::write(front.daemon.home.config_file(), &next).unwrap();
    wait_for_records(&front.daemon, 3_000).await;
    assert_untouched(&front).await;
}

#[tokio::test]
async fn a_file_that_is_removed_and_put_back_changes_nothing_in_between() {
    let (front, up) = front().await;
    for round in 0..3 {
        std::fs::remove_file(front.daemon.home.config_file()).unwrap();
        wait_until("the daemon misses the file", DEADLINE, async || {
            front.daemon.log().matches("cannot be read").count() > round
        })
        .await;
        assert_untouched(&front).await;
        let records = 4_000 + u32::try_from(round).unwrap();
        front
            .daemon
            .home
            .write_config_text(&text(&front, &up, records, false));
        wait_for_records(&front.daemon, records).await;
    }
    assert_untouched(&front).await;
}
