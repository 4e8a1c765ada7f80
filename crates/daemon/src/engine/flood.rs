//! Bounds how many records refused calls and changed tools can cause.
//!
//! An agent can be refused ten thousand times a second, and an upstream can change all its tools at
//! every listing. Up to a rate each gets a record of its own. Beyond it they are counted: a record is
//! opened when the counting begins and ended, with the counts, after a while.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use activity::{Activity, Durability, End, Missed, Outcome, RecordType, Source, Start};
use config::Limits;
use jiff::Timestamp;
use policy::ServerName;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What stands in place of a code for a tool whose definition changed.
pub(super) const CHANGED: &str = "TOOL_CHANGED";

/// The code of the record that has the counts.
const COUNTED: &str = "RECORDS_COUNTED";

/// Causes whose rate is followed one by one. Names of clients are theirs to choose; beyond so many,
/// only the rate of all together counts.
const MOST_CAUSES: usize = 256;

/// Kinds of refusals that are counted apart; the others are counted together.
const MOST_KINDS: usize = 64;

/// How many records at once are worth how many seconds of the rate.
const BURST: f64 = 10.0;

/// All clients together may cause so many times as many records as one.
const ALL_CLIENTS: f64 = 5.0;

/// A large server that is brought up to date changes many tools at once, and not soon again.
const BURST_OF_SERVER: f64 = 50.0;
const RATE_OF_SERVER: f64 = 0.05;

/// On whose account something is recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cause {
    Client(Option<Arc<str>>),
    Server(ServerName),
}

#[derive(Debug)]
pub(super) struct Flood {
    shared: Arc<Shared>,
    window: Duration,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Ends the counting before its time.
    stop: Notify,
}

#[derive(Debug)]
struct State {
    rates: Rates,
    counts: Counts,
    /// Records the counts, while there is something to count.
    telling: Option<JoinHandle<()>>,
    /// Nothing is admitted to being told later any more.
    stopped: bool,
}

/// Token buckets.
#[derive(Debug)]
struct Rates {
    per_second: f64,
    causes: HashMap<Cause, Bucket>,
    all_clients: Bucket,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

#[derive(Debug, Default)]
struct Counts {
    kinds: BTreeMap<(Cause, &'static str), u64>,
    others: u64,
}

impl Flood {
    pub(super) fn new(limits: &Limits) -> Self {
        let rates = Rates::new(limits.refusal_records, Instant::now());
        let state = State {
            rates,
            counts: Counts::default(),
            telling: None,
            stopped: false,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                stop: Notify::new(),
            }),
            window: limits.refusal_window.get(),
        }
    }

    /// Whether something gets a record of its own. If not, it was counted.
    pub(super) fn admits(&self, cause: Cause, code: &'static str, activity: &Activity) -> bool {
        let mut state = self.shared.state();
        if state.stopped || state.rates.admit(&cause, Instant::now()) {
            return true;
        }
        state.counts.add(cause, code);
        if state.telling.is_none() {
            let telling = tell(Arc::clone(&self.shared), activity.clone(), self.window);
            state.telling = Some(tokio::spawn(telling));
        }
        false
    }

    /// Records what was counted so far. Whatever comes later gets a record of its own.
    pub(super) async fn end(&self) {
        let telling = {
            let mut state = self.shared.state();
            state.stopped = true;
            state.telling.take()
        };
        self.shared.stop.notify_one();
        if let Some(telling) = telling
            && let Err(error) = telling.await
        {
            tracing::error!(%error, "counts of refused calls are not recorded");
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the record of the counts, so that a crash leaves at least that, and ends it with them.
async fn tell(shared: Arc<Shared>, activity: Activity, window: Duration) {
    let from = activity::now();
    let about = json!({"event": "records_counted", "from": format!("{from:.3}")}).to_string();
    let start = Start {
        arguments: Some(&about),
        ..Start::new(RecordType::System, Source::Mcp)
    };
    let record = activity.begin(start, Durability::Written).await;
    let began = Instant::now();
    tracing::warn!(
        "more calls are refused, or tools changed, than get a record each; they are counted"
    );
    let _ = tokio::time::timeout(window, shared.stop.notified()).await;
    let counts = {
        let mut state = shared.state();
        // The next one begins the counting anew.
        state.telling = None;
        std::mem::take(&mut state.counts)
    };
    let (message, response) = counts.texts(from);
    let outcome = Outcome::Blocked {
        code: COUNTED,
        message: &message,
    };
    let end = End {
        response: Some(&response),
        response_bytes: response.len() as u64,
        ..End::new(outcome, began.elapsed())
    };
    let recorded = match record {
        Ok(record) => record.finish(end, Durability::Written).await,
        Err(error) => Err(error),
    };
    if let Err(error) = recorded {
        tracing::error!(%error, "counts of refused calls are not recorded");
        for _ in 0..counts.total() {
            activity.missed(Missed::Refusal);
        }
    }
}

impl Rates {
    fn new(per_second: usize, now: Instant) -> Self {
        let per_second = u32::try_from(per_second).map_or(f64::MAX, f64::from);
        Self {
            per_second,
            causes: HashMap::new(),
            all_clients: Bucket {
                tokens: per_second * ALL_CLIENTS * BURST,
                at: now,
            },
        }
    }

    fn admit(&mut self, cause: &Cause, now: Instant) -> bool {
        let (rate, burst) = match cause {
            Cause::Client(_) => (self.per_second, self.per_second * BURST),
            Cause::Server(_) => (
                self.per_second * RATE_OF_SERVER,
                self.per_second * BURST_OF_SERVER,
            ),
        };
        if self.causes.len() >= MOST_CAUSES && !self.causes.contains_key(cause) {
            // A full bucket is as good as none. There are never many servers.
            self.causes.retain(|cause, bucket| {
                let is_server = matches!(cause, Cause::Server(_));
                is_server || now.duration_since(bucket.at).as_secs_f64() < BURST
            });
        }
        let is_known = self.causes.len() < MOST_CAUSES || self.causes.contains_key(cause);
        if is_known {
            let full = Bucket {
                tokens: burst,
                at: now,
            };
            let bucket = self.causes.entry(cause.clone()).or_insert(full);
            if !bucket.take(rate, burst, now) {
                return false;
            }
        }
        match cause {
            Cause::Server(_) => true,
            Cause::Client(_) => {
                let rate = self.per_second * ALL_CLIENTS;
                self.all_clients.take(rate, rate * BURST, now)
            }
        }
    }
}

impl Bucket {
    fn take(&mut self, rate: f64, burst: f64, now: Instant) -> bool {
        let gained = now.duration_since(self.at).as_secs_f64() * rate;
        self.tokens = (self.tokens + gained).min(burst);
        self.at = now;
        let admitted = self.tokens >= 1.0;
        if admitted {
            self.tokens -= 1.0;
        }
        admitted
    }
}

impl Counts {
    fn add(&mut self, cause: Cause, code: &'static str) {
        let is_full = self.kinds.len() >= MOST_KINDS;
        let key = (cause, code);
        if is_full && !self.kinds.contains_key(&key) {
            self.others += 1;
        } else {
            *self.kinds.entry(key).or_default() += 1;
        }
    }

    fn total(&self) -> u64 {
        self.others + self.kinds.values().sum::<u64>()
    }

    /// The message of the record, and its response.
    fn texts(&self, from: Timestamp) -> (String, String) {
        let to = activity::now();
        let kinds: Vec<Value> = self
            .kinds
            .iter()
            .map(|((cause, code), count)| match cause {
                Cause::Client(client) => {
                    json!({"client_name": client, "code": code, "count": count})
                }
                Cause::Server(server) => {
                    json!({"server_name": server.as_str(), "code": code, "count": count})
                }
            })
            .collect();
        let total = self.total();
        let response = json!({
            "count": total,
            "from": format!("{from:.3}"),
            "to": format!("{to:.3}"),
            "kinds": kinds,
            "others": self.others,
        });
        let message = format!(
            "{total} refused calls and changed tools between {from:.3} and {to:.3} have no record of \
             their own: there were too many of them"
        );
        (message, response.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str) -> Cause {
        Cause::Client(Some(name.into()))
    }

    /// How many of so many are admitted, all at that moment.
    fn admitted(rates: &mut Rates, cause: &Cause, number: usize, now: Instant) -> usize {
        (0..number).filter(|_| rates.admit(cause, now)).count()
    }

    #[test]
    fn a_client_has_a_burst_and_then_a_rate() {
        let now = Instant::now();
        let mut rates = Rates::new(20, now);
        assert_eq!(admitted(&mut rates, &client("a"), 1_000, now), 200);
        assert_eq!(admitted(&mut rates, &client("b"), 10, now), 10);
        let later = now + Duration::from_secs(1);
        assert_eq!(admitted(&mut rates, &client("a"), 1_000, later), 20);
        let much_later = now + Duration::from_hours(1);
        assert_eq!(admitted(&mut rates, &client("a"), 1_000, much_later), 200);
    }

    #[test]
    fn new_names_do_not_help() {
        let now = Instant::now();
        let mut rates = Rates::new(20, now);
        let names = (0..10_000).map(|name| client(&name.to_string()));
        let admitted = names.filter(|name| rates.admit(name, now)).count();
        assert_eq!(admitted, 1_000);
        assert!(rates.causes.len() <= MOST_CAUSES);
    }

    #[test]
    fn a_server_may_change_many_tools_but_not_again_and_again() {
        let now = Instant::now();
        let mut rates = Rates::new(20, now);
        let server = Cause::Server("up".parse().unwrap());
        assert_eq!(admitted(&mut rates, &server, 2_000, now), 1_000);
        let later = now + Duration::from_secs(40);
        assert_eq!(admitted(&mut rates, &server, 2_000, later), 40);
    }

    #[test]
    fn counts_are_complete_however_many_kinds_there_are() {
        let mut counts = Counts::default();
        for number in 0..500 {
            counts.add(client(&format!("client {number}")), "SERVER_MISMATCH");
            counts.add(client("client 0"), "SERVER_MISMATCH");
        }
        assert_eq!(counts.total(), 1_000);
        assert_eq!(counts.kinds.len(), MOST_KINDS);
        let (message, response) = counts.texts(activity::now());
        assert!(message.starts_with("1000 refused calls"), "{message}");
        let response: Value = serde_json::from_str(&response).unwrap();
        assert_eq!(response["count"], 1_000);
        assert_eq!(response["kinds"][0]["count"], 501);
    }
}
