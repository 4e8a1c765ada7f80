//! Hours in which callers made up more names than sums can be kept for.
//!
//! Sums outlive their records by weeks, and so do the names in them. An hour with too many is folded:
//! its sums are kept by operation type and status alone, and what comes later in it is added to these.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::histogram::Histogram;

/// How many rows of sums an hour may have.
const MOST_ROWS: i64 = 1_000;

/// The hours that are folded.
pub(super) type Folded = HashSet<i64>;

pub(super) fn folded_hours(connection: &Connection) -> rusqlite::Result<Folded> {
    let mut statement = connection.prepare_cached("SELECT hour FROM folded_hours")?;
    let hours = statement.query_map([], |row| row.get(0))?;
    hours.collect()
}

/// Folds an hour if it has too many sums. The caller has a transaction open.
pub(super) fn fold_if_needed(connection: &Connection, hour: i64) -> rusqlite::Result<()> {
    let rows: i64 = connection
        .prepare_cached("SELECT count(*) FROM hourly WHERE hour = ?1")?
        .query_row([hour], |row| row.get(0))?;
    if rows <= MOST_ROWS {
        return Ok(());
    }
    tracing::warn!(
        hour,
        "an hour has too many tools and clients to be summed up one by one"
    );
    let sums: Vec<[i64; 6]> = connection
        .prepare_cached(
            "SELECT intent_type, status, sum(records), sum(duration_ms), sum(request_bytes), \
             sum(response_bytes) FROM hourly WHERE hour = ?1 GROUP BY intent_type, status",
        )?
        .query_map([hour], |row| {
            Ok([
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
                row.get(5)?,
            ])
        })?
        .collect::<Result<_, _>>()?;
    let mut histogram = Histogram::default();
    let mut statement =
        connection.prepare_cached("SELECT buckets FROM hourly_histograms WHERE hour = ?1")?;
    let mut rows = statement.query([hour])?;
    while let Some(row) = rows.next()? {
        histogram.add_text(row.get_ref(0)?.as_str().unwrap_or_default());
    }
    drop(rows);
    for table in ["hourly", "hourly_histograms"] {
        connection.execute(&format!("DELETE FROM {table} WHERE hour = ?1"), [hour])?;
    }
    let mut insert = connection
        .prepare_cached("INSERT INTO hourly VALUES (?1, 0, 0, 0, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for [intent_type, status, records, duration, request, response] in sums {
        insert.execute([
            hour,
            intent_type,
            status,
            records,
            duration,
            request,
            response,
        ])?;
    }
    connection.execute(
        "INSERT INTO hourly_histograms VALUES (?1, 0, 0, ?2)",
        params![hour, histogram.to_string()],
    )?;
    connection.execute("INSERT OR IGNORE INTO folded_hours VALUES (?1)", [hour])?;
    Ok(())
}
