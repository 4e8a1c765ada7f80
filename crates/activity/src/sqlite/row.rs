//! Rows of the table of records, read back into the two halves that were written.

use std::sync::{Arc, LazyLock};

use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};

use super::body::{Body, BodyError};
use super::codes::{Code, signed, unsigned};
use crate::chain::Hash;
use crate::facts::Facts;
use crate::id::ActivityId;
use crate::payload::{Payload, SealedPayload};
use crate::record::{Ended, Metadata, Record, RecordedIntent, Started};
use crate::store::StoreError;
use crate::words::Status;

/// Everything [`read`] needs, in its order.
pub(super) const COLUMNS: &str = "records.id, records.id_tail, records.type, records.source, \
     records.status, server_names.text, tool_names.text, client_names.text, records.intent, \
     records.intent_type, records.sensitivity, records.reason, records.variant, records.tier, \
     records.provenance, records.warnings, records.session_id, records.request_id, \
     records.request_bytes, records.arguments_digest, records.arguments_form, \
     records.error_code, records.error_message, records.duration_ms, records.response_bytes, \
     records.response_digest, records.response_form, records.facts";

pub(super) const JOINS: &str = "LEFT JOIN names AS server_names ON server_names.id = records.server \
     LEFT JOIN names AS tool_names ON tool_names.id = records.tool \
     LEFT JOIN names AS client_names ON client_names.id = records.client";

/// Bits of the `form` columns.
const KEPT: i64 = 1;
const TRUNCATED: i64 = 2;

/// Which payload of a record.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Arguments,
    Response,
}

#[derive(Debug)]
pub(super) struct Halves {
    pub(super) started: Started,
    pub(super) ended: Option<Ended>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error("column {column} of a record holds something impossible")]
    Column { column: usize },
    #[error(transparent)]
    Body(#[from] BodyError),
}

impl From<RowError> for StoreError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Database(error) => error.into(),
            other => Self::Corrupt(Arc::new(other)),
        }
    }
}

/// What was read, or nothing if the row itself cannot be understood. That is for `verify` to name;
/// whatever else goes on must not stop at it.
pub(super) fn readable<T>(result: Result<T, RowError>) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_of_the_row() => {
            tracing::warn!(%error, "a record of the activity log cannot be read; `activity verify` names it");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

impl RowError {
    /// Whether only this row is damaged. What SQLite reports is damage to the file.
    fn is_of_the_row(&self) -> bool {
        match self {
            Self::Database(error) => error.sqlite_error_code().is_none(),
            Self::Column { .. } | Self::Body(_) => true,
        }
    }
}

pub(super) fn form(payload: &SealedPayload) -> i64 {
    (if payload.kept { KEPT } else { 0 }) | (if payload.truncated { TRUNCATED } else { 0 })
}

/// Reads a row without its payloads' texts. `from` is where [`COLUMNS`] begin.
pub(super) fn read(row: &Row<'_>, from: usize) -> Result<Halves, RowError> {
    let columns = Columns { row, from };
    let started = Started {
        id: ActivityId::from_halves(columns.number(0)?, columns.number(1)?),
        record_type: columns.word(2)?,
        source: columns.word(3)?,
        server_name: columns.get(5)?,
        tool_name: columns.get(6)?,
        client_name: columns.get(7)?,
        metadata: columns.metadata()?,
        session_id: columns.get(16)?,
        request_id: columns.get(17)?,
        request_bytes: columns.number(18)?,
        arguments: columns.payload(19)?,
    };
    let status: Status = columns.word(4)?;
    let ended = if status == Status::Pending {
        // An open record has nothing of its second half, or somebody else wrote it.
        (21..=26).try_for_each(|column| columns.empty(column))?;
        None
    } else {
        Some(Ended {
            status,
            error_code: columns.get(21)?,
            error_message: columns.get(22)?,
            duration_ms: columns.number(23)?,
            response_bytes: columns.number(24)?,
            response: columns.payload(25)?,
        })
    };
    Ok(Halves { started, ended })
}

/// The record with this order, without its payloads' texts.
pub(super) fn find(connection: &Connection, order: u64) -> Result<Option<Halves>, RowError> {
    static SELECT: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {COLUMNS} FROM records {JOINS} WHERE records.id = ?1"));
    let mut statement = connection.prepare_cached(&SELECT)?;
    let mut rows = statement.query([signed(order)])?;
    rows.next()?.map(|found| read(found, 0)).transpose()
}

/// The text of a payload, if the store has it.
pub(super) fn read_body(
    connection: &Connection,
    part: Part,
    order: u64,
) -> Result<Option<Payload>, RowError> {
    let sql = match part {
        Part::Arguments => "SELECT arguments, arguments_unpacked FROM payloads WHERE record = ?1",
        Part::Response => "SELECT response, response_unpacked FROM payloads WHERE record = ?1",
    };
    let mut statement = connection.prepare_cached(sql)?;
    let body = statement
        .query_row([signed(order)], |row| Ok(decode(row, 0)))
        .optional()?;
    body.transpose().map(Option::flatten)
}

/// Puts the texts of its payloads into a record.
pub(super) fn fill_bodies(connection: &Connection, record: &mut Record) -> Result<(), RowError> {
    let mut statement = connection.prepare_cached(
        "SELECT arguments, arguments_unpacked, response, response_unpacked FROM payloads \
         WHERE record = ?1",
    )?;
    let mut rows = statement.query([signed(record.id.order())])?;
    if let Some(row) = rows.next()? {
        record.arguments = decode(row, 0)?;
        record.response = decode(row, 2)?;
    }
    Ok(())
}

/// A payload and, in the column after it, its size if it was packed.
fn decode(row: &Row<'_>, column: usize) -> Result<Option<Payload>, RowError> {
    let bytes = match row.get_ref(column)? {
        ValueRef::Null => return Ok(None),
        value => value.as_blob().map_err(|_| RowError::Column { column })?,
    };
    Ok(Some(Body::decode(bytes, row.get(column + 1)?)?))
}

struct Columns<'a> {
    row: &'a Row<'a>,
    from: usize,
}

impl Columns<'_> {
    fn get<T: FromSql>(&self, column: usize) -> Result<Option<T>, RowError> {
        Ok(self.row.get(self.from + column)?)
    }

    fn empty(&self, column: usize) -> Result<(), RowError> {
        match self.row.get_ref(self.from + column)? {
            ValueRef::Null => Ok(()),
            _ => Err(RowError::Column { column }),
        }
    }

    fn number(&self, column: usize) -> Result<u64, RowError> {
        self.get(column)?
            .map(unsigned)
            .ok_or(RowError::Column { column })
    }

    fn word<T: Code>(&self, column: usize) -> Result<T, RowError> {
        self.optional_word(column)?
            .ok_or(RowError::Column { column })
    }

    fn optional_word<T: Code>(&self, column: usize) -> Result<Option<T>, RowError> {
        let Some(code) = self.get(column)? else {
            return Ok(None);
        };
        T::from_code(code)
            .map(Some)
            .ok_or(RowError::Column { column })
    }

    fn flag(&self, column: usize) -> Result<bool, RowError> {
        match self.number(column)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(RowError::Column { column }),
        }
    }

    fn metadata(&self) -> Result<Metadata, RowError> {
        let intent = RecordedIntent {
            operation_type: self.optional_word(9)?,
            data_sensitivity: self.optional_word(10)?,
            reason: self.get(11)?,
        };
        let intent = match (self.flag(8)?, intent) {
            (true, intent) => Some(intent),
            (false, intent) if intent == RecordedIntent::default() => None,
            (false, _) => return Err(RowError::Column { column: 8 }),
        };
        let warnings = match self.get::<String>(15)? {
            Some(text) => {
                serde_json::from_str(&text).map_err(|_| RowError::Column { column: 15 })?
            }
            None => Vec::new(),
        };
        Ok(Metadata {
            intent,
            tool_variant: self.optional_word(12)?,
            effective_tier: self.optional_word(13)?,
            provenance: self.optional_word(14)?,
            warnings,
            facts: self.facts(27)?,
        })
    }

    fn facts(&self, column: usize) -> Result<Option<Facts>, RowError> {
        let Some(number) = self.get::<i64>(column)? else {
            return Ok(None);
        };
        let facts = Facts::unpack(unsigned(number));
        facts.map(Some).ok_or(RowError::Column { column })
    }

    /// A digest and, in the column after it, its form.
    fn payload(&self, column: usize) -> Result<Option<SealedPayload>, RowError> {
        let Some(digest) = self.get::<[u8; 32]>(column)? else {
            return self.empty(column + 1).map(|()| None);
        };
        let form: i64 = self
            .get(column + 1)?
            .ok_or(RowError::Column { column: column + 1 })?;
        if form & !(KEPT | TRUNCATED) != 0 {
            return Err(RowError::Column { column: column + 1 });
        }
        Ok(Some(SealedPayload {
            digest: Hash(digest),
            truncated: form & TRUNCATED != 0,
            text: None,
            kept: form & KEPT != 0,
        }))
    }
}
