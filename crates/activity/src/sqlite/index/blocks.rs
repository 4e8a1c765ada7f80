//! Blocks as rows: writing a draft as one, making up for what a crash left out, and taking out
//! what retention removed.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::codes::{signed, unsigned};
use super::super::links;
use super::super::row::{self, Part};
use super::positions::{Positions, read_number, write_number};
use super::{BLOCK, BUCKETS, Draft, Drafts};
use crate::record::{Ended, Started};
use crate::store::StoreError;

/// Where the list of a block's records is: behind its buckets.
pub(super) const LIST: usize = BUCKETS;

/// How many rows a block can have.
const ROWS: i64 = 64 + 1;
const _: () = assert!(BUCKETS == 64);

/// The columns of a block, in the order in which [`Block::read`] wants them.
pub(super) const COLUMNS_OF_BLOCK: &str = "id, oldest, newest, size, gone";

/// A block without the list of its records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) id: i64,
    pub(super) oldest: u64,
    pub(super) newest: u64,
    size: usize,
    gone: Option<Positions>,
}

/// A row of the index that does not hold what it should.
#[derive(Debug, thiserror::Error)]
#[error("a block of the index is damaged")]
pub(super) struct Damaged;

impl From<Damaged> for StoreError {
    fn from(error: Damaged) -> Self {
        Self::Corrupt(std::sync::Arc::new(error))
    }
}

impl Block {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let gone = row.get::<_, Option<Vec<u8>>>(4)?;
        let gone = gone.map(|bytes| Positions::from_bytes(&bytes).ok_or(Damaged));
        Ok(Self {
            id: row.get(0)?,
            oldest: unsigned(row.get(1)?),
            newest: unsigned(row.get(2)?),
            size: row.get::<_, u16>(3)?.into(),
            gone: gone.transpose()?,
        })
    }

    /// Every record that is still there.
    pub(super) fn present(&self) -> Positions {
        let mut present = Positions::first(self.size);
        if let Some(gone) = &self.gone {
            present.subtract(gone);
        }
        present
    }

    /// The records at all of its positions.
    pub(super) fn orders(&self, connection: &Connection) -> Result<Vec<u64>, StoreError> {
        let mut list = connection.prepare_cached("SELECT postings FROM terms WHERE id = ?1")?;
        let orders = list
            .query_row([key(LIST, self.id)], |row| {
                Ok(read_orders(row.get_ref(0)?.as_blob()?, self.size))
            })
            .optional()?;
        Ok(orders.flatten().ok_or(Damaged)?)
    }
}

/// Where the terms of a bucket and a block are. Those of a block are together: they are written at
/// once, and most often read alone.
pub(super) fn key(bucket: usize, block: i64) -> i64 {
    block * ROWS + signed(bucket as u64)
}

/// The block and the bucket whose terms are there.
pub(super) fn block_and_bucket(key: i64) -> (i64, usize) {
    let bucket = usize::try_from(key.rem_euclid(ROWS)).unwrap_or(LIST);
    (key.div_euclid(ROWS), bucket)
}

/// Writes the next full draft as a block. The caller has a transaction open, and says that it was
/// written when that is committed.
pub(in super::super) fn write_next(
    connection: &Connection,
    drafts: &Drafts,
) -> rusqlite::Result<()> {
    match drafts.next() {
        Some(draft) => write(connection, draft),
        None => Ok(()),
    }
}

fn write(connection: &Connection, draft: &Draft) -> rusqlite::Result<()> {
    let orders = draft.orders();
    let (oldest, newest) = (orders.iter().min(), orders.iter().max());
    if let (Some(oldest), Some(newest)) = (oldest, newest) {
        let mut rows: Vec<_> = draft.postings().into_iter().enumerate().collect();
        rows.retain(|(_, postings)| !postings.is_empty());
        rows.push((LIST, write_orders(orders)));
        let mut checksum = Checksum::default();
        for (bucket, postings) in &rows {
            checksum.add(*bucket, postings);
        }
        let block = connection
            .prepare_cached(
                "INSERT INTO blocks (oldest, newest, size, gone, checksum) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .insert(params![
                signed(*oldest),
                signed(*newest),
                signed(orders.len() as u64),
                draft.gone().map(Positions::to_bytes),
                checksum.finish(),
            ])?;
        let mut insert =
            connection.prepare_cached("INSERT INTO terms (id, postings) VALUES (?1, ?2)")?;
        for (bucket, postings) in rows {
            insert.execute(params![key(bucket, block), postings])?;
        }
    }
    connection
        .prepare_cached("UPDATE progress SET indexed_sequence = max(indexed_sequence, ?1)")?
        .execute([signed(draft.through())])?;
    Ok(())
}

/// Over all rows of a block's terms.
#[derive(Debug, Default)]
pub(super) struct Checksum(crc32fast::Hasher);

impl Checksum {
    pub(super) fn add(&mut self, bucket: usize, postings: &[u8]) {
        self.0.update(&(bucket as u64).to_le_bytes());
        self.0.update(&(postings.len() as u64).to_le_bytes());
        self.0.update(postings);
    }

    pub(super) fn finish(self) -> u32 {
        self.0.finalize()
    }
}

/// Drafts what ended after the last that is drafted and is in no block, as far as it fills one.
/// Tells how many records that were.
pub(in super::super) fn draft_missing(
    connection: &Connection,
    drafts: &mut Drafts,
) -> Result<usize, StoreError> {
    let after = indexed_sequence(connection)?.max(drafts.through());
    let ends = links::ends_after(connection, after, BLOCK)?;
    for (sequence, order) in &ends {
        draft(connection, drafts, *sequence, *order)?;
    }
    Ok(ends.len())
}

/// Drafts a record. One that is gone or cannot be read must not be waited for.
pub(super) fn draft(
    connection: &Connection,
    drafts: &mut Drafts,
    sequence: u64,
    order: u64,
) -> Result<(), StoreError> {
    drafts.pass(sequence);
    if let Some((started, ended)) = indexable(connection, order)? {
        drafts.add(sequence, &started, &ended);
    }
    Ok(())
}

/// What the index needs of a record that has ended; nothing if it cannot be read.
pub(super) fn indexable(
    connection: &Connection,
    order: u64,
) -> Result<Option<(Started, Ended)>, StoreError> {
    let Some(mut halves) = row::readable(row::find(connection, order))?.flatten() else {
        return Ok(None);
    };
    if let Some(arguments) = &mut halves.started.arguments {
        let text = row::read_body(connection, Part::Arguments, order);
        arguments.text = row::readable(text)?.flatten();
    }
    Ok(halves.ended.map(|ended| (halves.started, ended)))
}

/// Ends up to here are in blocks.
pub(in super::super) fn indexed_sequence(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT indexed_sequence FROM progress")?
        .query_row([], |row| row.get(0))
        .map(unsigned)
}

/// Takes records out of the blocks they are in; they are in order. A block of which nothing is left goes.
pub(in super::super) fn forget(connection: &Connection, orders: &[u64]) -> Result<(), StoreError> {
    let (Some(oldest), Some(newest)) = (orders.first(), orders.last()) else {
        return Ok(());
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS_OF_BLOCK} FROM blocks INDEXED BY blocks_by_oldest \
         WHERE oldest <= ?2 AND newest >= ?1"
    ))?;
    let mut rows = statement.query([signed(*oldest), signed(*newest)])?;
    let mut blocks = Vec::new();
    while let Some(row) = rows.next()? {
        blocks.push(Block::read(row)?);
    }
    drop(rows);
    for block in blocks {
        let mut gone = block.gone.unwrap_or(Positions::NONE);
        for (position, order) in block.orders(connection)?.iter().enumerate() {
            if orders.binary_search(order).is_ok() {
                gone.insert(position);
            }
        }
        if gone.len() == block.size {
            remove(connection, block.id)?;
        } else {
            connection
                .prepare_cached("UPDATE blocks SET gone = ?2 WHERE id = ?1")?
                .execute(params![block.id, gone.to_bytes()])?;
        }
    }
    Ok(())
}

fn remove(connection: &Connection, block: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM terms WHERE id >= ?1 AND id < ?2")?
        .execute([key(0, block), key(0, block + 1)])?;
    connection
        .prepare_cached("DELETE FROM blocks WHERE id = ?1")?
        .execute([block])?;
    Ok(())
}

/// Steps from one to the next. Records end in nearly the order in which they started, so the
/// steps are small; the lowest bit says whether one goes back.
fn write_orders(orders: &[u64]) -> Vec<u8> {
    let (mut output, mut before) = (Vec::with_capacity(4 * orders.len()), 0);
    for order in orders {
        let step = signed(order.wrapping_sub(before));
        write_number(&mut output, unsigned((step << 1) ^ (step >> 63)));
        before = *order;
    }
    output
}

fn read_orders(mut bytes: &[u8], count: usize) -> Option<Vec<u64>> {
    let (mut orders, mut before) = (Vec::with_capacity(BLOCK), 0_u64);
    while !bytes.is_empty() {
        let number = read_number(&mut bytes)?;
        let step = (number >> 1) ^ (number & 1).wrapping_neg();
        before = before.wrapping_add(step);
        orders.push(before);
    }
    (orders.len() == count).then_some(orders)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_of_records_survive(orders: Vec<u64>) {
            prop_assert_eq!(read_orders(&write_orders(&orders), orders.len()), Some(orders));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, count: usize) {
            let _ = read_orders(&bytes, count);
        }
    }
}
