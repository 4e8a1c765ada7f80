//! How long to wait before trying an upstream again, and how often all of them may be tried.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::sleep_until;

const FIRST: Duration = Duration::from_millis(500);

/// The pause that is reached in the end, before jitter: at most one attempt a minute.
const LONGEST: Duration = Duration::from_mins(1);

/// A connection that held this long was a good one: the next failure starts the count again.
pub(crate) const STEADY: Duration = Duration::from_secs(30);

/// A call may bring the next attempt forward, but attempts stay this far apart.
pub(crate) const ON_DEMAND: Duration = Duration::from_mins(1);

/// The first retries of a server that was connected before are not limited by the budget: most
/// losses are short. With the pauses between them they take eight seconds.
const UNLIMITED: u32 = 4;

/// The retry budget of all upstreams together: a burst, then one retry per interval. When thirty
/// are down from the start, that is under a hundred attempts in ten minutes with their first ones.
const BURST: u32 = 20;
const PACE: Duration = Duration::from_secs(15);

/// Retries that a recovery releases are spread over this time.
const SPREAD: Duration = Duration::from_secs(2);

/// The budget for retries of all upstreams of a fleet.
///
/// It limits what many servers that stay down cost. When one of them recovers, the reason may be
/// gone for the others as well, so that they are released from the budget and retry at their own
/// pace.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    /// When the retries so far would be used up at [`PACE`].
    used_until: Mutex<Option<Instant>>,
    recovery: Notify,
}

/// The next retry of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retry {
    /// When the upstream's own pause is over.
    due: Instant,
    /// When the budget allows it.
    pub at: Instant,
}

/// The pause after the `attempt`-th failure in a row (1 is the first), doubling up to a minute.
///
/// `jitter` is a random number in 0..=255 that adds up to a quarter, so that upstreams that went
/// down together do not come back together.
pub(crate) fn pause(attempt: u32, jitter: u8) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let whole = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    whole + (whole / 4).mul_f64(f64::from(jitter) / 255.0)
}

/// A byte of randomness; without any, the middle of the range.
pub(crate) fn jitter() -> u8 {
    let mut byte = [128];
    // Without system randomness the pause is merely not spread.
    let _ = getrandom::fill(&mut byte);
    byte[0]
}

impl Retries {
    /// Plans the retry after the `attempt`-th failure in a row.
    pub(crate) fn plan(&self, attempt: u32, was_connected: bool) -> Retry {
        let due = Instant::now() + pause(attempt, jitter());
        let at = if was_connected && attempt <= UNLIMITED {
            due
        } else {
            self.reserve(due)
        };
        Retry { due, at }
    }

    /// Waits until a retry is to be made.
    pub(crate) async fn wait(&self, retry: Retry) {
        let released = async {
            self.recovery.notified().await;
            let spread = SPREAD.mul_f64(f64::from(jitter()) / 255.0);
            sleep_until(retry.due.max(Instant::now() + spread).into()).await;
        };
        tokio::select! {
            () = sleep_until(retry.at.into()) => {}
            () = released => {}
        }
    }

    /// Notes that a server became ready that had failed.
    pub(crate) fn recovered(&self) {
        *self.used_until() = None;
        self.recovery.notify_waiters();
    }

    /// Takes a retry that is due at `due` from the budget; when it may be made.
    fn reserve(&self, due: Instant) -> Instant {
        let mut used_until = self.used_until();
        let used = used_until.map_or(due, |used| used.max(due)) + PACE;
        *used_until = Some(used);
        used.checked_sub(PACE * BURST)
            .map_or(due, |earliest| earliest.max(due))
    }

    fn used_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.used_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_a_minute_and_no_attempt_comes_sooner() {
        let millis: Vec<_> = (1..=10).map(|n| pause(n, 0).as_millis()).collect();
        assert_eq!(
            millis,
            [
                500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000
            ]
        );
        assert_eq!(pause(u32::MAX, 0), LONGEST);
        assert!((0..=255).all(|jitter| pause(9, jitter) >= LONGEST));
        assert_eq!(pause(9, 255), LONGEST + LONGEST / 4);
    }

    /// Attempts of so many dead upstreams in ten minutes, their first ones included.
    fn attempts(upstreams: usize) -> usize {
        let begin = Instant::now();
        let end = begin + Duration::from_mins(10);
        let retries = Retries::default();
        let mut next: Vec<(Instant, u32)> = vec![(begin, 1); upstreams];
        let mut count = 0;
        loop {
            let Some((index, (now, attempt))) =
                next.iter().copied().enumerate().min_by_key(|it| it.1)
            else {
                return count;
            };
            if now >= end {
                return count;
            }
            count += 1;
            let jitter = u8::try_from(count * 37 % 256).unwrap();
            next[index] = (retries.reserve(now + pause(attempt, jitter)), attempt + 1);
        }
    }

    #[test]
    fn thirty_dead_upstreams_are_tried_less_than_a_hundred_times_in_ten_minutes() {
        let all = attempts(30);
        assert!((60..=100).contains(&all), "{all}");
        // One alone is not held back by that: quick at first, then once a minute.
        let one = attempts(1);
        assert!((14..=18).contains(&one), "{one}");
    }

    #[test]
    fn a_server_that_was_connected_retries_at_its_own_pace_for_a_while() {
        let retries = Retries::default();
        let held_back = |retry: Retry| retry.at > retry.due;
        while !held_back(retries.plan(1, false)) {}
        assert!((1..=UNLIMITED).all(|attempt| !held_back(retries.plan(attempt, true))));
        assert!(held_back(retries.plan(UNLIMITED + 1, true)));
    }

    #[tokio::test]
    async fn a_recovery_releases_the_retries_that_the_budget_holds_back() {
        let retries = Retries::default();
        let plan = || retries.plan(1, false);
        let retry = std::iter::repeat_with(plan)
            .find(|retry| retry.at > retry.due + PACE)
            .unwrap();
        let waiting = retries.wait(retry);
        tokio::pin!(waiting);
        let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
        assert!(early.is_err(), "{retry:?}");
        retries.recovered();
        tokio::time::timeout(SPREAD * 3, waiting).await.unwrap();
        assert!(Instant::now() < retry.at);
        let next = plan();
        assert_eq!(next.at, next.due, "the budget is full again");
    }
}
