//! How long calls took: a histogram, kept as one text per hour and tool.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::stats::{duration_bucket, longest_in_bucket};

/// How many calls fell into each bucket of durations. As text: `bucket:calls`, separated by spaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Histogram(BTreeMap<u64, u64>);

impl Histogram {
    pub(super) fn count(&mut self, duration_ms: u64) {
        self.add(duration_bucket(duration_ms), 1);
    }

    /// Adds what another one has written down. What cannot be read is left out: the sums are a
    /// convenience, and the records have the truth.
    pub(super) fn add_text(&mut self, text: &str) {
        for pair in text.split(' ') {
            if let Some((bucket, calls)) = pair.split_once(':')
                && let (Ok(bucket), Ok(calls)) = (bucket.parse(), calls.parse())
            {
                self.add(bucket, calls);
            }
        }
    }

    fn add(&mut self, bucket: u64, calls: u64) {
        let sum = self.0.entry(bucket).or_default();
        *sum = sum.saturating_add(calls);
    }

    /// The duration that 95 of 100 calls did not exceed.
    pub(super) fn percentile_95(&self) -> u64 {
        let all: u128 = self.0.values().copied().map(u128::from).sum();
        let mut seen = 0;
        let reached = self.0.iter().find(|(_, calls)| {
            seen += u128::from(**calls);
            seen * 100 >= all * 95
        });
        reached.map_or(0, |(bucket, _)| longest_in_bucket(*bucket))
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (bucket, calls)) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_char(' ')?;
            }
            write!(formatter, "{bucket}:{calls}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(durations: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for duration in durations {
            histogram.count(*duration);
        }
        histogram
    }

    proptest! {
        #[test]
        fn adding_the_texts_is_counting_everything(one: Vec<u64>, other: Vec<u64>) {
            let mut sum = of(&one);
            sum.add_text(&of(&other).to_string());
            prop_assert_eq!(sum, of(&[one, other].concat()));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9: x-]{0,40}") {
            Histogram::default().add_text(&text);
        }
    }

    #[test]
    fn the_slow_end_is_where_95_of_100_are_done() {
        let mut durations = vec![1; 95];
        durations.extend([1_000; 5]);
        assert_eq!(of(&durations).percentile_95(), 1);
        durations.push(1_000);
        assert_eq!(of(&durations).percentile_95(), 1_023);
        assert_eq!(Histogram::default().percentile_95(), 0);
    }
}
