//! The rows of one case as a table. Times are in µs.

use std::io::Write;

use anyhow::Result;

use super::row::Row;
use crate::load::Spread;

pub(super) fn print(rows: &[Row]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let Some(first) = rows.first() else {
        return Ok(());
    };
    writeln!(
        out,
        "\n{}: {} calls per path",
        first.case, first.measured.all.calls
    )?;
    writeln!(
        out,
        "{:<15} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7}   {:<22} {:<22} {:<22} {:<22}",
        "path",
        "p50",
        "p99",
        "added",
        "calls/s",
        "CPU",
        "user",
        "system",
        "added / floor",
        "calls/s / floor",
        "CPU / floor",
        "p99 / floor"
    )?;
    for row in rows {
        let (all, ratios) = (&row.measured.all, &row.ratios);
        writeln!(
            out,
            "{:<15} {:>8.1} {:>8.1} {:>8} {:>8.0} {:>7} {:>7} {:>7}   {:<22} {:<22} {:<22} {:<22}",
            row.path,
            all.p50,
            all.p99,
            time(row.added_p50),
            all.calls_per_second,
            time(all.cpu),
            time(all.user),
            time(all.system),
            spread(ratios.added_p50),
            spread(ratios.calls_per_second),
            spread(ratios.cpu),
            spread(ratios.p99),
        )?;
    }
    Ok(())
}

fn time(microseconds: Option<f64>) -> String {
    microseconds.map_or_else(dash, |time| format!("{time:.1}"))
}

pub(super) fn spread(spread: Option<Spread>) -> String {
    spread.map_or_else(dash, |spread| spread.to_string())
}

fn dash() -> String {
    "-".to_owned()
}
