//! No room to write: what changes something is refused with the reason, reads go on, nothing is
//! damaged, and it all works again once there is room.
//!
//! The limit on the size of a file stands in for the full disk: it needs no rights and no mount.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use testkit::{DEADLINE, TestDaemon, wait_until};

use crate::support::{DESTRUCTIVE, Proxy, READ, WRITE};

/// Smaller than the log from the first record on, and larger than what the daemon prints.
const NO_ROOM: u64 = 16 * 1024;

fn limit_file_size(daemon: &TestDaemon, bytes: Option<u64>) {
    let pid = i32::try_from(daemon.pid()).ok().and_then(Pid::from_raw);
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(pid, Resource::Fsize, limit).expect("the limit can be set");
}

#[tokio::test]
async fn without_room_changes_are_refused_and_reads_go_on() {
    let proxy = Proxy::start().await;
    proxy.calls(2).await;
    let before = proxy.recorded_calls().await;
    limit_file_size(&proxy.daemon, Some(NO_ROOM));
    let sent = proxy.record.calls().len();

    let mut client = proxy.client().await;
    for lane in [WRITE, DESTRUCTIVE] {
        for _ in 0..3 {
            let arguments = lane.call(&json!({"n": "no room"}));
            let (code, message) = client.refused(lane.variant, &arguments).await;
            assert_eq!(code, "ACTIVITY_UNAVAILABLE", "{message}");
            assert!(message.contains("cannot be recorded"), "{message}");
            assert!(message.contains("disk"), "{message}");
        }
    }
    assert_eq!(proxy.record.calls().len(), sent, "nothing was sent");
    let output = proxy
        .daemon
        .home
        .cli(["call", "tool-write", "up:save"])
        .await;
    output.ended_with(1);
    assert!(
        output.stderr.contains("ACTIVITY_UNAVAILABLE"),
        "{}",
        output.stderr
    );

    for number in 0..5 {
        client.succeed(READ, &json!({"n": number})).await;
    }
    assert_eq!(proxy.record.calls().len(), sent + 5);
    let log = proxy.daemon.log();
    assert!(
        log.contains("WARN") && log.contains("a read is not recorded"),
        "{log}"
    );

    // It is told while it lasts.
    let activity = &proxy.data("/status").await["activity"];
    assert_eq!(activity["not_recorded"]["calls"], 5, "{activity}");
    // The refusals of the two lanes and of the command.
    assert_eq!(activity["not_recorded"]["refusals"], 7, "{activity}");
    let output = proxy.daemon.home.cli(["status"]).await;
    assert!(
        output.succeeded().stdout.contains("5 calls"),
        "{}",
        output.stdout
    );
    let output = proxy.daemon.home.cli(["doctor"]).await;
    assert!(
        output.stdout.contains("STORE_NOT_WRITABLE"),
        "{}",
        output.stdout
    );

    // What is there can be looked at meanwhile.
    assert_eq!(proxy.recorded_calls().await[..before.len()], before[..]);
    assert_eq!(proxy.data("/activity/verify").await["valid"], true);

    limit_file_size(&proxy.daemon, None);
    wait_until("writes are taken again", DEADLINE, async || {
        let arguments = WRITE.call(&json!({"n": "room again"}));
        let result = client.call(WRITE.variant, &arguments).await.unwrap();
        result["isError"] != true
    })
    .await;
    let calls = proxy.recorded_calls().await;
    assert_eq!(calls.last().unwrap()["arguments"]["n"], "room again");
    assert_eq!(calls.last().unwrap()["status"], "success");
    assert!(
        calls.iter().all(|call| call["status"] != "pending"),
        "{calls:?}"
    );
    assert_eq!(proxy.data("/activity/verify").await["valid"], true);
    // What was not recorded left a record that says how much it was, and when.
    let gaps = proxy.list("?type=system&status=error").await;
    let count = |name: &str| -> u64 {
        let gaps = gaps.iter().map(|gap| gap["arguments"][name].as_u64());
        gaps.map(Option::unwrap).sum()
    };
    assert_eq!(count("calls_not_recorded"), 5, "{gaps:?}");
    assert!(count("refusals_not_recorded") >= 7, "{gaps:?}");
    let gap = gaps.last().unwrap();
    let (from, to) = (&gap["arguments"]["from"], &gap["arguments"]["to"]);
    assert!(from.as_str() < to.as_str() && to.as_str() < gap["timestamp"].as_str());
    assert_eq!(
        proxy.data("/status").await["activity"]["not_recorded"],
        json!(null)
    );
    let verified = proxy.data("/activity/verify").await;
    assert_eq!(verified["gaps"], gaps.len(), "{verified}");
    let (home, status) = proxy.daemon.stop().await;
    assert!(status.success(), "{status}");
    let output = home.cli(["activity", "verify"]).await;
    let said = &output.succeeded().stdout;
    assert!(said.contains("could not be recorded"), "{said}");
}

#[tokio::test]
async fn the_end_of_a_call_that_ran_out_of_room_is_stored_later() {
    let slow = testkit::Tool::annotated(
        "save",
        &json!({"readOnlyHint": false, "destructiveHint": false}),
    );
    let proxy = Proxy::with(json!({}), [slow.after_ms(1_000)]).await;
    proxy.daemon.session_with(&["up:save"]).await;
    let mut client = proxy.client().await;
    let arguments = WRITE.call(&json!({"n": "long"}));
    let calling = client.call(WRITE.variant, &arguments);
    let filling = async {
        wait_until("the call has arrived", DEADLINE, async || {
            !proxy.record.calls().is_empty()
        })
        .await;
        limit_file_size(&proxy.daemon, Some(NO_ROOM));
    };
    let (result, ()) = tokio::join!(calling, filling);
    // It was carried out, so its client gets the result whatever became of the record.
    assert_ne!(result.unwrap()["isError"], true);
    assert_eq!(proxy.recorded_calls().await[0]["status"], "pending");
    limit_file_size(&proxy.daemon, None);
    wait_until("the end is stored", DEADLINE, async || {
        proxy.recorded_calls().await[0]["status"] == "success"
    })
    .await;
    assert_eq!(proxy.data("/activity/verify").await["valid"], true);
}
