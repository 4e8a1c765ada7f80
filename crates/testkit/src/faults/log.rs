//! R23 to R25 and R39: a full disk, a damaged file, a wrong clock, a layout of another version.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};

use super::case::{Case, Report, case};
use super::clock::{Clock, DAY};
use super::kills::copy_tree;
use super::proxy::{Lane, Proxy};
use super::random::Random;
use super::setup::{Setup, binary};
use super::upstreams::tools;
use crate::{Home, Outcome, Script, http_client};

/// Smaller than the log from the first record on.
const NO_ROOM: u64 = 16 * 1024;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("R23", "no room on the disk, then room again", full_disk),
        case(
            "R24",
            "single flipped bytes; a file that is no database",
            damaged,
        ),
        case(
            "R25",
            "clock ±1 day, 200 days and 8,000 years ahead, back to 1970",
            wrong_clock,
        ),
        case(
            "R39",
            "log of a newer layout; log of the first layout",
            other_layouts,
        ),
    ]
}

/// A daemon in front of `up` with a tool for each lane; only the case's own calls are in its log.
pub(super) async fn start(config: Value) -> Proxy {
    let mut setup = Setup::new();
    setup.stdio("up", &Script::new(tools(&Outcome::Echo)), json!({}));
    setup.without_probe().set(config);
    let proxy = setup.start().await;
    proxy.ready("up").await;
    proxy
}

/// The same daemon in a home that was left behind.
pub(super) async fn start_again(home: Home) -> Proxy {
    let mut setup = Setup::in_home(home);
    setup.stdio("up", &Script::new(tools(&Outcome::Echo)), json!({}));
    setup.without_probe();
    let proxy = setup.start().await;
    proxy.ready("up").await;
    proxy
}

pub(super) fn database(home: &Home) -> PathBuf {
    home.path().join(".mcpproxy/activity/activity.db")
}

pub(super) async fn writes(proxy: &Proxy, mark: &str, count: usize) {
    for number in 0..count {
        let arguments = json!({"n": format!("{mark}-{number}")});
        proxy.call(Lane::Write, "up:save", arguments).await.ok();
    }
}

pub(super) fn limit(proxy: &Proxy, resource: Resource, current: Option<u64>) {
    let pid = i32::try_from(proxy.daemon.pid())
        .ok()
        .and_then(Pid::from_raw);
    let maximum = getrlimit(resource).maximum;
    let limit = Rlimit { current, maximum };
    prlimit(pid, resource, limit).expect("the limit can be set");
}

async fn full_disk() -> Report {
    let mut proxy = start(json!({})).await;
    writes(&proxy, "before", 3).await;
    limit(&proxy, Resource::Fsize, Some(NO_ROOM));
    for lane in [Lane::Write, Lane::Destructive] {
        let tool = if lane == Lane::Write {
            "up:save"
        } else {
            "up:wipe"
        };
        let refusal = proxy
            .call(lane, tool, json!({"n": "no room"}))
            .await
            .refused();
        assert_eq!(refusal.code, "ACTIVITY_UNAVAILABLE", "{}", refusal.message);
    }
    for _ in 0..5 {
        proxy.read("up:look").await.ok();
    }
    limit(&proxy, Resource::Fsize, None);
    proxy
        .until("writes are taken again", 20, async || {
            !proxy
                .call(Lane::Write, "up:save", json!({"n": "room"}))
                .await
                .failed()
        })
        .await;
    proxy
        .until(
            "the log says that calls are missing from it",
            10,
            async || {
                let system = proxy.log("type=system").await;
                system.iter().any(|record| {
                    let text = record.to_string();
                    text.contains("gap")
                        || text.contains("not recorded")
                        || text.contains("unrecorded")
                })
            },
        )
        .await;
    proxy.note("a gap is recorded for 5 reads");
    proxy.finish().await
}

async fn damaged() -> Report {
    let proxy = start(json!({})).await;
    writes(&proxy, "kept", 20).await;
    let home = proxy.stopped().await;
    let exported = export(&home).await;
    let (mut random, mut found) = (Random::seeded(), 0);
    for _ in 0..15 {
        let copy = Home::new(&binary());
        copy_tree(
            &home.path().join(".mcpproxy"),
            &copy.path().join(".mcpproxy"),
        );
        let mut bytes = std::fs::read(database(&copy)).expect("a database");
        let used: Vec<usize> = (0..bytes.len())
            .filter(|place| bytes[*place] != 0)
            .collect();
        let place = used[random.index(used.len())];
        bytes[place] ^= 1 << random.index(8);
        std::fs::write(database(&copy), bytes).expect("it can be written");
        let verify = copy.cli(["activity", "verify"]).await;
        assert!(!verify.stderr.contains("panicked"), "{}", verify.stderr);
        // Either it is told, or nothing that is shown is different.
        if verify.code == 0 {
            assert_eq!(
                export(&copy).await,
                exported,
                "a flip at {place} went unnoticed"
            );
        } else {
            found += 1;
        }
    }
    std::fs::write(database(&home), b"not a database".repeat(1_000)).expect("it can be written");
    let mut proxy = start_again(home).await;
    let aside = std::fs::read_dir(proxy.daemon.home.path().join(".mcpproxy/activity"));
    let aside = aside
        .expect("a folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert!(
        aside.into_iter().any(|name| name.contains(".corrupt-")),
        "the file is not kept"
    );
    writes(&proxy, "new", 2).await;
    proxy.note(format!(
        "15 flips: {found} found, {} without effect",
        15 - found
    ));
    proxy.finish().await
}

async fn export(home: &Home) -> String {
    let arguments = [
        "activity",
        "export",
        "--format",
        "jsonl",
        "--include-bodies",
    ];
    home.cli(arguments).await.stdout
}

async fn wrong_clock() -> Report {
    let mut setup = Setup::new();
    let clock = Clock::in_home(&setup.home);
    clock.apply(&mut setup);
    setup.stdio("up", &Script::new(tools(&Outcome::Echo)), json!({}));
    setup.without_probe();
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let mut expected = Vec::new();
    for (mark, offset) in [
        ("ahead", DAY),
        ("behind", -DAY),
        ("far", 200 * DAY),
        ("back", 0),
    ] {
        clock.set(offset);
        writes(&proxy, mark, 3).await;
        expected.extend((0..3).map(|number| format!("{mark}-{number}")));
    }
    let numbers = async |proxy: &Proxy| -> Vec<String> {
        let mut records = proxy.log("intent_type=write").await;
        records.reverse();
        let numbers = records
            .iter()
            .filter_map(|record| record["arguments"]["n"].as_str());
        numbers.map(str::to_owned).collect()
    };
    assert_eq!(
        numbers(&proxy).await,
        expected,
        "not in the order in which it happened"
    );
    // Retention runs at the start, with the clock far ahead.
    for offset in [200 * DAY, -20 * 365 * DAY, 0] {
        clock.set(offset);
        let mut setup = Setup::in_home(proxy.stopped().await);
        clock.apply(&mut setup);
        setup.stdio("up", &Script::new(tools(&Outcome::Echo)), json!({}));
        setup.without_probe();
        proxy = setup.start().await;
        proxy.ready("up").await;
        assert_eq!(
            numbers(&proxy).await,
            expected,
            "records are gone with the clock at {offset} s"
        );
    }
    // HTTP has no date for these years, so connections are closed; the daemon must survive them.
    for (year, offset) in [("1960", -67 * 365 * DAY), ("10000", 8_000 * 365 * DAY)] {
        clock.set(offset);
        let request = http_client().get(proxy.daemon.url("/healthz"));
        let served = request.send().await.is_ok();
        clock.set(0);
        assert!(!proxy.read("up:look").await.failed(), "after {year}");
        let served = if served { "served" } else { "closed" };
        proxy.note(format!("year {year}: {served}"));
    }
    proxy.finish().await
}

async fn other_layouts() -> Report {
    let proxy = start(json!({})).await;
    writes(&proxy, "kept", 3).await;
    let home = proxy.stopped().await;
    let file = database(&home);
    let version = |path: &Path| -> i64 {
        let connection = Connection::open(path).expect("a database");
        connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .expect("a version")
    };
    let known = version(&file);
    let set = |version: i64| {
        let connection = Connection::open(&file).expect("a database");
        connection
            .pragma_update(None, "user_version", version)
            .expect("it can be set");
    };
    set(known + 1_000);
    let before = std::fs::read(&file).expect("a file");
    let output = home.cli(["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("newer"), "{}", output.stderr);
    assert!(
        std::fs::read(&file).expect("a file") == before,
        "the newer log was touched"
    );
    set(known);
    let proxy = start_again(home).await;
    assert_eq!(proxy.log("intent_type=write").await.len(), 3);
    let _report = proxy.finish().await;
    // A log as the first release wrote it is brought up to date, and a copy is kept.
    let home = Home::new(&binary());
    let file = database(&home);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    let old = Connection::open(&file).expect("a database");
    old.execute_batch(include_str!(
        "../../../activity/src/sqlite/schema/0001_initial.sql"
    ))
    .expect("the first layout");
    old.pragma_update(None, "application_id", 0x6d63_7061)
        .expect("ours");
    old.pragma_update(None, "user_version", 1)
        .expect("the first");
    drop(old);
    let mut proxy = start_again(home).await;
    writes(&proxy, "new", 1).await;
    assert_eq!(version(&database(&proxy.daemon.home)), known);
    let kept = std::fs::read_dir(file.parent().expect("a folder"))
        .expect("a folder")
        .count();
    assert!(kept > 1, "no copy of the old log is kept");
    proxy.note(format!("layout 1 → {known}, {} refused", known + 1_000));
    proxy.finish().await
}
