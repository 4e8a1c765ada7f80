//! Durations as people write them: seconds, or a number with a unit.

use std::time::Duration;

/// Longer than any call or interval makes sense, and a guard against milliseconds written where
/// seconds are meant.
const LONGEST: Duration = Duration::from_hours(24);

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Why a value is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("{found:?} is not a duration")]
    Syntax { found: String },
    #[error("a duration of 0 is too short")]
    Zero,
    #[error("{found} is longer than 24 hours; a number without a unit counts seconds")]
    TooLong { found: String },
}

/// Reads a number of seconds, such as `30` or `0.5`.
pub(crate) fn from_seconds(text: &str) -> Result<Duration, DurationError> {
    let syntax = || DurationError::Syntax { found: text.into() };
    let seconds: f64 = text.parse().map_err(|_| syntax())?;
    if seconds > LONGEST.as_secs_f64() {
        return Err(DurationError::TooLong { found: text.into() });
    }
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| syntax())?;
    // The config is written back in milliseconds at the finest.
    bounded(
        text,
        Duration::from_millis(u64::try_from(duration.as_millis()).map_err(|_| syntax())?),
    )
}

/// Reads a text such as `"30s"`, `"500ms"` or `"2m"`.
pub(crate) fn from_text(text: &str) -> Result<Duration, DurationError> {
    let syntax = || DurationError::Syntax { found: text.into() };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| syntax())?;
    let (_, milliseconds) = UNITS
        .into_iter()
        .find(|(name, _)| *name == unit.trim_start())
        .ok_or_else(syntax)?;
    bounded(
        text,
        Duration::from_millis(number.saturating_mul(milliseconds)),
    )
}

fn bounded(text: &str, duration: Duration) -> Result<Duration, DurationError> {
    if duration.is_zero() {
        Err(DurationError::Zero)
    } else if duration > LONGEST {
        Err(DurationError::TooLong { found: text.into() })
    } else {
        Ok(duration)
    }
}

/// What an editor is told about a duration.
pub(crate) fn schema() -> schemars::Schema {
    schemars::json_schema!({
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400},
            {"type": "string", "pattern": "^[0-9]+ *(ms|s|m|h)$"},
            {"type": "null"},
        ],
    })
}

/// The way a duration is written into a config: whole seconds as a number, others as a text.
pub(crate) fn to_json(duration: Duration) -> serde_json::Value {
    if duration.subsec_nanos() == 0 {
        duration.as_secs().into()
    } else {
        format!("{}ms", duration.as_millis()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_a_number_and_a_unit() {
        assert_eq!(from_text("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(from_text("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(from_text("2 m"), Ok(Duration::from_mins(2)));
        assert_eq!(from_text("1h"), Ok(Duration::from_hours(1)));
        for text in [
            "",
            "s",
            "30",
            "30 sec",
            "-1s",
            "1.5m",
            "1m30s",
            "99999999999999999999s",
        ] {
            assert_eq!(
                from_text(text),
                Err(DurationError::Syntax { found: text.into() })
            );
        }
        assert_eq!(from_text("0s"), Err(DurationError::Zero));
        assert!(matches!(
            from_text("25h"),
            Err(DurationError::TooLong { .. })
        ));
    }

    #[test]
    fn numbers_count_seconds() {
        assert_eq!(from_seconds("30"), Ok(Duration::from_secs(30)));
        assert_eq!(from_seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(from_seconds("0"), Err(DurationError::Zero));
        assert_eq!(from_seconds("0.0001"), Err(DurationError::Zero));
        assert!(matches!(
            from_seconds("600000"),
            Err(DurationError::TooLong { .. })
        ));
        assert!(matches!(
            from_seconds("1e300"),
            Err(DurationError::TooLong { .. })
        ));
        assert!(matches!(
            from_seconds("-1"),
            Err(DurationError::Syntax { .. })
        ));
    }

    #[test]
    fn what_is_written_reads_back() {
        for milliseconds in [1, 999, 1_000, 1_500, 86_400_000] {
            let duration = Duration::from_millis(milliseconds);
            let read = match to_json(duration) {
                serde_json::Value::String(text) => from_text(&text),
                number => from_seconds(&number.to_string()),
            };
            assert_eq!(read, Ok(duration));
        }
    }
}
