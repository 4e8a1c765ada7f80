//! Sums over a period, from the hourly ones wherever they reach.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::codes::{Code, signed, unsigned};
use super::derived::{self, hour_of};
use super::histogram::Histogram;
use crate::id::ActivityId;
use crate::stats::{Counts, Group, GroupBy, Period, Summary, ToolUsage, Usage};
use crate::store::StoreError;
use crate::words::{RecordType, Status, Word};

/// Hours that lie wholly within the period come from the sums; the hour in which it begins is
/// counted from its records.
const SOURCES: &str = "
    SELECT hour, server, tool, client, intent_type, status,
           records, duration_ms, request_bytes, response_bytes
    FROM hourly WHERE hour >= ?1
    UNION ALL
    SELECT ?1 - 1, coalesce(server, 0), coalesce(tool, 0), coalesce(client, 0),
           coalesce(intent_type, 0), status, 1, duration_ms, request_bytes, response_bytes
    FROM records NOT INDEXED WHERE id >= ?2 AND id < ?3 AND type IN (?4, ?5) AND status <> ?6";

pub(super) fn summary(
    connection: &mut Connection,
    period: Period,
    group_by: GroupBy,
    now: Timestamp,
) -> Result<Summary, StoreError> {
    let transaction = connection.transaction()?;
    let since = period.since(now);
    let mut groups: BTreeMap<(i64, i64), Counts> = BTreeMap::new();
    let mut total = Counts::default();
    let (first, second) = group_columns(group_by);
    let sql = format!(
        "SELECT {first}, {second}, status, sum(records), sum(duration_ms), sum(request_bytes), \
         sum(response_bytes) FROM ({SOURCES}) GROUP BY 1, 2, 3"
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    let whole_hour = hour_of(since) + 1;
    let mut rows = statement.query(params![
        whole_hour,
        signed(ActivityId::first_order_at(since)),
        signed(ActivityId::first_order_at(start_of(whole_hour))),
        RecordType::ToolCall.code(),
        RecordType::PolicyDecision.code(),
        Status::Pending.code(),
    ])?;
    while let Some(row) = rows.next()? {
        let Some(status) = Status::from_code(row.get(2)?) else {
            continue;
        };
        let records = unsigned(row.get(3)?);
        let group = groups.entry((row.get(0)?, row.get(1)?)).or_default();
        for counts in [group, &mut total] {
            counts.add(status, records);
            if derived::ran_to_an_end(status) {
                counts.duration_ms += unsigned(row.get(4)?);
            }
            counts.request_bytes += unsigned(row.get(5)?);
            counts.response_bytes += unsigned(row.get(6)?);
        }
    }
    let mut groups = groups
        .into_iter()
        .map(|(key, counts)| {
            Ok(Group {
                key: label(&transaction, group_by, key)?,
                counts,
            })
        })
        .collect::<rusqlite::Result<Vec<_>>>()?;
    if group_by != GroupBy::Hour {
        groups.sort_by_key(|group| Reverse(group.counts.records));
    }
    Ok(Summary {
        period,
        group_by,
        since,
        until: now,
        total,
        groups,
    })
}

fn group_columns(group_by: GroupBy) -> (&'static str, &'static str) {
    match group_by {
        GroupBy::Server => ("server", "0"),
        GroupBy::Tool => ("server", "tool"),
        GroupBy::Status => ("status", "0"),
        GroupBy::IntentType => ("intent_type", "0"),
        GroupBy::Client => ("client", "0"),
        GroupBy::Hour => ("hour", "0"),
    }
}

fn label(
    connection: &Connection,
    group_by: GroupBy,
    (first, second): (i64, i64),
) -> rusqlite::Result<Option<String>> {
    Ok(match group_by {
        GroupBy::Server | GroupBy::Client => name(connection, first)?,
        GroupBy::Tool => match (name(connection, first)?, name(connection, second)?) {
            (Some(server), Some(tool)) => Some(format!("{server}:{tool}")),
            (server, tool) => server.or(tool),
        },
        GroupBy::Status => Status::from_code(first).map(|word| word.as_str().to_owned()),
        GroupBy::IntentType => {
            policy::OperationType::from_code(first).map(|word| word.as_str().to_owned())
        }
        GroupBy::Hour => Some(start_of(first).to_string()),
    })
}

pub(super) fn usage(
    connection: &mut Connection,
    period: Period,
    now: Timestamp,
) -> Result<Usage, StoreError> {
    let transaction = connection.transaction()?;
    let first_hour = hour_of(period.since(now));
    let mut statement = transaction.prepare_cached(
        "SELECT server, tool, sum(CASE WHEN status = ?2 THEN 0 ELSE records END), \
         sum(CASE WHEN status = ?3 THEN records ELSE 0 END), \
         sum(CASE WHEN status = ?2 THEN 0 ELSE request_bytes END), \
         sum(CASE WHEN status = ?2 THEN 0 ELSE response_bytes END) \
         FROM hourly WHERE hour >= ?1 GROUP BY server, tool",
    )?;
    let blocked_and_error = params![first_hour, Status::Blocked.code(), Status::Error.code()];
    let mut rows = statement.query(blocked_and_error)?;
    let durations = read_histograms(&transaction, first_hour)?;
    let mut tools = Vec::new();
    while let Some(row) = rows.next()? {
        let (server, tool) = (row.get(0)?, row.get(1)?);
        tools.push(ToolUsage {
            server_name: name(&transaction, server)?,
            tool_name: name(&transaction, tool)?,
            calls: unsigned(row.get(2)?),
            errors: unsigned(row.get(3)?),
            p95_duration_ms: durations
                .get(&(server, tool))
                .map_or(0, Histogram::percentile_95),
            request_bytes: unsigned(row.get(4)?),
            response_bytes: unsigned(row.get(5)?),
        });
    }
    tools.sort_by_key(|tool| Reverse(tool.calls));
    Ok(Usage {
        period,
        since: start_of(first_hour),
        tools,
    })
}

fn read_histograms(
    connection: &Connection,
    first_hour: i64,
) -> rusqlite::Result<HashMap<(i64, i64), Histogram>> {
    let mut statement = connection
        .prepare_cached("SELECT server, tool, buckets FROM hourly_histograms WHERE hour >= ?1")?;
    let mut rows = statement.query([first_hour])?;
    let mut histograms: HashMap<(i64, i64), Histogram> = HashMap::new();
    while let Some(row) = rows.next()? {
        let histogram = histograms.entry((row.get(0)?, row.get(1)?)).or_default();
        histogram.add_text(row.get_ref(2)?.as_str()?);
    }
    Ok(histograms)
}

fn name(connection: &Connection, number: i64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT text FROM names WHERE id = ?1")?
        .query_row([number], |row| row.get(0))
        .optional()
}

fn start_of(hour: i64) -> Timestamp {
    Timestamp::from_second(hour.saturating_mul(3_600)).unwrap_or(Timestamp::MIN)
}
