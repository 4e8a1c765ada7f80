//! The statements that put staged entries into the tables.

use rusqlite::{Connection, OptionalExtension, params};

use super::batch::{Batch, StagedEnd, StagedRecord};
use super::body::Body;
use super::codes::{Code, signed, unsigned};
use super::derived::Derived;
use super::links;
use super::names::Names;
use super::row::form;
use super::rows::{Rows, Values};
use crate::payload::SealedPayload;
use crate::record::{Ended, Started};
use crate::words::Status;

/// A record's fixed cost in bytes: its row, its place in the index and its entries in the chain.
/// Measured; it only has to be near enough for retention by size.
const ROW_BYTES: u64 = 400;

/// Writes everything that was staged, and tells what has to be derived from it.
pub(super) fn write(
    connection: &Connection,
    names: &mut Names,
    batch: &Batch<'_>,
) -> rusqlite::Result<Vec<Derived>> {
    let mut derived = Vec::with_capacity(batch.records.len() + batch.ends.len());
    // Callers overtake each other between being numbered and being queued; rows in order of their
    // key are appended, others have to be put in between.
    let mut staged: Vec<_> = batch.records.iter().collect();
    staged.sort_unstable_by_key(|record| record.started.id.order());
    let (mut rows, mut bodies) = (
        Vec::with_capacity(staged.len()),
        Vec::with_capacity(staged.len()),
    );
    for record in staged {
        let names = NameIds::intern(connection, names, record.started)?;
        let body = Bodies::of(record);
        if let Some((sequence, ended)) = record.ended {
            let payloads = body.as_ref().map_or(0, Bodies::stored_bytes);
            let bytes = record_bytes(record.started, Some(ended), payloads);
            derived.push(Derived::new(sequence, names, record.started, ended, bytes));
        }
        rows.push((names, record));
        bodies.extend(body);
    }
    Rows::prepare(connection, "records", 28)?.insert(&rows, |values, (names, record)| {
        give_record(values, *names, record)
    })?;
    Rows::prepare(connection, INTO_PAYLOADS, 5)?
        .insert(&bodies, |values, bodies| bodies.give(values))?;
    for StagedEnd {
        sequence,
        started,
        ended,
    } in &batch.ends
    {
        let ids = NameIds::intern(connection, names, started)?;
        update_record(connection, started, ended)?;
        add_response(connection, started, ended)?;
        let payloads = stored_bytes(connection, started.id.order())?;
        let bytes = record_bytes(started, Some(ended), payloads);
        derived.push(Derived::new(*sequence, ids, started, ended, bytes));
    }
    links::append(connection, &batch.links)?;
    derived.sort_by_key(Derived::sequence);
    Ok(derived)
}

/// What a record counts for in retention by size.
pub(super) fn record_bytes(started: &Started, ended: Option<&Ended>, payloads: u64) -> u64 {
    let texts = started.text_bytes() + ended.map_or(0, Ended::text_bytes);
    ROW_BYTES + payloads + texts as u64
}

/// What the stored payloads of a record take up.
pub(super) fn stored_bytes(connection: &Connection, order: u64) -> rusqlite::Result<u64> {
    let length: Option<i64> = connection
        .prepare_cached(
            "SELECT coalesce(length(arguments), 0) + coalesce(length(response), 0) \
             FROM payloads WHERE record = ?1",
        )?
        .query_row([signed(order)], |row| row.get(0))
        .optional()?;
    Ok(length.map_or(0, unsigned))
}

/// The numbers of a record's names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameIds {
    pub(super) server: Option<i64>,
    pub(super) tool: Option<i64>,
    pub(super) client: Option<i64>,
}

impl NameIds {
    fn intern(
        connection: &Connection,
        names: &mut Names,
        started: &Started,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            server: names.intern(connection, started.server_name.as_ref())?,
            tool: names.intern(connection, started.tool_name.as_ref())?,
            client: names.intern(connection, started.client_name.as_ref())?,
        })
    }
}

fn give_record(
    values: &mut Values<'_, '_>,
    names: NameIds,
    record: &StagedRecord<'_>,
) -> rusqlite::Result<()> {
    let started = record.started;
    let ended = record.ended.map(|(_, ended)| ended);
    let metadata = &started.metadata;
    let intent = metadata.intent.as_ref();
    let response = ended.and_then(|ended| ended.response.as_ref());
    let warnings = (!metadata.warnings.is_empty())
        .then(|| serde_json::Value::from(metadata.warnings.clone()).to_string());
    values.take(signed(started.id.order()))?;
    values.take(signed(started.id.tail()))?;
    values.take(started.record_type.code())?;
    values.take(started.source.code())?;
    values.take(ended.map_or(Status::Pending, |ended| ended.status).code())?;
    values.take(names.server)?;
    values.take(names.tool)?;
    values.take(names.client)?;
    values.take(intent.is_some())?;
    values.take(
        intent
            .and_then(|intent| intent.operation_type)
            .map(Code::code),
    )?;
    values.take(
        intent
            .and_then(|intent| intent.data_sensitivity)
            .map(Code::code),
    )?;
    values.take(intent.and_then(|intent| intent.reason.as_deref()))?;
    values.take(metadata.tool_variant.map(Code::code))?;
    values.take(metadata.effective_tier.map(Code::code))?;
    values.take(metadata.provenance.map(Code::code))?;
    values.take(warnings)?;
    values.take(started.session_id.as_deref())?;
    values.take(started.request_id.as_deref())?;
    values.take(signed(started.request_bytes))?;
    values.take(
        started
            .arguments
            .as_ref()
            .map(|arguments| arguments.digest.0),
    )?;
    values.take(started.arguments.as_ref().map(form))?;
    values.take(ended.and_then(|ended| ended.error_code.as_deref()))?;
    values.take(ended.and_then(|ended| ended.error_message.as_deref()))?;
    values.take(ended.map(|ended| signed(ended.duration_ms)))?;
    values.take(ended.map(|ended| signed(ended.response_bytes)))?;
    values.take(response.map(|response| response.digest.0))?;
    values.take(response.map(form))?;
    values.take(metadata.facts.map(|facts| signed(facts.pack())))
}

const INTO_PAYLOADS: &str =
    "payloads (record, arguments, arguments_unpacked, response, response_unpacked)";

/// What is kept of a record's payloads.
struct Bodies<'a> {
    order: u64,
    arguments: Option<Body<'a>>,
    response: Option<Body<'a>>,
}

impl<'a> Bodies<'a> {
    /// Nothing if there is nothing to keep.
    fn of(record: &StagedRecord<'a>) -> Option<Self> {
        let ended = record.ended.map(|(_, ended)| ended);
        let arguments = body(record.started.arguments.as_ref());
        let response = body(ended.and_then(|ended| ended.response.as_ref()));
        (arguments.is_some() || response.is_some()).then(|| Self {
            order: record.started.id.order(),
            arguments,
            response,
        })
    }

    fn stored_bytes(&self) -> u64 {
        let bodies = [&self.arguments, &self.response].into_iter().flatten();
        bodies.map(|body| body.bytes.len() as u64).sum()
    }

    fn give(&self, values: &mut Values<'_, '_>) -> rusqlite::Result<()> {
        values.take(signed(self.order))?;
        for body in [&self.arguments, &self.response] {
            values.take(body.as_ref().map(|body| &*body.bytes))?;
            values.take(body.as_ref().and_then(|body| body.unpacked))?;
        }
        Ok(())
    }
}

fn update_record(
    connection: &Connection,
    started: &Started,
    ended: &Ended,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE records SET status = ?2, error_code = ?3, error_message = ?4, \
             duration_ms = ?5, response_bytes = ?6, response_digest = ?7, response_form = ?8 \
             WHERE id = ?1",
        )?
        .execute(params![
            signed(started.id.order()),
            ended.status.code(),
            ended.error_code.as_deref(),
            ended.error_message.as_deref(),
            signed(ended.duration_ms),
            signed(ended.response_bytes),
            ended.response.as_ref().map(|response| response.digest.0),
            ended.response.as_ref().map(form),
        ])?;
    Ok(())
}

/// Adds the response of a record that was stored before.
fn add_response(connection: &Connection, started: &Started, ended: &Ended) -> rusqlite::Result<()> {
    let Some(response) = body(ended.response.as_ref()) else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "INSERT INTO payloads (record, response, response_unpacked) VALUES (?1, ?2, ?3) \
             ON CONFLICT DO UPDATE SET response = excluded.response, \
             response_unpacked = excluded.response_unpacked",
        )?
        .execute(params![
            signed(started.id.order()),
            response.bytes,
            response.unpacked
        ])?;
    Ok(())
}

fn body(payload: Option<&SealedPayload>) -> Option<Body<'_>> {
    let text = payload?.text.as_ref()?;
    Some(Body::encode(text.as_str()))
}
