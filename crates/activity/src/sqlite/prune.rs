//! Forgetting, one short slice at a time: the oldest records go, a checkpoint says where the rest
//! of the chain continues from, and the space is given back to the disk.

use std::ops::ControlFlow;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::codes::{Code, signed, unsigned};
use super::derived::{self, Derived};
use super::index;
use super::links::{self, StagedLink};
use super::row;
use super::write::ROW_BYTES;
use super::writer::Writer;
use crate::chain::{Checkpoint, EntryKind, Link};
use crate::retention::{Candidate, Holdings, PruneStep, RetentionPolicy};
use crate::store::StoreError;
use crate::words::Status;

/// How many records one slice removes; well under five milliseconds of work.
const SLICE: usize = 48;

/// How many pages of the file one slice gives back.
const PAGES: u64 = 64;

/// How far beyond its limit the file may grow while something is removed.
const RESERVED_PAGES: i64 = 64;

/// A record at the beginning of the chain that can go.
#[derive(Debug, Clone, Copy)]
struct Removable {
    /// Its last entry.
    through: Link,
    order: u64,
    candidate: Candidate,
}

/// The beginning of the chain.
#[derive(Debug, Default)]
struct Beginning {
    /// In the order in which they ended.
    removable: Vec<Removable>,
    /// Records that are still open, with the place of their start.
    open: Vec<(u64, u64)>,
}

pub(super) fn step(
    writer: &mut Writer,
    policy: RetentionPolicy,
    now: Timestamp,
) -> Result<PruneStep, StoreError> {
    if !writer.waiting.is_empty() {
        match writer.flush_slice().map_err(StoreError::from) {
            Ok(()) => return Ok(PruneStep::Removed(0)),
            // A full store is what pruning is for. What cannot be summed up now goes without.
            Err(StoreError::Full) => {}
            Err(error) => return Err(error),
        }
    }
    let removed = with_reserve(writer, |writer| remove_slice(writer, policy, now))?;
    if removed > 0 {
        return Ok(PruneStep::Removed(removed));
    }
    let released = release_slice(&writer.connection)?;
    if released > 0 {
        return Ok(PruneStep::Released(released));
    }
    derived::forget_old_sums(&writer.connection, now)?;
    Ok(PruneStep::Done)
}

/// Removing takes a little space before it gives any back, so it may go beyond the limit.
fn with_reserve<T>(
    writer: &mut Writer,
    work: impl FnOnce(&mut Writer) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let Some(limit) = writer.most_pages else {
        return work(writer);
    };
    let reserved = limit.saturating_add(RESERVED_PAGES);
    writer
        .connection
        .pragma_update(None, "max_page_count", reserved)?;
    let result = work(writer);
    writer
        .connection
        .pragma_update(None, "max_page_count", limit)?;
    result
}

fn remove_slice(
    writer: &mut Writer,
    policy: RetentionPolicy,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let transaction = writer
        .connection
        .transaction_with_behavior(TransactionBehavior::Immediate)?;
    let beginning = read_beginning(&transaction)?;
    let removable = &beginning.removable;
    let candidates: Vec<Candidate> = removable.iter().map(|record| record.candidate).collect();
    let summed = derived::holdings(&transaction)?;
    let waiting = Holdings {
        records: writer.waiting.len() as u64,
        bytes: writer.waiting.iter().map(Derived::bytes).sum(),
    };
    let holdings = Holdings {
        records: summed.records + waiting.records,
        bytes: summed.bytes + waiting.bytes,
    };
    let expired = &removable[..policy.expired(holdings, &candidates, now)];
    let Some(last) = expired.last() else {
        return Ok(0);
    };
    let orders: Vec<u64> = expired.iter().map(|record| record.order).collect();
    remove_records(&transaction, &orders)?;
    index::forget(&transaction, &orders)?;
    let cut = last.through;
    let mut head = writer.head;
    let mut entries = Vec::new();
    for (order, _) in beginning
        .open
        .iter()
        .filter(|(_, start)| *start < cut.sequence)
    {
        let entry = restate(&transaction, head, *order)?;
        head = entry.link;
        entries.push(entry);
    }
    let removed = expired.len() as u64;
    let checkpoint = leave_checkpoint(&transaction, head, cut, removed, now)?;
    head = checkpoint.link;
    entries.push(checkpoint);
    links::append(&transaction, &entries)?;
    links::cut(&transaction, cut.sequence)?;
    let first_waiting = writer.waiting.front().map_or(u64::MAX, Derived::sequence);
    let counted = expired
        .iter()
        .filter(|record| record.through.sequence < first_waiting);
    let (records, bytes) = counted.fold((0, 0), |(records, bytes), record| {
        (records + 1, bytes + record.candidate.bytes)
    });
    transaction
        .prepare_cached(
            "UPDATE progress SET records = max(records - ?1, 0), bytes = max(bytes - ?2, 0)",
        )?
        .execute(params![signed(records), signed(bytes)])?;
    transaction.commit()?;
    writer.head = head;
    writer.drafts.forget(&orders);
    writer
        .waiting
        .retain(|derived| derived.sequence() > cut.sequence);
    Ok(removed)
}

/// A record goes with its last entry: until then that entry protects all of it.
fn read_beginning(connection: &Connection) -> Result<Beginning, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT records.status, \
         coalesce(length(payloads.arguments), 0) + coalesce(length(payloads.response), 0) \
         FROM records LEFT JOIN payloads ON payloads.record = records.id WHERE records.id = ?1",
    )?;
    let mut beginning = Beginning::default();
    links::each_after(connection, 0, |entry| {
        let order = entry.id.order();
        let (status, bytes) = statement
            .query_row([signed(order)], |row| {
                Ok((row.get(0)?, unsigned(row.get(1)?)))
            })
            .optional()?
            .unwrap_or((0, 0));
        match entry.kind {
            Some(EntryKind::Start) if status == Status::Pending.code() => {
                beginning.open.push((order, entry.sequence));
            }
            Some(EntryKind::Start | EntryKind::Checkpoint) => {}
            // A row that somebody changed must not stop everything else from being forgotten.
            Some(EntryKind::End | EntryKind::Whole) | None => {
                let candidate = Candidate {
                    timestamp: entry.id.timestamp(),
                    bytes: ROW_BYTES + bytes,
                };
                beginning.removable.push(Removable {
                    through: Link {
                        sequence: entry.sequence,
                        hash: entry.hash,
                    },
                    order,
                    candidate,
                });
            }
        }
        Ok::<_, StoreError>(if beginning.removable.len() < SLICE {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    Ok(beginning)
}

/// Starts an open record anew at the end of the chain, because its first start is about to go.
fn restate(connection: &Connection, head: Link, order: u64) -> Result<StagedLink, StoreError> {
    let halves = row::find(connection, order)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(StagedLink {
        link: head.extend(&halves.started, None, EntryKind::Start),
        kind: EntryKind::Start,
        id: Some(halves.started.id),
    })
}

fn remove_records(connection: &Connection, orders: &[u64]) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM payloads WHERE record = ?1",
        "DELETE FROM records WHERE id = ?1",
    ] {
        let mut statement = connection.prepare_cached(sql)?;
        for order in orders {
            statement.execute([signed(*order)])?;
        }
    }
    Ok(())
}

fn leave_checkpoint(
    connection: &Connection,
    head: Link,
    through: Link,
    removed: u64,
    now: Timestamp,
) -> rusqlite::Result<StagedLink> {
    let before: i64 = connection
        .prepare_cached("SELECT coalesce(max(removed_records), 0) FROM checkpoints")?
        .query_row([], |row| row.get(0))?;
    // Milliseconds are what is stored, so they are also what is hashed.
    let made_at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
    let removed_records = unsigned(before) + removed;
    let checkpoint = Checkpoint {
        through,
        removed_records,
        made_at,
    };
    let link = head.extend_checkpoint(&checkpoint);
    connection
        .prepare_cached("INSERT INTO checkpoints VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![
            signed(link.sequence),
            signed(through.sequence),
            through.hash.0,
            signed(removed_records),
            made_at.as_millisecond(),
        ])?;
    connection
        .prepare_cached("DELETE FROM checkpoints WHERE sequence <= ?1")?
        .execute([signed(through.sequence)])?;
    Ok(StagedLink {
        link,
        kind: EntryKind::Checkpoint,
        id: None,
    })
}

fn release_slice(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let free = unsigned(number("freelist_count")?);
    if free == 0 {
        return Ok(0);
    }
    let pages = free.min(PAGES);
    // Each step of the statement gives one page back; it must be stepped to its end.
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(pages * unsigned(number("page_size")?))
}
