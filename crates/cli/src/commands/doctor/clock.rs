//! The clock: what is recorded goes by it.

use jiff::{SignedDuration, Timestamp};

use super::check::{Area, Report};
use super::code::Code;

/// Records of the near future are clocks that are set; of the far future, clocks that were wrong.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// This program did not exist before.
const EARLIEST: &str = "2025-06-01T00:00:00Z";

const FIX: &str = "sudo timedatectl set-ntp true";

/// Holds the clock against the newest record, if there is one.
pub(super) fn check(newest: Option<Timestamp>, report: &mut Report) {
    let now = Timestamp::now();
    let too_early = EARLIEST
        .parse()
        .is_ok_and(|earliest: Timestamp| now < earliest);
    if too_early {
        let cause = format!("it is not {}", shown(now));
        report.problem(Area::Clock, Code::ClockWrong, None, cause, FIX);
        return;
    }
    match newest {
        Some(newest) if newest.duration_since(now) > TOLERANCE => {
            let (now, newest) = (shown(now), shown(newest));
            let cause = format!("it shows {now}, and the newest record is of {newest}");
            report.problem(Area::Clock, Code::ClockBehind, None, cause, FIX);
        }
        _ => report.fine(Area::Clock, None, shown(now)),
    }
}

fn shown(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
