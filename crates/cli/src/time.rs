//! Times as people write and read them.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How long ago, roughly: `12s ago`, `5m ago`, `3h ago`, `8d ago`.
pub(crate) fn relative(time: Timestamp, now: Timestamp) -> String {
    let ago = now.duration_since(time);
    match ago.as_secs() {
        // Clocks are set back; a record from the future is a recent one.
        ..=0 => "now".to_owned(),
        seconds => format!("{} ago", rough(seconds)),
    }
}

/// The time of day where the user is, as `14:03:27`.
pub(crate) fn clock(time: Timestamp) -> String {
    time.to_zoned(TimeZone::system())
        .strftime("%H:%M:%S")
        .to_string()
}

/// How long, roughly: `12s`, `5m`, `3h`, `8d`.
pub(crate) fn rough(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        86_400.. => format!("{}d", seconds / 86_400),
    }
}

/// A time as it may be given: a point in time, or how long ago.
pub(crate) fn parse_time(text: &str) -> Result<Timestamp, TimeError> {
    let seconds = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((number, "s")) => number.parse::<i64>().ok(),
        Some((number, "m")) => number.parse::<i64>().ok().and_then(|n| n.checked_mul(60)),
        Some((number, "h")) => number
            .parse::<i64>()
            .ok()
            .and_then(|n| n.checked_mul(3_600)),
        Some((number, "d")) => number
            .parse::<i64>()
            .ok()
            .and_then(|n| n.checked_mul(86_400)),
        _ => None,
    };
    match seconds.filter(|seconds| *seconds >= 0) {
        Some(seconds) => {
            let ago = SignedDuration::from_secs(seconds);
            Timestamp::now().checked_sub(ago).map_err(|_| TimeError)
        }
        None => text.parse().map_err(|_| TimeError),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("use a time like 2026-01-31T12:00:00Z, or how long ago, as 90s, 15m, 2h or 7d")]
pub(crate) struct TimeError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_point_or_a_distance() {
        let point = parse_time("2026-01-31T12:00:00Z").unwrap();
        assert_eq!(point.to_string(), "2026-01-31T12:00:00Z");
        let ago = Timestamp::now().duration_since(parse_time("2h").unwrap());
        assert!((ago.as_secs() - 7_200).abs() < 60, "{ago}");
        for wrong in ["", "h", "-3h", "yesterday", "7x", "99999999999999999d"] {
            assert_eq!(parse_time(wrong), Err(TimeError), "{wrong}");
        }
    }

    #[test]
    fn the_largest_whole_unit_is_told() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365);
        let cases = [
            (-5, "now"),
            (0, "now"),
            (59, "59s ago"),
            (60, "1m ago"),
            (3_599, "59m ago"),
            (86_399, "23h ago"),
            (86_400 * 8, "8d ago"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(
                relative(now - SignedDuration::from_secs(seconds), now),
                expected
            );
        }
    }
}
