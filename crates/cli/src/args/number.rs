//! Whole numbers on the command line: whatever else is given, the answer names those that are
//! allowed.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberError {
    least: u64,
    most: Option<u64>,
}

impl std::error::Error for NumberError {}

impl fmt::Display for NumberError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { least, most } = self;
        match most {
            Some(most) => write!(formatter, "use a whole number from {least} to {most}"),
            None => write!(formatter, "use a whole number from {least} up"),
        }
    }
}

/// Reads a number between these, both included; without `most`, as large as it may come.
pub(super) fn number<N: TryFrom<u64>>(
    least: u64,
    most: Option<u64>,
) -> impl Fn(&str) -> Result<N, NumberError> + Clone + Send + Sync + 'static {
    move |text| {
        let number: Option<u64> = text.parse().ok();
        number
            .filter(|number| *number >= least && most.is_none_or(|most| *number <= most))
            // More than a signed number holds is not understood everywhere.
            .filter(|number| i64::try_from(*number).is_ok())
            .and_then(|number| N::try_from(number).ok())
            .ok_or(NumberError { least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_allowed_is_answered_with_what_is() {
        let parse = number::<u32>(1, Some(100));
        assert_eq!(parse("100"), Ok(100));
        for wrong in ["0", "101", "-1", "bogus", "", "1.5", "99999999999999999999"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert_eq!(error, "use a whole number from 1 to 100", "{wrong}");
        }
        let error = number::<u64>(1, None)("0").unwrap_err().to_string();
        assert_eq!(error, "use a whole number from 1 up");
    }
}
