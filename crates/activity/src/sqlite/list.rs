//! Lists and single records.

use std::fmt::Write as _;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::codes::{Code, signed, unsigned};
use super::row::{self, COLUMNS, JOINS};
use crate::filter::Filter;
use crate::id::ActivityId;
use crate::page::{Begin, Cursor, ListRequest, Page};
use crate::record::Record;
use crate::search::SearchText;
use crate::store::StoreError;

/// Counting stops here, so that a list of millions is still answered at once.
const MOST_COUNTED: u64 = 50_000;

/// Counting is dearer when rows have to be looked at, not only an index.
const MOST_COUNTED_SLOWLY: u64 = 10_000;

/// The index of words, and its key.
const SEARCH: &str = "search";
const SEARCH_KEY: &str = "search.rowid";

/// How many records there are: those that were summed up, those that ended since, and those that
/// are open. Counting a million rows would take longer than the rest of a list.
const ALL: &str = "SELECT (SELECT records FROM progress) \
     + (SELECT count(*) FROM records WHERE status = 1) \
     + (SELECT count(*) FROM chain WHERE kind IN (2, 3) \
        AND sequence > (SELECT through_sequence FROM progress))";

/// Every record, from an index whose entries are a tenth of the size of a row. All its values are
/// listed, so that a range of time is looked up within each of them.
const NARROW: &str = "records INDEXED BY records_by_source";
const NARROW_CONDITION: &str = " AND records.source IN (1, 2, 3)";

/// The `WHERE` of a list, put together from fixed text and bound values.
struct Conditions {
    source: &'static str,
    key: &'static str,
    sql: String,
    values: Vec<Value>,
    count: usize,
    /// How many of them are about columns of the record.
    columns: usize,
}

pub(super) fn page(connection: &mut Connection, request: &ListRequest) -> Result<Page, StoreError> {
    // One transaction, so that the total and the page speak of the same moment.
    let transaction = connection.transaction()?;
    let conditions = Conditions::of(&request.filter);
    let total = conditions.count(&transaction)?;
    let limit = request.page.limit();
    let (after, offset) = match request.page.begin {
        Begin::Offset(offset) => (None, offset),
        Begin::After(cursor) => (Some(cursor), 0),
    };
    // One more than asked for tells whether there is a next page.
    let mut activities = conditions.select(&transaction, after, limit + 1, offset)?;
    let more = activities.len() > limit as usize;
    activities.truncate(limit as usize);
    if request.page.include_bodies {
        for record in &mut activities {
            row::fill_bodies(&transaction, record)?;
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
    let mut records = Conditions::of(filter).select(&transaction, after, limit, 0)?;
    if include_bodies {
        for record in &mut records {
            row::fill_bodies(&transaction, record)?;
        }
    }
    Ok(records)
}

pub(super) fn get(
    connection: &mut Connection,
    id: ActivityId,
) -> Result<Option<Record>, StoreError> {
    let transaction = connection.transaction()?;
    let sql = format!(
        "SELECT {COLUMNS} FROM records {JOINS} WHERE records.id = ?1 AND records.id_tail = ?2"
    );
    let halves = transaction
        .prepare_cached(&sql)?
        .query_row([signed(id.order()), signed(id.tail())], |found| {
            Ok(row::read(found, 0))
        })
        .optional()?
        .transpose()?;
    let Some(halves) = halves else {
        return Ok(None);
    };
    let mut record = Record::from_halves(&halves.started, halves.ended.as_ref());
    row::fill_bodies(&transaction, &mut record)?;
    Ok(Some(record))
}

struct Total {
    records: u64,
    stopped: bool,
}

impl Conditions {
    fn of(filter: &Filter) -> Self {
        let mut conditions = Self {
            source: "records",
            key: "records.id",
            sql: "1".to_owned(),
            values: Vec::new(),
            count: 0,
            columns: 0,
        };
        let code = |word: i64| Value::Integer(word);
        let name = "(SELECT id FROM names WHERE text = ?)";
        conditions.equal(
            "type",
            "?",
            filter.record_type.map(|word| code(word.code())),
        );
        conditions.equal("source", "?", filter.source.map(|word| code(word.code())));
        conditions.equal("status", "?", filter.status.map(|word| code(word.code())));
        conditions.equal(
            "intent_type",
            "?",
            filter.intent_type.map(|word| code(word.code())),
        );
        conditions.equal(
            "sensitivity",
            "?",
            filter.sensitivity.map(|word| code(word.code())),
        );
        conditions.equal("server", name, filter.server.clone().map(Value::Text));
        conditions.equal("tool", name, filter.tool.clone().map(Value::Text));
        conditions.equal("client", name, filter.client.clone().map(Value::Text));
        conditions.equal(
            "session_id",
            "?",
            filter.session_id.clone().map(Value::Text),
        );
        conditions.equal(
            "request_id",
            "?",
            filter.request_id.clone().map(Value::Text),
        );
        if let Some(q) = &filter.q {
            conditions.search(q);
        }
        if let Some(start) = filter.start_time {
            conditions.bound(">=", ActivityId::first_order_at(start));
        }
        if let Some(end) = filter.end_time {
            conditions.bound("<=", ActivityId::last_order_at(end));
        }
        conditions
    }

    fn equal(&mut self, column: &'static str, operand: &str, value: Option<Value>) {
        let Some(value) = value else { return };
        let _ = write!(self.sql, " AND records.{column} = {operand}");
        self.values.push(value);
        self.columns += 1;
        self.count += 1;
    }

    /// The index of words leads: it gives its matches newest first, and records follow by key.
    fn search(&mut self, q: &SearchText) {
        self.source = "search CROSS JOIN records ON records.id = search.rowid";
        self.key = SEARCH_KEY;
        self.sql.push_str(" AND search MATCH ?");
        // The words hold letters and digits only, so quoting them is all there is to it.
        let mut query = String::new();
        for word in q.words() {
            let _ = write!(
                query,
                "\"{}\"{} ",
                word.text,
                if word.prefix { "*" } else { "" }
            );
        }
        self.values.push(Value::Text(query));
        self.count += 1;
    }

    fn bound(&mut self, comparison: &str, order: u64) {
        let _ = write!(self.sql, " AND {} {comparison} ?", self.key);
        self.values.push(Value::Integer(signed(order)));
        self.count += 1;
    }

    fn count(&self, connection: &Connection) -> Result<Total, StoreError> {
        if self.count == 0 {
            let records = connection
                .prepare_cached(ALL)?
                .query_row([], |row| row.get(0))?;
            return Ok(Total {
                records: unsigned(records),
                stopped: false,
            });
        }
        // One condition is answered from one index alone, more have to look at the rows.
        let (source, also, most) = match (self.key == SEARCH_KEY, self.columns) {
            (true, 0) => (SEARCH, "", MOST_COUNTED_SLOWLY),
            (false, 0) => (NARROW, NARROW_CONDITION, MOST_COUNTED),
            (false, 1) => (self.source, "", MOST_COUNTED),
            _ => (self.source, "", MOST_COUNTED_SLOWLY),
        };
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {}{also} LIMIT {})",
            self.sql,
            most + 1
        );
        let found = connection
            .prepare_cached(&sql)?
            .query_row(params_from_iter(&self.values), |row| row.get(0))?;
        let found = unsigned(found);
        Ok(Total {
            records: found.min(most),
            stopped: found > most,
        })
    }

    fn select(
        &self,
        connection: &Connection,
        after: Option<Cursor>,
        limit: u32,
        offset: u64,
    ) -> Result<Vec<Record>, StoreError> {
        let mut values = self.values.clone();
        let mut sql = format!(
            "SELECT {COLUMNS} FROM {} {JOINS} WHERE {}",
            self.source, self.sql
        );
        if let Some(cursor) = after {
            let _ = write!(sql, " AND {} < ?", self.key);
            values.push(Value::Integer(signed(cursor.order())));
        }
        let _ = write!(sql, " ORDER BY {} DESC LIMIT ? OFFSET ?", self.key);
        values.push(Value::Integer(limit.into()));
        values.push(Value::Integer(signed(offset)));
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut records = Vec::new();
        while let Some(found) = rows.next()? {
            let halves = row::read(found, 0)?;
            records.push(Record::from_halves(&halves.started, halves.ended.as_ref()));
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::EntryKind;
    use crate::words::{Source, Status, Word};

    #[test]
    fn codes_that_are_written_out_are_the_codes() {
        assert_eq!(Status::Pending.code(), 1);
        assert_eq!([EntryKind::End.code(), EntryKind::Whole.code()], [2, 3]);
    }

    #[test]
    fn the_narrow_index_is_asked_for_every_source() {
        let codes: Vec<String> = Source::ALL
            .iter()
            .map(|word| word.code().to_string())
            .collect();
        assert_eq!(
            NARROW_CONDITION,
            format!(" AND records.source IN ({})", codes.join(", "))
        );
    }
}
