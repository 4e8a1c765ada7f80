//! Whether the blocks are as they were written, and writing all of them again if not.

use std::collections::HashMap;

use rusqlite::Connection;

use super::super::links;
use super::blocks::{Block, COLUMNS_OF_BLOCK, Checksum, block_and_bucket, draft, write_next};
use super::draft::Drafts;
use crate::store::StoreError;

/// Whether nothing of the index is missing, as far as can be told without its records: checksums
/// hold, and blocks and drafts have as many records as the log.
pub(in super::super) fn is_whole(
    connection: &Connection,
    drafts: &Drafts,
    records: u64,
) -> Result<bool, StoreError> {
    let mut checksums: HashMap<i64, Checksum> = HashMap::new();
    let mut terms = connection.prepare("SELECT id, postings FROM terms ORDER BY id")?;
    let mut rows = terms.query([])?;
    while let Some(row) = rows.next()? {
        let (block, bucket) = block_and_bucket(row.get(0)?);
        let postings = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        checksums.entry(block).or_default().add(bucket, postings);
    }
    let sql = format!("SELECT {COLUMNS_OF_BLOCK}, checksum FROM blocks");
    let mut blocks = connection.prepare(&sql)?;
    let mut rows = blocks.query([])?;
    let mut indexed = drafts.len() as u64;
    while let Some(row) = rows.next()? {
        let block = match Block::read(row) {
            Ok(block) => block,
            Err(StoreError::Corrupt(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        let found = checksums.remove(&block.id).map(Checksum::finish);
        if found.is_none() || found != row.get(5)? {
            return Ok(false);
        }
        indexed += block.present().len() as u64;
    }
    Ok(checksums.is_empty() && indexed == records)
}

/// Writes all blocks again, from the records. The caller has a transaction open.
pub(in super::super) fn rebuild(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch(
        "DELETE FROM terms; DELETE FROM blocks; UPDATE progress SET indexed_sequence = 0",
    )?;
    let mut drafts = Drafts::default();
    for (sequence, order) in links::all_ends(connection)? {
        draft(connection, &mut drafts, sequence, order)?;
        write_full(connection, &mut drafts)?;
    }
    // Those that were carried must be in a block: their entries do not tell whether they are.
    drafts.close();
    write_full(connection, &mut drafts)
}

fn write_full(connection: &Connection, drafts: &mut Drafts) -> Result<(), StoreError> {
    while drafts.full() > 0 {
        write_next(connection, drafts)?;
        drafts.written();
    }
    Ok(())
}
