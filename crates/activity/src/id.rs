//! Identifiers of records: ULIDs whose upper half alone is unique and in order of time.
//!
//! A store can therefore use the upper half as its integer key: looking up by id, listing newest
//! first and cutting out a range of time are all the same walk over that key.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// How many bits of the upper half tell records of one millisecond apart.
const COUNTER_BITS: u32 = 16;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ActivityId(Ulid);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an activity id; it has 26 characters, like 01JGZ3Q4M5N6P7R8S9T0V1W2X3")]
pub struct InvalidActivityId;

/// Hands out identifiers in strictly rising order, from any thread.
#[derive(Debug, Default)]
pub(crate) struct IdSource {
    last: AtomicU64,
}

impl ActivityId {
    pub fn timestamp(self) -> Timestamp {
        let milliseconds = i64::try_from(self.0.timestamp_ms()).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX)
    }

    /// The upper half: time in milliseconds, then a counter.
    pub(crate) fn order(self) -> u64 {
        (u128::from(self.0) >> 64) as u64
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half is what is wanted"
    )]
    pub(crate) fn tail(self) -> u64 {
        u128::from(self.0) as u64
    }

    pub(crate) fn from_halves(order: u64, tail: u64) -> Self {
        Self(Ulid::from((u128::from(order) << 64) | u128::from(tail)))
    }

    /// The lowest order a record of that millisecond can have.
    pub(crate) fn first_order_at(timestamp: Timestamp) -> u64 {
        milliseconds(timestamp) << COUNTER_BITS
    }

    /// The highest order a record of that millisecond can have.
    pub(crate) fn last_order_at(timestamp: Timestamp) -> u64 {
        Self::first_order_at(timestamp) | ((1 << COUNTER_BITS) - 1)
    }
}

impl IdSource {
    pub(crate) fn next(&self, now: Timestamp) -> ActivityId {
        let now_ms = milliseconds(now);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "any bits of a random number will do"
        )]
        let random = Ulid::generate().random() as u64;
        // The lower half of the counter's range is left free for the records that follow within
        // the same millisecond; should even that not suffice, adding one carries into the time.
        let fresh = (now_ms << COUNTER_BITS) | (random >> (64 - COUNTER_BITS + 1));
        // While the clock is behind, the identifiers stand still and keep their order.
        let advance = |last: u64| Some(fresh.max(last + 1));
        let last = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance)
            .unwrap_or_else(|last| last);
        ActivityId::from_halves(advance(last).unwrap_or(fresh), random)
    }
}

/// Milliseconds of the Unix epoch, as far as a ULID can hold them.
fn milliseconds(timestamp: Timestamp) -> u64 {
    let limit = (1_u64 << 47) - 1;
    u64::try_from(timestamp.as_millisecond())
        .unwrap_or(0)
        .min(limit)
}

impl FromStr for ActivityId {
    type Err = InvalidActivityId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ulid::from_string(text)
            .map(Self)
            .map_err(|_| InvalidActivityId)
    }
}

impl TryFrom<String> for ActivityId {
    type Error = InvalidActivityId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ActivityId> for String {
    fn from(id: ActivityId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for ActivityId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; ulid::ULID_LEN];
        formatter.pad(self.0.array_to_str(&mut buffer))
    }
}

impl fmt::Debug for ActivityId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    #[test]
    fn identifiers_rise_even_when_the_clock_stands_still_or_steps_back() {
        let source = IdSource::default();
        let mut last = source.next(at(1_000_000));
        for step in 0..100_000 {
            let set_back = if step % 3 == 0 { 0 } else { 900_000 };
            let next = source.next(at(1_000_000 - set_back - step % 50));
            assert!(next.order() > last.order());
            last = next;
        }
    }

    #[test]
    fn halves_text_and_time_survive() {
        let id = IdSource::default().next(at(1_700_000_000_123));
        assert_eq!(ActivityId::from_halves(id.order(), id.tail()), id);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.timestamp(), at(1_700_000_000_123));
        assert!(ActivityId::first_order_at(id.timestamp()) <= id.order());
        assert!(ActivityId::last_order_at(id.timestamp()) >= id.order());
    }

    #[test]
    fn text_that_is_no_id_is_refused() {
        for text in [
            "",
            "1",
            "01JGZ3Q4M5N6P7R8S9T0V1W2X",
            "01JGZ3Q4M5N6P7R8S9T0V1W2XU!",
        ] {
            assert_eq!(
                text.parse::<ActivityId>(),
                Err(InvalidActivityId),
                "{text:?}"
            );
        }
    }

    #[test]
    fn threads_never_get_the_same_order() {
        let source = IdSource::default();
        let mut orders: Vec<u64> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..10_000)
                            .map(|_| source.next(at(5_000)).order())
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap())
                .collect()
        });
        orders.sort_unstable();
        orders.dedup();
        assert_eq!(orders.len(), 40_000);
    }
}
