//! A small generator of random numbers; its seed is printed when a run has to be repeated.

use std::time::{Duration, SystemTime};

#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Seeded by the clock.
    pub(super) fn seeded() -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self::new(u64::from(now.subsec_nanos()) ^ now.as_secs())
    }

    /// Marsaglia's xorshift.
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.next() % length.max(1) as u64).unwrap_or(0)
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    pub(super) fn below(&mut self, longest: Duration) -> Duration {
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.next() % micros.max(1))
    }

    pub(super) fn split(&mut self) -> Self {
        Self::new(self.next())
    }
}
