//! Sums per hour, derived from records that have ended.
//!
//! They are written apart from the records, many at a time, because most records of an hour add
//! to the same few rows. `progress` says how far they are; whoever needs them up to date has them
//! flushed first, and after a crash the rest is derived from the records again.

use std::collections::{BTreeSet, HashMap, VecDeque};

use foldhash::fast::RandomState;
use rusqlite::{Connection, OptionalExtension, params};

use super::codes::{Code, signed, unsigned};
use super::folding::{Folded, fold_if_needed, folded_hours};
use super::histogram::Histogram;
use super::links;
use super::row::{self, COLUMNS, JOINS, RowError};
use super::write::{NameIds, record_bytes, stored_bytes};
use crate::id::ActivityId;
use crate::record::{Ended, Started};
use crate::retention::{Holdings, Share, is_protected};
use crate::store::StoreError;
use crate::words::{RecordType, Status};

/// How many records are summed up in one go, which takes less than five milliseconds.
pub(super) const SLICE: usize = 8 * 1024;

/// Sums are kept a little longer than the longest period that can be asked for.
pub(super) const KEPT_HOURS: i64 = 31 * 24;

const MILLISECONDS_PER_HOUR: i64 = 3_600_000;

/// One record that has ended and is not in the sums yet.
#[derive(Debug)]
pub(super) struct Derived {
    sequence: u64,
    bytes: u64,
    protected: bool,
    /// Nothing for records that are no calls.
    sum: Option<(SumKey, Sum)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SumKey {
    hour: i64,
    server: i64,
    tool: i64,
    client: i64,
    intent_type: i64,
    status: i64,
}

impl SumKey {
    fn folded(self, folded: &Folded) -> Self {
        if !folded.contains(&self.hour) {
            return self;
        }
        Self {
            server: 0,
            tool: 0,
            client: 0,
            ..self
        }
    }
}

/// Hour, server and tool.
type HistogramKey = (i64, i64, i64);

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    records: u64,
    duration_ms: u64,
    request_bytes: u64,
    response_bytes: u64,
}

impl Derived {
    pub(super) fn new(
        sequence: u64,
        names: NameIds,
        started: &Started,
        ended: &Ended,
        bytes: u64,
    ) -> Self {
        let intent = started.metadata.intent.as_ref();
        let key = SumKey {
            hour: hour_of(started.id.timestamp()),
            server: names.server.unwrap_or(0),
            tool: names.tool.unwrap_or(0),
            client: names.client.unwrap_or(0),
            intent_type: intent
                .and_then(|intent| intent.operation_type)
                .map_or(0, Code::code),
            status: ended.status.code(),
        };
        let sum = Sum {
            records: 1,
            duration_ms: ended.duration_ms,
            request_bytes: started.request_bytes,
            response_bytes: ended.response_bytes,
        };
        let counted = is_counted(started.record_type);
        let sum = counted.then_some((key, sum));
        Self {
            sequence,
            bytes,
            protected: is_protected(started, ended),
            sum,
        }
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Adds it to what a log holds.
    pub(super) fn add_to(&self, held: &mut Holdings) {
        held.all.add(self.bytes);
        if self.protected {
            held.protected.add(self.bytes);
        }
    }
}

/// Whether records of this type are in the sums: calls and refusals, not changes.
pub(super) fn is_counted(record_type: RecordType) -> bool {
    matches!(
        record_type,
        RecordType::ToolCall | RecordType::PolicyDecision
    )
}

/// Whether something that ended like this took a time that is known.
pub(super) fn ran_to_an_end(status: Status) -> bool {
    match status {
        Status::Success | Status::Error | Status::Cancelled => true,
        Status::Pending | Status::Blocked | Status::Interrupted => false,
    }
}

pub(super) fn hour_of(timestamp: jiff::Timestamp) -> i64 {
    timestamp.as_millisecond().div_euclid(MILLISECONDS_PER_HOUR)
}

/// Writes the oldest slice of what is waiting. The caller has a transaction open and removes what
/// was written when it is committed.
pub(super) fn write_slice(
    connection: &Connection,
    waiting: &VecDeque<Derived>,
) -> rusqlite::Result<usize> {
    let slice = waiting.len().min(SLICE);
    let mut sums: HashMap<SumKey, Sum, RandomState> = HashMap::default();
    let mut histograms: HashMap<HistogramKey, Histogram, RandomState> = HashMap::default();
    let folded = folded_hours(connection)?;
    let (mut held, mut through) = (Holdings::default(), 0);
    for derived in waiting.iter().take(slice) {
        derived.add_to(&mut held);
        through = derived.sequence;
        if let Some((key, one)) = derived.sum {
            let key = key.folded(&folded);
            let sum = sums.entry(key).or_default();
            sum.records += one.records;
            sum.duration_ms += one.duration_ms;
            sum.request_bytes += one.request_bytes;
            sum.response_bytes += one.response_bytes;
            // What was blocked never ran and would only make tools look fast.
            if Status::from_code(key.status).is_some_and(ran_to_an_end) {
                let histogram = histograms.entry((key.hour, key.server, key.tool));
                histogram.or_default().count(one.duration_ms);
            }
        }
    }
    write_sums(connection, &sums)?;
    write_histograms(connection, histograms)?;
    let hours: BTreeSet<i64> = sums.keys().map(|key| key.hour).collect();
    for hour in hours {
        fold_if_needed(connection, hour)?;
    }
    pass(connection, through)?;
    change_holdings(connection, held.all, held.protected, 1)?;
    Ok(slice)
}

/// Ends up to the entry of this sequence are in the sums.
pub(super) fn pass(connection: &Connection, through: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE progress SET through_sequence = max(through_sequence, ?1)")?
        .execute([signed(through)])?;
    Ok(())
}

/// Adds to what the log holds, or takes away with a sign of -1.
pub(super) fn change_holdings(
    connection: &Connection,
    all: Share,
    protected: Share,
    sign: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE progress SET \
             records = max(records + ?1, 0), bytes = max(bytes + ?2, 0), \
             protected_records = max(protected_records + ?3, 0), \
             protected_bytes = max(protected_bytes + ?4, 0)",
        )?
        .execute(
            [all.records, all.bytes, protected.records, protected.bytes]
                .map(|number| sign * signed(number)),
        )?;
    Ok(())
}

/// Counts what the log holds from its records, all of which must be in the sums.
pub(super) fn count_holdings(connection: &Connection) -> Result<(), StoreError> {
    let mut held = Holdings::default();
    let sql = format!("SELECT {COLUMNS} FROM records {JOINS} WHERE records.status <> ?1");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([Status::Pending.code()])?;
    while let Some(found) = rows.next()? {
        let Some(halves) = row::readable(row::read(found, 0))? else {
            continue;
        };
        let (started, ended) = (&halves.started, halves.ended.as_ref());
        let payloads = stored_bytes(connection, started.id.order())?;
        let bytes = record_bytes(started, ended, payloads);
        held.all.add(bytes);
        if ended.is_some_and(|ended| is_protected(started, ended)) {
            held.protected.add(bytes);
        }
    }
    connection.execute(
        "UPDATE progress SET records = ?1, bytes = ?2, protected_records = ?3, \
         protected_bytes = ?4, is_counted = 1",
        [
            held.all.records,
            held.all.bytes,
            held.protected.records,
            held.protected.bytes,
        ]
        .map(signed),
    )?;
    Ok(())
}

fn write_sums(
    connection: &Connection,
    sums: &HashMap<SumKey, Sum, RandomState>,
) -> rusqlite::Result<()> {
    let mut add = connection.prepare_cached(
        "INSERT INTO hourly VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
         ON CONFLICT DO UPDATE SET records = records + excluded.records, \
         duration_ms = duration_ms + excluded.duration_ms, \
         request_bytes = request_bytes + excluded.request_bytes, \
         response_bytes = response_bytes + excluded.response_bytes",
    )?;
    for (key, sum) in sums {
        add.execute(params![
            key.hour,
            key.server,
            key.tool,
            key.client,
            key.intent_type,
            key.status,
            signed(sum.records),
            signed(sum.duration_ms),
            signed(sum.request_bytes),
            signed(sum.response_bytes),
        ])?;
    }
    Ok(())
}

fn write_histograms(
    connection: &Connection,
    histograms: HashMap<HistogramKey, Histogram, RandomState>,
) -> rusqlite::Result<()> {
    let mut get = connection.prepare_cached(
        "SELECT buckets FROM hourly_histograms WHERE hour = ?1 AND server = ?2 AND tool = ?3",
    )?;
    let mut put = connection
        .prepare_cached("INSERT OR REPLACE INTO hourly_histograms VALUES (?1, ?2, ?3, ?4)")?;
    for ((hour, server, tool), mut histogram) in histograms {
        let before: Option<String> = get
            .query_row([hour, server, tool], |row| row.get(0))
            .optional()?;
        histogram.add_text(&before.unwrap_or_default());
        put.execute(params![hour, server, tool, histogram.to_string()])?;
    }
    Ok(())
}

/// Drops sums that no period reaches any more.
pub(super) fn forget_old_sums(
    connection: &Connection,
    now: jiff::Timestamp,
) -> rusqlite::Result<()> {
    let oldest = hour_of(now) - KEPT_HOURS;
    for table in ["hourly", "hourly_histograms", "folded_hours"] {
        connection.execute(&format!("DELETE FROM {table} WHERE hour < ?1"), [oldest])?;
    }
    Ok(())
}

/// What the sums do not have yet, a slice at a time.
#[derive(Debug)]
pub(super) struct Missing {
    pub(super) derived: VecDeque<Derived>,
    /// The last entry that was looked at; nothing if there was none.
    pub(super) through: Option<u64>,
}

/// Reads what the sums do not have yet from the records. A record that is gone or cannot be read is
/// left to `verify`.
pub(super) fn read_missing(connection: &Connection) -> Result<Missing, StoreError> {
    let through = connection.query_row("SELECT through_sequence FROM progress", [], |row| {
        row.get(0)
    })?;
    let mut statement = connection.prepare_cached(&format!(
        "SELECT records.server, records.tool, records.client, {COLUMNS} \
         FROM records {JOINS} WHERE records.id = ?1"
    ))?;
    let mut missing = Missing {
        derived: VecDeque::new(),
        through: None,
    };
    for (sequence, order) in links::ends_after(connection, unsigned(through), SLICE)? {
        missing.through = Some(sequence);
        let mut rows = statement.query([signed(order)])?;
        let Some(found) = rows.next()? else { continue };
        let Some((names, halves)) = row::readable(read_named(found))? else {
            continue;
        };
        let Some(ended) = &halves.ended else { continue };
        let payloads = stored_bytes(connection, order)?;
        let bytes = record_bytes(&halves.started, Some(ended), payloads);
        let derived = Derived::new(sequence, names, &halves.started, ended, bytes);
        missing.derived.push_back(derived);
    }
    Ok(missing)
}

fn read_named(found: &rusqlite::Row<'_>) -> Result<(NameIds, row::Halves), RowError> {
    let names = NameIds {
        server: found.get(0)?,
        tool: found.get(1)?,
        client: found.get(2)?,
    };
    Ok((names, row::read(found, 3)?))
}

/// Whether what the log holds was counted as this version does it.
pub(super) fn is_holdings_counted(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT is_counted FROM progress", [], |row| row.get(0))
}

/// What the log holds, as far as it is in the sums.
pub(super) fn holdings(connection: &Connection) -> rusqlite::Result<Holdings> {
    connection
        .prepare_cached(
            "SELECT records, bytes, protected_records, protected_bytes, \
             (SELECT id FROM records WHERE status <> 1 ORDER BY id LIMIT 1) FROM progress",
        )?
        .query_row([], |row| {
            let number = |column| row.get(column).map(unsigned);
            let share = |column| {
                Ok::<_, rusqlite::Error>(Share {
                    records: number(column)?,
                    bytes: number(column + 1)?,
                })
            };
            let oldest = row.get::<_, Option<i64>>(4)?;
            Ok(Holdings {
                all: share(0)?,
                protected: share(2)?,
                oldest: oldest.map(|order| ActivityId::from_halves(unsigned(order), 0).timestamp()),
            })
        })
}
