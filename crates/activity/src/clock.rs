//! The clock of the machine.

use std::time::SystemTime;

use jiff::Timestamp;

/// What the clock shows; beyond the year 9999, the last moment of it.
pub fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::MAX)
}
