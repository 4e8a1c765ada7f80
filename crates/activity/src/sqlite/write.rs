//! The statements that put staged entries into the tables.

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::batch::{Batch, StagedEnd, StagedRecord};
use super::body::Body;
use super::codes::{Code, signed, unsigned};
use super::derived::Derived;
use super::links;
use super::names::Names;
use super::row::form;
use crate::payload::SealedPayload;
use crate::record::{Ended, Started};
use crate::words::Status;

/// A record's fixed cost in bytes: its row, its place in the index and its entries in the chain.
/// Measured; it only has to be near enough for retention by size.
pub(super) const ROW_BYTES: u64 = 400;

/// Writes everything that was staged, and tells what has to be derived from it.
pub(super) fn write(
    connection: &Connection,
    names: &mut Names,
    batch: &Batch<'_>,
) -> rusqlite::Result<Vec<Derived>> {
    let mut derived = Vec::with_capacity(batch.records.len() + batch.ends.len());
    let mut inserts = Inserts::prepare(connection)?;
    // Callers overtake each other between being numbered and being queued; rows in order of their
    // key are appended, others have to be put in between.
    let mut records: Vec<_> = batch.records.iter().collect();
    records.sort_unstable_by_key(|record| record.started.id.order());
    for record in records {
        let ids = NameIds::intern(connection, names, record.started)?;
        inserts.record(ids, record)?;
        let bytes = ROW_BYTES + inserts.payloads(record)?;
        if let Some((sequence, ended)) = record.ended {
            derived.push(Derived::new(sequence, ids, record.started, ended, bytes));
        }
    }
    for StagedEnd {
        sequence,
        started,
        ended,
    } in &batch.ends
    {
        let ids = NameIds::intern(connection, names, started)?;
        update_record(connection, started, ended)?;
        add_response(connection, started, ended)?;
        let bytes = ROW_BYTES + stored_bytes(connection, started.id.order())?;
        derived.push(Derived::new(*sequence, ids, started, ended, bytes));
    }
    links::append(connection, &batch.links)?;
    derived.sort_by_key(Derived::sequence);
    Ok(derived)
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

/// What a batch does over and over, prepared once for all of it.
struct Inserts<'a> {
    records: CachedStatement<'a>,
    payloads: CachedStatement<'a>,
}

impl<'a> Inserts<'a> {
    fn prepare(connection: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            records: connection.prepare_cached(
                "INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, \
                 ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)",
            )?,
            payloads: connection.prepare_cached(
                "INSERT INTO payloads \
                 (record, arguments, arguments_unpacked, response, response_unpacked) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?,
        })
    }

    fn record(&mut self, names: NameIds, record: &StagedRecord<'_>) -> rusqlite::Result<()> {
        let started = record.started;
        let ended = record.ended.map(|(_, ended)| ended);
        let metadata = &started.metadata;
        let intent = metadata.intent.as_ref();
        let response = ended.and_then(|ended| ended.response.as_ref());
        let warnings = (!metadata.warnings.is_empty())
            .then(|| serde_json::Value::from(metadata.warnings.clone()).to_string());
        self.records.execute(params![
            signed(started.id.order()),
            signed(started.id.tail()),
            started.record_type.code(),
            started.source.code(),
            ended.map_or(Status::Pending, |ended| ended.status).code(),
            names.server,
            names.tool,
            names.client,
            intent.is_some(),
            intent
                .and_then(|intent| intent.operation_type)
                .map(Code::code),
            intent
                .and_then(|intent| intent.data_sensitivity)
                .map(Code::code),
            intent.and_then(|intent| intent.reason.as_deref()),
            metadata.tool_variant.map(Code::code),
            metadata.effective_tier.map(Code::code),
            metadata.provenance.map(Code::code),
            warnings,
            started.session_id,
            started.request_id,
            signed(started.request_bytes),
            started
                .arguments
                .as_ref()
                .map(|arguments| arguments.digest.0),
            started.arguments.as_ref().map(form),
            ended.and_then(|ended| ended.error_code.as_deref()),
            ended.and_then(|ended| ended.error_message.as_deref()),
            ended.map(|ended| signed(ended.duration_ms)),
            ended.map(|ended| signed(ended.response_bytes)),
            response.map(|response| response.digest.0),
            response.map(form),
            metadata.facts.map(|facts| signed(facts.pack())),
        ])?;
        Ok(())
    }

    /// What the payloads take up, if there is anything of them to keep.
    fn payloads(&mut self, record: &StagedRecord<'_>) -> rusqlite::Result<u64> {
        let ended = record.ended.map(|(_, ended)| ended);
        let arguments = body(record.started.arguments.as_ref());
        let response = body(ended.and_then(|ended| ended.response.as_ref()));
        if arguments.is_none() && response.is_none() {
            return Ok(0);
        }
        self.payloads.execute(params![
            signed(record.started.id.order()),
            arguments.as_ref().map(|body| &body.bytes),
            arguments.as_ref().and_then(|body| body.unpacked),
            response.as_ref().map(|body| &body.bytes),
            response.as_ref().and_then(|body| body.unpacked),
        ])?;
        let bodies = [arguments, response].into_iter().flatten();
        Ok(bodies.map(|body| body.bytes.len() as u64).sum())
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
