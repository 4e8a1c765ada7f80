//! Percentiles, and the spread of a figure over several rounds.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// A figure that was measured several times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of no values at all.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Self {
            median: *sorted.get(sorted.len() / 2)?,
            min: *sorted.first()?,
            max: *sorted.last()?,
        })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, min, max } = self;
        formatter.pad(&format!("{median:.2} ({min:.2}..{max:.2})"))
    }
}

/// The value that `percent` of all are not above.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let seen: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        assert_eq!(percentile(&seen, 50), Duration::from_micros(100));
        assert_eq!(percentile(&seen, 99), Duration::from_micros(198));
        assert_eq!(percentile(&seen[..1], 99), Duration::from_micros(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn a_spread_has_its_median_between_its_ends() {
        let spread = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(spread.to_string(), "2.00 (1.00..3.00)");
        assert_eq!(Spread::of([]), None);
    }
}
