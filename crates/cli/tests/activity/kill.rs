//! SIGKILL under load, at random instants, again and again in the same data directory: whatever
//! was acknowledged is there, whatever changed something is there, and the chain holds.
//!
//! `MCPPROXY_KILL_ROUNDS=1000` kills more often, `MCPPROXY_KILL_SEED` repeats a run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Record, Script, TestDaemon, process, wait_until};
use tokio::task::JoinSet;

use crate::support::{LANES, Lane, home, rest, rest_text, tools};
use crate::wire::McpClient;

const ROUNDS: u64 = 200;
const CLIENTS: u64 = 6;

/// More calls than this are not made by one client, so that retention cannot take a record away
/// before it was looked for.
const CALLS: u64 = 100;

/// The longest a daemon lives once it is ready: long enough for its upstream to start.
const LIFE: Duration = Duration::from_millis(300);

const VERIFY_EVERY: u64 = 20;

/// A small generator of its own, so that a seed is all it takes to repeat a run.
struct Random(u64);

/// What a client was told about a call, by the number in its arguments.
type Acknowledged = BTreeMap<String, Outcome>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Success,
    Failure,
}

/// One life of the daemon.
struct Round {
    number: u64,
    began: Timestamp,
    upstream: Record,
    acknowledged: Acknowledged,
}

/// What all rounds came to; a run in which nothing happens shows nothing.
#[derive(Debug, Default)]
struct Totals {
    acknowledged: usize,
    interrupted: usize,
    changes: usize,
    opened: u64,
    /// Longer than a second.
    opened_slowly: u64,
    slowest_open_ms: u64,
}

struct Run {
    config: Value,
    random: Random,
    totals: Totals,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_instant_it_loses_nothing() {
    run(json!({}), ROUNDS / 2).await;
}

/// Retention runs at every start, so that it is killed in the midst of its work as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_it_forgets_it_loses_nothing() {
    run(json!({"activity": {"max_records": 2_000}}), ROUNDS / 2).await;
}

async fn run(config: Value, rounds: u64) {
    let number = |name| {
        let text = std::env::var(name).ok()?;
        Some(
            text.parse::<u64>()
                .unwrap_or_else(|_| panic!("{name} is a number")),
        )
    };
    let rounds = number("MCPPROXY_KILL_ROUNDS").map_or(rounds, |all| all / 2);
    let seed = number("MCPPROXY_KILL_SEED").unwrap_or_else(|| {
        let now = Timestamp::now().as_microsecond();
        now.unsigned_abs()
    });
    println!(
        "MCPPROXY_KILL_SEED={seed} MCPPROXY_KILL_ROUNDS={}",
        rounds * 2
    );
    let mut run = Run {
        config,
        random: Random(seed | 1),
        totals: Totals::default(),
    };
    let mut home = home();
    let mut last = None;
    for number in 0..rounds {
        let (same_home, round) = run.round(home, number, last.take()).await;
        home = same_home;
        last = Some(round);
    }
    let home = run.conclude(home, last).await;
    home.cli(["activity", "verify"]).await.succeeded();
    let Totals {
        acknowledged,
        interrupted,
        changes,
        opened,
        opened_slowly,
        slowest_open_ms,
    } = run.totals;
    println!(
        "{rounds} kills: {acknowledged} calls acknowledged, {interrupted} interrupted, \
         {changes} changes at the upstream, slowest open {slowest_open_ms} ms"
    );
    // A machine that is busy with something else may hold up one or the other.
    assert!(
        opened_slowly * 20 <= opened,
        "{opened_slowly} of {opened} openings took longer than a second"
    );
    let rounds = usize::try_from(rounds).unwrap();
    assert!(
        acknowledged > rounds && changes > rounds / 2,
        "too little happened"
    );
    assert!(
        interrupted > rounds / 10,
        "too little was under way when it was killed"
    );
}

impl Run {
    /// Starts the daemon, looks at what the last one left behind, has it called and kills it.
    async fn round(&mut self, home: Home, number: u64, last: Option<Round>) -> (Home, Round) {
        let upstream = home.upstream(&format!("up{number}"), &Script::new(tools()));
        self.config["mcpServers"] = json!({"up": upstream.config()});
        let began = Timestamp::now();
        let daemon = self.start(home).await;
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let (address, random) = (daemon.address().to_owned(), self.random.split());
            clients.spawn(call_until_lost(
                address,
                format!("{number}-{client}"),
                random,
            ));
        }
        if let Some(last) = last {
            self.check(&daemon, &last).await;
        }
        if number % VERIFY_EVERY == VERIFY_EVERY - 1 {
            verify(&daemon).await;
        }
        tokio::time::sleep(self.random.below(LIFE)).await;
        let home = daemon.killed().await;
        let acknowledged: Acknowledged = clients.join_all().await.into_iter().flatten().collect();
        self.totals.acknowledged += acknowledged.len();
        let round = Round {
            number,
            began,
            upstream: upstream.record(),
            acknowledged,
        };
        (home, round)
    }

    /// Looks at what the last kill left behind, and stops the daemon in order.
    async fn conclude(&mut self, home: Home, last: Option<Round>) -> Home {
        self.config["mcpServers"] = json!({});
        let daemon = self.start(home).await;
        if let Some(last) = last {
            self.check(&daemon, &last).await;
        }
        verify(&daemon).await;
        let (home, status) = daemon.stop().await;
        assert!(status.success(), "{status}");
        home
    }

    async fn start(&mut self, home: Home) -> TestDaemon {
        let daemon = TestDaemon::start(home, self.config.clone()).await;
        let log = daemon.log();
        let took = log.split("activity log is open took_ms=").nth(1);
        let took = took.and_then(|rest| rest.split_whitespace().next());
        let took: u64 = took
            .and_then(|text| text.parse().ok())
            .expect("the time it took");
        self.totals.opened += 1;
        self.totals.opened_slowly += u64::from(took >= 1_000);
        self.totals.slowest_open_ms = self.totals.slowest_open_ms.max(took);
        daemon
    }

    /// Compares the log with what the clients were told and with what reached the upstream.
    async fn check(&mut self, daemon: &TestDaemon, last: &Round) {
        let recorded = recorded_since(daemon, last.began).await;
        for (call, outcome) in &last.acknowledged {
            let status = recorded
                .get(call)
                .map(|record| record["status"].as_str().unwrap());
            let expected: &[&str] = match outcome {
                Outcome::Success => &["success"],
                Outcome::Failure => &["error", "blocked"],
            };
            assert!(
                status.is_some_and(|status| expected.contains(&status)),
                "{call} was acknowledged ({outcome:?}) and is recorded as {status:?}"
            );
        }
        wait_until("the old upstream has ended", DEADLINE, async || {
            !last.upstream.pids().into_iter().any(process::is_alive)
        })
        .await;
        let mut reached = BTreeSet::new();
        for call in last.upstream.calls() {
            let number = call["arguments"]["n"].as_str().unwrap().to_owned();
            if call["name"] != "look" {
                self.totals.changes += 1;
                let name = &call["name"];
                assert!(
                    recorded.contains_key(&number),
                    "{name} {number} is not recorded"
                );
            }
            assert!(reached.insert(number.clone()), "{number} was sent twice");
        }
        // What the new daemon is being asked at this moment is not part of the last round.
        let of_last = format!("{}-", last.number);
        for (call, record) in recorded
            .iter()
            .filter(|(call, _)| call.starts_with(&of_last))
        {
            let status = record["status"].as_str().unwrap();
            assert_ne!(status, "pending", "{call}");
            assert!(
                status != "success" || reached.contains(call),
                "{call} was never sent"
            );
            self.totals.interrupted += usize::from(status == "interrupted");
        }
    }
}

/// The calls in the log by the number in their arguments.
async fn recorded_since(daemon: &TestDaemon, since: Timestamp) -> BTreeMap<String, Value> {
    let query = format!("format=jsonl&include_bodies=true&start_time={since:.3}");
    let (status, export) = rest_text(daemon, &format!("/activity/export?{query}")).await;
    assert_eq!(status, 200, "{export}");
    let mut recorded = BTreeMap::new();
    for line in export.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let Some(number) = record["arguments"]["n"].as_str() else {
            continue;
        };
        let doubled = recorded.insert(number.to_owned(), record.clone());
        assert!(doubled.is_none(), "{number} is recorded twice");
    }
    recorded
}

async fn verify(daemon: &TestDaemon) {
    let (_, answer) = rest(daemon, "/activity/verify").await;
    assert_eq!(answer["data"]["valid"], true, "{answer}");
}

/// Calls on all lanes until the connection is gone, and tells what was answered.
async fn call_until_lost(address: String, prefix: String, mut random: Random) -> Acknowledged {
    let mut acknowledged = Acknowledged::new();
    let Some(mut client) = McpClient::connect(&address).await else {
        return acknowledged;
    };
    for number in 0..CALLS {
        let call = format!("{prefix}-{number}");
        let lane: Lane = LANES[usize::try_from(random.next() % 3).unwrap()];
        let arguments = lane.call(&json!({"n": call}));
        let Some(result) = client.call(lane.variant, &arguments).await else {
            break;
        };
        let outcome = if result["isError"] == true {
            Outcome::Failure
        } else {
            Outcome::Success
        };
        acknowledged.insert(call, outcome);
    }
    acknowledged
}

impl Random {
    /// Marsaglia's xorshift.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, longest: Duration) -> Duration {
        let nanoseconds = u64::try_from(longest.as_nanos()).unwrap();
        Duration::from_nanos(self.next() % nanoseconds)
    }

    fn split(&mut self) -> Self {
        Self(self.next() | 1)
    }
}
