//! What retention leaves behind, as rows. A row says nothing by itself: only the entry of the chain
//! with the same sequence, whose hash covers it, makes it believable.

use std::collections::HashSet;
use std::ops::ControlFlow;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};

use super::codes::{signed, unsigned};
use super::links;
use crate::chain::{Checkpoint, EntryKind, Hash, Link};

const COLUMNS: &str = "sequence, through_sequence, through_hash, removed_records, made_at";

/// A checkpoint as it was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredCheckpoint {
    pub(super) sequence: u64,
    /// Nothing if what is there is no checkpoint.
    pub(super) checkpoint: Option<Checkpoint>,
}

/// The checkpoint that says where the chain begins now.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<Option<StoredCheckpoint>> {
    let sql = format!("SELECT {COLUMNS} FROM checkpoints ORDER BY sequence DESC LIMIT 1");
    connection
        .prepare_cached(&sql)?
        .query_row([], read)
        .optional()
}

pub(super) fn at(
    connection: &Connection,
    sequence: u64,
) -> rusqlite::Result<Option<StoredCheckpoint>> {
    let sql = format!("SELECT {COLUMNS} FROM checkpoints WHERE sequence = ?1");
    connection
        .prepare_cached(&sql)?
        .query_row([signed(sequence)], read)
        .optional()
}

/// Whether the chain has an entry for a checkpoint of this sequence.
pub(super) fn has_entry(connection: &Connection, sequence: u64) -> rusqlite::Result<bool> {
    let mut found = false;
    links::each_after(connection, sequence.saturating_sub(1), |entry| {
        found = entry.sequence == sequence && entry.kind == Some(EntryKind::Checkpoint);
        Ok::<_, rusqlite::Error>(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// The sequence of the first checkpoint that is not among those that the chain knows.
pub(super) fn stranger(
    connection: &Connection,
    known: &HashSet<u64>,
) -> rusqlite::Result<Option<u64>> {
    let mut statement = connection.prepare("SELECT sequence FROM checkpoints ORDER BY sequence")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let sequence = unsigned(row.get(0)?);
        if !known.contains(&sequence) {
            return Ok(Some(sequence));
        }
    }
    Ok(None)
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredCheckpoint> {
    let sequence = unsigned(row.get(0)?);
    // Values of the wrong size are damage to the checkpoint, not to the reading of it.
    let hash = row.get::<_, [u8; 32]>(2).ok();
    let made_at = Timestamp::from_millisecond(row.get(4)?).ok();
    let (through_sequence, removed_records) = (unsigned(row.get(1)?), unsigned(row.get(3)?));
    let checkpoint = hash.zip(made_at).map(|(hash, made_at)| Checkpoint {
        through: Link {
            sequence: through_sequence,
            hash: Hash(hash),
        },
        removed_records,
        made_at,
    });
    Ok(StoredCheckpoint {
        sequence,
        checkpoint,
    })
}
