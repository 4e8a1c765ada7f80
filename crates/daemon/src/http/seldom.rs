//! Log lines that an outsider can cause are written at most once in a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_secs(10);

/// Lets one of many occurrences through, and counts the others.
#[derive(Debug, Default)]
pub(super) struct Seldom(Mutex<Occurrences>);

#[derive(Debug, Default)]
struct Occurrences {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// How many occurrences were left out since the last one that was let through; `None` if this
    /// one is left out, too.
    pub(super) fn now(&self) -> Option<u64> {
        self.at(Instant::now())
    }

    fn at(&self, now: Instant) -> Option<u64> {
        let mut occurrences = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |last: Instant| now.saturating_duration_since(last) < PAUSE;
        if occurrences.last.is_some_and(recent) {
            occurrences.left_out += 1;
            return None;
        }
        occurrences.last = Some(now);
        Some(std::mem::take(&mut occurrences.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_while_passes_and_counts_the_others() {
        let (seldom, begun) = (Seldom::default(), Instant::now());
        assert_eq!(seldom.at(begun), Some(0));
        assert_eq!(seldom.at(begun + PAUSE / 2), None);
        assert_eq!(seldom.at(begun + PAUSE / 2), None);
        assert_eq!(seldom.at(begun + PAUSE), Some(2));
    }
}
