//! What time retention believes it is. A clock that jumps ahead must not delete anything.

use std::time::Duration;

use jiff::Timestamp;

/// A jump of the clock up to this is believed: a machine sleeps, or is off for a night.
const BELIEVED_JUMP: Duration = Duration::from_hours(24);

/// After so much uptime a clock is believed however far it jumped: a machine that was off for weeks
/// is right about the time, and only the operator can tell that from a clock that is wrong.
const BELIEVED_AFTER: Duration = Duration::from_hours(24);

/// Follows a clock, except where it jumps ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BelievedTime {
    pub(crate) now: Timestamp,
    /// For how much uptime the clock has been further ahead than is believed.
    pub(crate) doubted: Duration,
}

impl BelievedTime {
    pub(crate) fn at(now: Timestamp) -> Self {
        Self {
            now,
            doubted: Duration::ZERO,
        }
    }

    /// Takes a look at the clock, so much uptime after the last look.
    ///
    /// A clock that was set back is believed at once: a record from the future has no age.
    pub(crate) fn observe(&mut self, clock: Timestamp, uptime: Duration) {
        let expected = self.now.saturating_add(uptime).unwrap_or(Timestamp::MAX);
        let ahead = Duration::try_from(clock.duration_since(expected)).unwrap_or(Duration::ZERO);
        self.doubted = self.doubted.saturating_add(uptime);
        if ahead <= BELIEVED_JUMP || self.doubted >= BELIEVED_AFTER {
            *self = Self::at(clock);
        } else {
            self.now = expected;
        }
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.doubted.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(hours: i64) -> Timestamp {
        let start: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        start.checked_add(hours.hours()).unwrap()
    }

    /// Looks at the clock, each time after so many hours of uptime.
    fn after(looks: &[(i64, u32)]) -> (i64, bool) {
        let mut time = BelievedTime::at(at(0));
        for (clock, uptime) in looks {
            time.observe(at(*clock), HOUR * *uptime);
        }
        let hours = time.now.duration_since(at(0)).as_hours();
        (hours, time.is_in_doubt())
    }

    #[test]
    fn the_table() {
        type Row<'a> = (&'a str, &'a [(i64, u32)], (i64, bool));
        let table: &[Row<'_>] = &[
            ("a clock that goes on", &[(1, 1), (2, 1)], (2, false)),
            ("a night off", &[(12, 0), (13, 1)], (13, false)),
            ("many nights off", &[(12, 0), (36, 1), (60, 1)], (60, false)),
            ("200 days ahead", &[(4_800, 1)], (1, true)),
            (
                "and again after a restart",
                &[(4_800, 1), (4_801, 0)],
                (1, true),
            ),
            ("and put right", &[(4_800, 1), (2, 1)], (2, false)),
            (
                "for a day of uptime, whatever the nights between",
                &[(4_800, 10), (4_824, 10), (4_848, 4)],
                (4_848, false),
            ),
            ("set back", &[(-4_800, 1)], (-4_800, false)),
            (
                "set back and put right",
                &[(-4_800, 1), (2, 1)],
                (-4_799, true),
            ),
        ];
        for (name, looks, expected) in table {
            assert_eq!(after(looks), *expected, "{name}");
        }
    }
}
