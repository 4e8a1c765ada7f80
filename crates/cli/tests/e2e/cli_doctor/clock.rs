//! A clock that is wrong: that of the program under test, by a library that is loaded before it.

use std::path::Path;
use std::time::SystemTime;

use serde_json::json;
use testkit::{Home, TestDaemon};

use super::{Problem, codes, named, problems, program, quiet_home, ran, set_mode};
use crate::support::home;

const DAY: i64 = 24 * 60 * 60;

/// What doctor finds when its clock is off by so many seconds.
async fn problems_at(home: &Home, offset: i64) -> Vec<Problem> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/clock.c");
    let library = home.path().join("clock.so");
    let mut compiler = program("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source);
    ran(compiler).await;
    let library = library.to_string_lossy();
    let offset = offset.to_string();
    let environment = [("LD_PRELOAD", &*library), ("CLOCK_OFFSET", &offset)];
    problems(home, &[], &environment).await
}

#[tokio::test]
async fn a_clock_that_was_never_set_is_seen() {
    let home = quiet_home(json!({}));
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    // The first day of a clock whose battery is empty.
    let found = problems_at(&home, -i64::try_from(now).unwrap()).await;
    let problem = named(&found, "CLOCK_WRONG");
    assert!(problem.cause.contains("1970-01-01"), "{problem:?}");
    assert!(problem.fix.contains("timedatectl"), "{problem:?}");
    assert_eq!(codes(&home).await, [""; 0]);
}

#[tokio::test]
async fn a_clock_that_is_behind_the_log_is_seen() {
    let daemon = TestDaemon::start(home(), json!({})).await;
    set_mode(&daemon.home.config_file(), 0o600);
    let found = problems_at(&daemon.home, -DAY).await;
    let problem = named(&found, "CLOCK_BEHIND");
    assert!(problem.fix.contains("timedatectl"), "{problem:?}");
    // A clock that is ahead has no records from the future, and some seconds are no matter.
    for offset in [3_600, -20] {
        assert!(problems_at(&daemon.home, offset).await.is_empty());
    }
    // The same of a log that nobody has open.
    let (home, status) = daemon.stop().await;
    assert!(status.success(), "{status}");
    named(&problems_at(&home, -DAY).await, "CLOCK_BEHIND");
    assert_eq!(codes(&home).await, [""; 0]);
}
