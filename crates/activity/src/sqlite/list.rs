//! Lists and single records.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};

use super::codes::{signed, unsigned};
use super::index::{Wanted, indexed_sequence, look_up};
use super::links;
use super::row::{self, COLUMNS, JOINS};
use crate::filter::Filter;
use crate::id::ActivityId;
use crate::page::{Begin, Cursor, ListRequest, Page};
use crate::record::Record;
use crate::store::StoreError;

/// Counting stops here, so that a list of millions is still answered at once.
const MOST_COUNTED: u64 = 50_000;

/// Records that have not ended.
const OPEN: &str = "records INDEXED BY open_records";
const IS_OPEN: &str = "records.status = 1";

/// Which part of the list is wanted, and how many records of the whole are to be counted.
#[derive(Debug, Clone, Copy)]
struct Part {
    after: Option<Cursor>,
    offset: u64,
    limit: u32,
    count: Option<u64>,
}

struct Total {
    records: u64,
    stopped: bool,
}

pub(super) fn page(connection: &mut Connection, request: &ListRequest) -> Result<Page, StoreError> {
    // One transaction, so that the total and the page speak of the same moment.
    let transaction = connection.transaction()?;
    let limit = request.page.limit();
    let (after, offset) = match request.page.begin {
        Begin::Offset(offset) => (None, offset),
        Begin::After(cursor) => (Some(cursor), 0),
    };
    // One more than asked for tells whether there is a next page.
    let part = Part {
        after,
        offset,
        limit: limit + 1,
        count: Some(MOST_COUNTED),
    };
    let (total, mut activities) = find(&transaction, &request.filter, part)?;
    let more = activities.len() > limit as usize;
    activities.truncate(limit as usize);
    if request.page.include_bodies {
        for record in &mut activities {
            row::readable(row::fill_bodies(&transaction, record))?;
        }
    }
    let next_cursor = activities
        .last()
        .filter(|_| more)
        .map(|last| Cursor::after(last.id));
    Ok(Page {
        activities,
        total: total.records,
        total_is_lower_bound: total.stopped,
        limit,
        offset: request.page.offset(),
        next_cursor,
    })
}

pub(super) fn scan(
    connection: &mut Connection,
    filter: &Filter,
    after: Option<Cursor>,
    limit: u32,
    include_bodies: bool,
) -> Result<Vec<Record>, StoreError> {
    let transaction = connection.transaction()?;
    let part = Part {
        after,
        offset: 0,
        limit,
        count: None,
    };
    let (_, mut records) = find(&transaction, filter, part)?;
    if include_bodies {
        for record in &mut records {
            row::readable(row::fill_bodies(&transaction, record))?;
        }
    }
    Ok(records)
}

pub(super) fn get(
    connection: &mut Connection,
    id: ActivityId,
) -> Result<Option<Record>, StoreError> {
    let transaction = connection.transaction()?;
    let Some(mut record) = by_key(&transaction, id.order())?.filter(|record| record.id == id)
    else {
        return Ok(None);
    };
    row::readable(row::fill_bodies(&transaction, &mut record))?;
    Ok(Some(record))
}

/// A part of the list, and how long the whole is as far as that is to be counted.
fn find(
    connection: &Connection,
    filter: &Filter,
    part: Part,
) -> Result<(Total, Vec<Record>), StoreError> {
    if filter.is_only_a_time() {
        let total = count_times(connection, filter, part.count)?;
        return Ok((total, in_order_of_time(connection, filter, part)?));
    }
    let mut outside = outside_blocks(connection, filter)?;
    let mut wanted = Wanted {
        before: part.after.map(Cursor::order),
        skip: part.offset,
        take: part.limit as usize,
        count: part.count,
    };
    let mut records = Vec::with_capacity(wanted.take);
    let mut counted = None;
    loop {
        let found = look_up(connection, filter, outside.keys().copied(), wanted)?;
        counted.get_or_insert(found.counted);
        for order in &found.orders {
            let record = match outside.remove(order) {
                Some(record) => Some(record),
                None => by_key(connection, *order)?,
            };
            // The index may know of a record that was removed or damaged outside the log.
            records.extend(record);
        }
        // Only if such a record left a place free is there more to look for.
        let missing = part.limit as usize - records.len();
        let (Some(last), true) = (found.orders.last(), found.orders.len() == wanted.take) else {
            break;
        };
        if missing == 0 {
            break;
        }
        wanted = Wanted {
            before: Some(*last),
            skip: 0,
            take: missing,
            count: None,
        };
    }
    Ok((Total::of(counted.unwrap_or(0), part.count), records))
}

/// Every record of a time, which needs no index: the key is in order of time.
fn in_order_of_time(
    connection: &Connection,
    filter: &Filter,
    part: Part,
) -> Result<Vec<Record>, StoreError> {
    let range = filter.orders();
    let last = match part.after {
        Some(cursor) => cursor.order().saturating_sub(1).min(*range.end()),
        None => *range.end(),
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM records {JOINS} WHERE records.id BETWEEN ?1 AND ?2 \
         ORDER BY records.id DESC LIMIT -1 OFFSET ?3"
    ))?;
    let mut rows = statement.query(params![
        signed(*range.start()),
        signed(last),
        signed(part.offset)
    ])?;
    let mut records = Vec::new();
    // One that cannot be read leaves its place to the next.
    while records.len() < part.limit as usize
        && let Some(row) = rows.next()?
    {
        records.extend(read(row)?);
    }
    Ok(records)
}

fn count_times(
    connection: &Connection,
    filter: &Filter,
    most: Option<u64>,
) -> Result<Total, StoreError> {
    if most.is_none() {
        return Ok(Total::of(0, most));
    }
    if *filter == Filter::default() {
        return count_all(connection);
    }
    let outside = outside_blocks(connection, filter)?;
    let wanted = Wanted {
        before: None,
        skip: 0,
        take: 0,
        count: most,
    };
    let found = look_up(connection, filter, outside.keys().copied(), wanted)?;
    Ok(Total::of(found.counted, most))
}

/// How many records there are: those that were summed up, those that ended since, and those that
/// are open. Counting a million rows would take longer than the rest of a list.
fn count_all(connection: &Connection) -> Result<Total, StoreError> {
    let sql = format!(
        "SELECT records, through_sequence, (SELECT count(*) FROM {OPEN} WHERE {IS_OPEN}) \
         FROM progress"
    );
    let (summed, through, open) = connection.prepare_cached(&sql)?.query_row([], |row| {
        let number = |column| row.get(column).map(unsigned);
        Ok((number(0)?, number(1)?, number(2)?))
    })?;
    let since = links::ends_after(connection, through, usize::MAX)?.len() as u64;
    Ok(Total {
        records: summed + since + open,
        stopped: false,
    })
}

/// The records that pass the filter and are in no block: they are looked at one by one.
fn outside_blocks(
    connection: &Connection,
    filter: &Filter,
) -> Result<BTreeMap<u64, Record>, StoreError> {
    let mut outside = BTreeMap::new();
    let mut look_at = |mut record: Record| {
        if !filter.matches_fields(&record) {
            return Ok(());
        }
        let order = record.id.order();
        if let Some(q) = &filter.q {
            let arguments = row::read_body(connection, row::Part::Arguments, order);
            record.arguments = row::readable(arguments)?.flatten();
            if !q.matches(&record) {
                return Ok(());
            }
            record.arguments = None;
        }
        outside.insert(order, record);
        Ok::<_, StoreError>(())
    };
    let indexed = indexed_sequence(connection)?;
    for (_, order) in links::ends_after(connection, indexed, usize::MAX)? {
        if let Some(record) = by_key(connection, order)? {
            look_at(record)?;
        }
    }
    let sql = format!("SELECT {COLUMNS} FROM {OPEN} {JOINS} WHERE {IS_OPEN}");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(record) = read(row)? {
            look_at(record)?;
        }
    }
    Ok(outside)
}

fn by_key(connection: &Connection, order: u64) -> Result<Option<Record>, StoreError> {
    let halves = row::readable(row::find(connection, order))?.flatten();
    Ok(halves.map(|halves| Record::from_halves(&halves.started, halves.ended.as_ref())))
}

/// The record of a row; nothing if it cannot be read.
fn read(row: &Row<'_>) -> Result<Option<Record>, StoreError> {
    let halves = row::readable(row::read(row, 0))?;
    Ok(halves.map(|halves| Record::from_halves(&halves.started, halves.ended.as_ref())))
}

impl Total {
    fn of(counted: u64, most: Option<u64>) -> Self {
        let most = most.unwrap_or(u64::MAX);
        Self {
            records: counted.min(most),
            stopped: counted > most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes::Code;
    use crate::words::Status;

    #[test]
    fn the_code_that_is_written_out_is_the_code() {
        assert_eq!(Status::Pending.code(), 1);
    }
}
