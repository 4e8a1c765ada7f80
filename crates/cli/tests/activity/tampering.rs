//! The file of a daemon that is not running, changed behind its back: `activity verify` names the
//! first record that is wrong.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::{Home, TestDaemon};

use crate::support::{LANES, Proxy, WRITE, database};

/// The first of the calls is changed by most tests, as SQL.
const FIRST_CALL: &str = "(SELECT record FROM payloads WHERE arguments LIKE '%a-0%')";
const SECOND_CALL: &str = "(SELECT record FROM payloads WHERE arguments LIKE '%a-1%')";

/// The bytes of an entry of the chain: its kind, the record it is about and its hash.
const ENTRY: usize = 1 + 16 + 32;

/// A log with six calls, of a daemon that was stopped in order.
struct Stopped {
    home: Home,
    /// The records of the calls, oldest first.
    calls: Vec<String>,
}

impl Stopped {
    async fn with_calls() -> Self {
        let proxy = Proxy::start().await;
        let mut client = proxy.client().await;
        for number in 0..6 {
            let lane = LANES[number % 3];
            client
                .succeed(lane, &json!({"n": format!("a-{number}")}))
                .await;
        }
        let calls = proxy.recorded_calls().await;
        let calls = calls
            .iter()
            .map(|record| record["id"].as_str().unwrap().to_owned());
        let calls = calls.collect();
        let (home, status) = proxy.daemon.stop().await;
        assert!(status.success(), "{status}");
        Self { home, calls }
    }

    fn change(&self, sql: &str) {
        let connection = Connection::open(database(&self.home)).unwrap();
        connection
            .execute_batch(sql)
            .unwrap_or_else(|error| panic!("{error} in {sql}"));
    }

    /// Swaps the first entries of two calls, which are given as SQL, in the chain.
    fn swap_entries(&self, one: &str, other: &str) {
        let connection = Connection::open(database(&self.home)).unwrap();
        let mut statement = connection
            .prepare("SELECT first, entries FROM chain ORDER BY first")
            .unwrap();
        let runs = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        let runs: Vec<(i64, Vec<u8>)> = runs.collect::<Result<_, _>>().unwrap();
        let first = runs[0].0;
        let all: Vec<u8> = runs.into_iter().flat_map(|(_, run)| run).collect();
        let mut entries: Vec<&[u8]> = all.chunks(ENTRY).collect();
        let place = |call: &str| {
            let sql = format!("SELECT id FROM records WHERE id = {call}");
            let record: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
            let about = |entry: &&[u8]| entry[1..9] == record.to_be_bytes();
            entries.iter().position(about).unwrap()
        };
        let places = (place(one), place(other));
        entries.swap(places.0, places.1);
        connection.execute("DELETE FROM chain", []).unwrap();
        let insert = "INSERT INTO chain VALUES (?1, ?2)";
        connection
            .execute(insert, (first, entries.concat()))
            .unwrap();
    }

    async fn verify(&self) -> Value {
        let output = self.home.cli(["activity", "verify", "-o", "json"]).await;
        let found = output.json();
        assert_eq!(output.code, i32::from(found["valid"] != true), "{found}");
        found
    }
}

/// Makes the change in a fresh log and expects the call at this place to be named.
async fn expect_break(sql: &str, place: usize, reason: &str) {
    expect_break_after(|log| log.change(sql), place, reason).await;
}

async fn expect_break_after(change: impl FnOnce(&Stopped), place: usize, reason: &str) {
    let log = Stopped::with_calls().await;
    assert_eq!(log.verify().await["valid"], true);
    change(&log);
    let found = log.verify().await;
    assert_eq!(found["valid"], false, "the change went unnoticed");
    let broken = &found["broken"];
    assert_eq!(broken["id"], log.calls[place].as_str(), "{broken}");
    assert_eq!(broken["reason"], reason, "{broken}");
    // For people, the same record is named.
    let output = log.home.cli(["activity", "verify"]).await;
    output.ended_with(1);
    assert!(
        output.stderr.contains(&log.calls[place]),
        "{}",
        output.stderr
    );
}

#[tokio::test]
async fn a_changed_byte_of_the_arguments_is_found() {
    let sql = format!(
        "UPDATE payloads
         SET arguments = CAST(replace(CAST(arguments AS TEXT), 'a-0', 'b-0') AS BLOB)
         WHERE record = {FIRST_CALL}"
    );
    expect_break(&sql, 0, "arguments_changed").await;
}

#[tokio::test]
async fn a_changed_byte_of_the_response_is_found() {
    let sql = format!(
        "UPDATE payloads
         SET response = CAST(replace(CAST(response AS TEXT), 'a-1', 'b-1') AS BLOB)
         WHERE record = {SECOND_CALL}"
    );
    expect_break(&sql, 1, "response_changed").await;
}

#[tokio::test]
async fn changed_metadata_is_found() {
    let sql = format!("UPDATE records SET intent_type = 1 WHERE id = {SECOND_CALL}");
    expect_break(&sql, 1, "hash_mismatch").await;
}

#[tokio::test]
async fn a_removed_record_is_found() {
    let sql = format!("DELETE FROM records WHERE id = {SECOND_CALL}");
    expect_break(&sql, 1, "record_missing").await;
}

#[tokio::test]
async fn swapped_records_are_found_at_the_first_of_them() {
    let columns = "type, source, status, server, tool, client, intent, intent_type, sensitivity, \
                   reason, variant, tier, provenance, warnings, session_id, request_id, \
                   request_bytes, arguments_digest, arguments_form, error_code, error_message, \
                   duration_ms, response_bytes, response_digest, response_form, facts, id_tail";
    // Both rows with everything but their place in time.
    let sql = format!(
        "CREATE TEMP TABLE pair AS SELECT * FROM records
             WHERE id IN ({FIRST_CALL}, {SECOND_CALL});
         UPDATE records SET ({columns}) = (SELECT {columns} FROM pair WHERE pair.id <> records.id)
             WHERE id IN (SELECT id FROM pair);"
    );
    expect_break(&sql, 0, "hash_mismatch").await;
}

#[tokio::test]
async fn swapped_entries_of_the_chain_are_found() {
    let swap = |log: &Stopped| log.swap_entries(FIRST_CALL, SECOND_CALL);
    expect_break_after(swap, 1, "hash_mismatch").await;
}

/// An older copy of the file holds by itself; only a head that was noted elsewhere tells.
#[tokio::test]
async fn a_tail_that_was_cut_off_is_found_by_a_noted_head() {
    let log = Stopped::with_calls().await;
    let old_head = head(&log.verify().await);
    let copy = log.home.path().join("older.db");
    std::fs::copy(database(&log.home), &copy).unwrap();

    let config: Value = read_json(&log.home.config_file());
    let proxy = Proxy {
        record: log
            .home
            .upstream("up", &testkit::Script::new(crate::support::tools()))
            .record(),
        daemon: TestDaemon::start(log.home, config).await,
    };
    let mut client = proxy.client().await;
    client.succeed(WRITE, &json!({"n": "later"})).await;
    let (home, _) = proxy.daemon.stop().await;
    let verify = async |head: &str| home.cli(["activity", "verify", "--head", head]).await;
    let new_head = {
        let output = home.cli(["activity", "verify", "-o", "json"]).await;
        head(&output.json())
    };
    // The log has grown since, which is as it should be.
    verify(&old_head).await.succeeded();
    verify(&new_head).await.succeeded();

    std::fs::copy(&copy, database(&home)).unwrap();
    verify(&old_head).await.succeeded();
    let output = verify(&new_head).await;
    output.ended_with(1);
    assert!(
        output.stderr.contains("not in the log"),
        "{}",
        output.stderr
    );
}

/// A row that looks like what retention leaves behind does not hide that records were removed.
#[tokio::test]
async fn a_forged_checkpoint_hides_nothing() {
    let log = Stopped::with_calls().await;
    let last = head(&log.verify().await);
    log.change(&format!(
        "CREATE TEMP TABLE joined AS SELECT group_concat(hex(entries), '') AS digits
             FROM (SELECT entries FROM chain ORDER BY first);
         DELETE FROM chain;
         INSERT INTO chain SELECT 3, unhex(substr(digits, 1 + 2 * 2 * {ENTRY})) FROM joined;
         INSERT INTO checkpoints
             SELECT 1000, 2, unhex(substr(digits, 1 + 2 * ({ENTRY} + 17), 64)), 1, 1700000000000
             FROM joined;
         DELETE FROM payloads WHERE record = (SELECT min(id) FROM records);
         DELETE FROM records WHERE id = (SELECT min(id) FROM records);"
    ));
    let found = log.verify().await;
    assert_eq!(
        found["broken"]["reason"], "checkpoint_not_in_chain",
        "{found}"
    );
    let output = log
        .home
        .cli(["activity", "verify", "--head", last.as_str()])
        .await;
    output.ended_with(1);
    let named = "first break at entry 1000: checkpoint not in chain";
    assert!(output.stderr.contains(named), "{}", output.stderr);
}

#[tokio::test]
async fn changed_sums_are_found_apart_from_the_records() {
    let log = Stopped::with_calls().await;
    log.change("UPDATE hourly SET records = 99");
    let found = log.verify().await;
    assert_eq!(found["broken"], Value::Null);
    assert_eq!(found["sums_agree"], false);
    let output = log.home.cli(["activity", "verify"]).await;
    output.ended_with(1);
    assert!(
        output.stderr.contains("do not agree with its records"),
        "{}",
        output.stderr
    );
}

/// What retention removed since is not tampering, but it is not confirmed either.
#[tokio::test]
async fn a_head_that_retention_removed_is_told_apart_from_tampering() {
    let proxy = Proxy::start().await;
    let mut client = proxy.client().await;
    let noted = head(&proxy.data("/activity/verify").await);
    for number in 0..6 {
        client.succeed(WRITE, &json!({"n": number})).await;
    }
    let recent = head(&proxy.data("/activity/verify").await);
    let (home, _) = proxy.daemon.stop().await;
    let mut config = read_json(&home.config_file());
    config["activity"] = json!({"max_records": 4});
    let daemon = TestDaemon::start(home, config).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    while daemon.api("/activity/verify").await["checkpoint"].is_null() {
        assert!(Instant::now() < deadline, "retention never ran");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let verify = async |head: &str| {
        daemon
            .home
            .cli(["activity", "verify", "--head", head])
            .await
    };
    let output = verify(&noted).await;
    output.ended_with(1);
    let (said, why) = (
        "the noted head cannot be confirmed any more",
        "may have been in what it removed",
    );
    assert!(output.stderr.contains(said), "{}", output.stderr);
    assert!(output.stderr.contains(why), "{}", output.stderr);
    assert!(
        !output.stderr.contains("not as it was written"),
        "{}",
        output.stderr
    );
    let output = verify(&recent).await;
    let said = "the noted head is in the log; ";
    assert!(
        output.succeeded().stdout.contains(said),
        "{}",
        output.stdout
    );
    let current = head(&daemon.api("/activity/verify").await);
    let said = "the noted head is in the log, and still its head";
    let output = verify(&current).await;
    assert!(
        output.succeeded().stdout.contains(said),
        "{}",
        output.stdout
    );
}

#[tokio::test]
async fn a_running_daemon_finds_it_too() {
    let log = Stopped::with_calls().await;
    log.change(&format!(
        "UPDATE records SET tool = NULL WHERE id = {FIRST_CALL}"
    ));
    let config = read_json(&log.home.config_file());
    let daemon = TestDaemon::start(log.home, config).await;
    let verified = daemon.api("/activity/verify").await;
    assert_eq!(verified["valid"], false, "{verified}");
    assert_eq!(
        verified["broken"]["id"],
        log.calls[0].as_str(),
        "{verified}"
    );
    // It goes on recording all the same.
    assert!(daemon.is_up().await);
}

fn head(verification: &Value) -> String {
    verification["head"]["hash"].as_str().unwrap().to_owned()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
