//! What may be forgotten, as a pure function.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Records are kept while all three hold; what is not given does not limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    pub max_age: Option<Duration>,
    pub max_count: Option<u64>,
    pub max_bytes: Option<u64>,
}

/// What the decision needs to know about one record that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub timestamp: Timestamp,
    /// What it takes up in the store.
    pub bytes: u64,
}

/// What the store holds in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holdings {
    pub records: u64,
    pub bytes: u64,
}

/// What one slice of pruning did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneStep {
    /// Removed so many records; there may be more.
    Removed(u64),
    /// Gave so many bytes back to the disk; there may be more.
    Released(u64),
    /// Nothing is left to do.
    Done,
}

/// What pruning did in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    pub records: u64,
    pub released_bytes: u64,
}

impl RetentionPolicy {
    /// How many of the candidates to remove, counted from the oldest.
    ///
    /// It stops at the first that may stay, so that what remains is one unbroken stretch, and it
    /// can be asked again with the next candidates: a large log is pruned slice by slice. A record
    /// from the future, after the clock was set back, has no age.
    pub fn expired(&self, held: Holdings, oldest_first: &[Candidate], now: Timestamp) -> usize {
        let mut held = held;
        oldest_first
            .iter()
            .take_while(|candidate| {
                let age = now.duration_since(candidate.timestamp);
                let age = Duration::try_from(age).unwrap_or(Duration::ZERO);
                let expired = self.max_age.is_some_and(|most| age > most)
                    || self.max_count.is_some_and(|most| held.records > most)
                    || self.max_bytes.is_some_and(|most| held.bytes > most);
                held.records = held.records.saturating_sub(1);
                held.bytes = held.bytes.saturating_sub(candidate.bytes);
                expired
            })
            .count()
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;
    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    fn aged(days: i64, bytes: u64) -> Candidate {
        Candidate {
            timestamp: now().checked_sub((days * 24).hours()).unwrap(),
            bytes,
        }
    }

    #[test]
    fn the_table() {
        let age = |days| RetentionPolicy {
            max_age: Some(DAY * days),
            ..Default::default()
        };
        let count = |most| RetentionPolicy {
            max_count: Some(most),
            ..Default::default()
        };
        let bytes = |most| RetentionPolicy {
            max_bytes: Some(most),
            ..Default::default()
        };
        let every = RetentionPolicy {
            max_age: Some(DAY * 30),
            max_count: Some(3),
            max_bytes: Some(250),
        };
        let log = [aged(40, 100), aged(31, 100), aged(30, 100), aged(1, 100)];
        let future = [aged(-400, 100), aged(40, 100)];
        let table: &[(&str, RetentionPolicy, &[Candidate], usize)] = &[
            (
                "no limit keeps everything",
                RetentionPolicy::default(),
                &log,
                0,
            ),
            ("an empty log", every, &[], 0),
            ("age alone, the limit itself stays", age(30), &log, 2),
            ("age that nothing reaches", age(41), &log, 0),
            ("age zero forgets all but now", age(0), &log, 4),
            ("count alone", count(1), &log, 3),
            ("count zero", count(0), &log, 4),
            ("count that holds", count(4), &log, 0),
            ("bytes alone", bytes(150), &log, 3),
            ("bytes exactly", bytes(400), &log, 0),
            ("bytes zero", bytes(0), &log, 4),
            ("the tightest limit wins", every, &log, 2),
            (
                "a record from the future has no age and shields what follows",
                age(30),
                &future,
                0,
            ),
            ("but it counts", count(0), &future, 2),
        ];
        for (name, policy, candidates, expected) in table {
            let held = Holdings {
                records: candidates.len() as u64,
                bytes: candidates.iter().map(|candidate| candidate.bytes).sum(),
            };
            assert_eq!(policy.expired(held, candidates, now()), *expected, "{name}");
        }
    }

    prop_compose! {
        fn any_policy()(
            age in proptest::option::of(0_u32..60),
            count in proptest::option::of(0_u64..40),
            bytes in proptest::option::of(0_u64..4_000),
        ) -> RetentionPolicy {
            let max_age = age.map(|days| DAY * days);
            RetentionPolicy { max_age, max_count: count, max_bytes: bytes }
        }
    }

    fn holdings(log: &[Candidate]) -> Holdings {
        let bytes = log.iter().map(|candidate| candidate.bytes).sum();
        Holdings {
            records: log.len() as u64,
            bytes,
        }
    }

    proptest! {
        #[test]
        fn what_remains_is_within_the_limits_and_nothing_too_much_went(
            policy in any_policy(),
            entries in proptest::collection::vec((0_i64..90, 1_u64..300), 0..40),
        ) {
            let mut log: Vec<_> = entries.into_iter().map(|(days, size)| aged(days, size)).collect();
            log.sort_by_key(|candidate| candidate.timestamp);
            let removed = policy.expired(holdings(&log), &log, now());
            let within = |rest: &[Candidate]| {
                let held = holdings(rest);
                policy.max_count.is_none_or(|most| held.records <= most)
                    && policy.max_bytes.is_none_or(|most| held.bytes <= most)
                    && rest.iter().all(|candidate| {
                        let age = Duration::try_from(now().duration_since(candidate.timestamp));
                        policy.max_age.is_none_or(|most| age.unwrap() <= most)
                    })
            };
            prop_assert!(within(&log[removed..]));
            prop_assert!(removed == 0 || !within(&log[removed - 1..]));
        }

        #[test]
        fn slices_remove_the_same_as_the_whole(
            policy in any_policy(),
            sizes in proptest::collection::vec(1_u64..300, 0..40),
            slice in 1_usize..7,
        ) {
            let log: Vec<_> = (0_i64..).zip(&sizes).map(|(at, size)| aged(90 - at * 2, *size)).collect();
            let mut removed = 0;
            loop {
                let end = (removed + slice).min(log.len());
                let step = policy.expired(holdings(&log[removed..]), &log[removed..end], now());
                removed += step;
                if step < slice {
                    break;
                }
            }
            prop_assert_eq!(removed, policy.expired(holdings(&log), &log, now()));
        }
    }
}
