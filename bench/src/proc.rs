//! Reads what files of `/proc` say.

use std::time::Duration;

use anyhow::{Context, Result};

/// Ticks of `stat`; the same on every Linux that Rust runs on.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// The fields of `stat` from the state on.
pub(crate) fn stat_fields(stat: &str) -> Result<impl Iterator<Item = &str>> {
    // The name in parentheses may hold anything, also a parenthesis.
    let (_, fields) = stat.rsplit_once(')').context("stat has no name")?;
    Ok(fields.split_whitespace())
}

/// `utime` and `stime` of `stat`.
pub(crate) fn user_and_system(stat: &str) -> Result<(Duration, Duration)> {
    let mut ticks = stat_fields(stat)?.skip(11).map(str::parse::<u32>);
    let mut next = || -> Result<_> { Ok(TICK * ticks.next().context("stat is short")??) };
    Ok((next()?, next()?))
}

/// The number after `name` in `status` or `smaps_rollup`, in kB.
pub(crate) fn kilobytes(text: &str, name: &str) -> Result<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let number = value.and_then(|value| value.split_whitespace().next());
    Ok(number.with_context(|| format!("no {name}"))?.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_behind_any_name() {
        let stat = "1 (a ) b) S 2 3 4 5 6 7 8 9 10 11 200 100 0 0";
        let seconds = Duration::from_secs;
        assert_eq!(user_and_system(stat).unwrap(), (seconds(2), seconds(1)));
        assert_eq!(stat_fields(stat).unwrap().nth(1), Some("2"));
        let rollup = "Rss:   9 kB\nPss:   7 kB\nPss_Dirty: 3 kB\n";
        assert_eq!(kilobytes(rollup, "Pss:").unwrap(), 7);
    }
}
