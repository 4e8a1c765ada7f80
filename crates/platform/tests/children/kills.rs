//! SIGKILL of the parent, of the watchdog and of both, at random moments.

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::Duration;

use tempfile::TempDir;
use testkit::process::kill;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use crate::support::{OBEDIENT, Parent, READING, STUBBORN};

const ROUNDS: u64 = 102;

/// Rounds that run at the same time. Most of a round is the watchdog's grace.
const AT_ONCE: usize = 17;

/// How long after the first child was ordered something is killed, at most: long enough that some
/// children run by then, and short enough that others do not.
const MOMENTS: u64 = 120;

#[tokio::test]
async fn no_process_is_left_after_kills_at_random_moments() {
    LocalSet::new().run_until(kill_at_random_moments()).await;
}

async fn kill_at_random_moments() {
    let random = RandomState::new();
    let places = Rc::new(Semaphore::new(AT_ONCE));
    let mut rounds = JoinSet::new();
    for round in 0..ROUNDS {
        let seed = random.hash_one(round);
        let moment = Duration::from_millis(seed % MOMENTS);
        let places = Rc::clone(&places);
        rounds.spawn_local(async move {
            let _place = places.acquire().await.unwrap();
            match round % 3 {
                0 => kill_parent(moment).await,
                1 => kill_watchdog(moment).await,
                _ => kill_both(moment, seed & 1024 == 0).await,
            }
        });
    }
    while let Some(outcome) = rounds.join_next().await {
        outcome.unwrap();
    }
}

async fn kill_parent(moment: Duration) {
    let mut parent = Parent::start();
    for script in [STUBBORN, OBEDIENT, READING] {
        parent.run(script).await;
    }
    tokio::time::sleep(moment).await;
    parent.kill().await;
}

/// Children that are being started and those that run survive their watchdog, and the next one
/// knows all of them.
async fn kill_watchdog(moment: Duration) {
    let folder = TempDir::new().unwrap();
    let file = |number| folder.path().join(format!("child-{number}"));
    let mut parent = Parent::start();
    for number in 0..3 {
        let line = format!("echo > {}; {STUBBORN}", file(number).display());
        parent.run(&line).await;
    }
    tokio::time::sleep(moment).await;
    parent.kill_watchdog().await;
    parent.run_and_wait(folder.path(), OBEDIENT).await;
    testkit::wait_until("all children run", testkit::DEADLINE, async || {
        (0..3).all(|number| file(number).exists())
    })
    .await;
    parent.kill().await;
}

/// If both are killed at the same time, the end of stdin is all that is left to end a child.
async fn kill_both(moment: Duration, parent_first: bool) {
    let mut parent = Parent::start();
    for _ in 0..3 {
        parent.run(READING).await;
    }
    tokio::time::sleep(moment).await;
    let both = [Some(parent.pid()), parent.watchdog()];
    let order = if parent_first { [0, 1] } else { [1, 0] };
    order
        .into_iter()
        .filter_map(|index| both[index])
        .for_each(kill);
    parent.kill().await;
}
