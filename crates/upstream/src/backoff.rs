//! How long to wait before trying an upstream again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_mins(1);

/// A connection that held this long was a good one: the next failure starts the count anew.
pub(crate) const STEADY: Duration = Duration::from_secs(30);

/// The pause after the `attempt`-th failure in a row (1 is the first), doubling up to a minute.
///
/// `jitter` is a random number in 0..=255 that spreads the pause over its upper half, so that
/// upstreams that went down together do not come back together.
pub(crate) fn pause(attempt: u32, jitter: u8) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let whole = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let half = whole / 2;
    half + half.mul_f64(f64::from(jitter) / 255.0)
}

/// A byte of randomness; without any, the middle of the range.
pub(crate) fn jitter() -> u8 {
    let mut byte = [128];
    // Without system randomness the pause is merely not spread.
    let _ = getrandom::fill(&mut byte);
    byte[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_and_stays_under_a_minute() {
        let millis: Vec<_> = (1..=10).map(|n| pause(n, 255).as_millis()).collect();
        assert_eq!(
            millis,
            [
                500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000
            ]
        );
        assert_eq!(pause(u32::MAX, 255), LONGEST);
    }

    #[test]
    fn jitter_spreads_over_the_upper_half() {
        assert_eq!(pause(3, 0), Duration::from_secs(1));
        assert!((0..=255).all(|jitter| pause(3, jitter) >= Duration::from_secs(1)));
        assert!((0..=255).all(|jitter| pause(3, jitter) <= Duration::from_secs(2)));
    }
}
