//! The index once more, from the records that the walk along the chain has found to hold.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension};

use super::BUCKETS;
use super::blocks::{Block, COLUMNS_OF_BLOCK, indexable, key};
use super::positions::{self, Positions, read_number};
use super::term::{bucket, each_term};
use crate::store::StoreError;

/// Terms, and which records of a block have them.
type Postings = HashMap<Vec<u8>, Positions>;

/// Whether the blocks say of exactly these records what they are found by.
pub(in super::super) fn agrees(
    connection: &Connection,
    mut records: HashSet<u64>,
) -> Result<bool, StoreError> {
    let sql = format!("SELECT {COLUMNS_OF_BLOCK} FROM blocks ORDER BY id");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut terms = 0;
    while let Some(row) = rows.next()? {
        let checked = Block::read(row).and_then(|block| check(connection, &block, &mut records));
        match checked {
            Ok(Some(found)) => terms += found,
            Ok(None) | Err(StoreError::Corrupt(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    let stored: i64 = connection.query_row("SELECT count(*) FROM terms", [], |row| row.get(0))?;
    Ok(records.is_empty() && stored == terms)
}

/// How many rows a block has, or nothing if it says something else than its records. They are taken
/// out of those that must be in a block.
fn check(
    connection: &Connection,
    block: &Block,
    records: &mut HashSet<u64>,
) -> Result<Option<i64>, StoreError> {
    let mut expected = Postings::new();
    let present = block.present();
    let orders = block.orders(connection)?;
    for (position, order) in orders.iter().enumerate() {
        if !present.contains(position) {
            continue;
        }
        let within = block.oldest <= *order && *order <= block.newest;
        if !within || !records.remove(order) {
            return Ok(None);
        }
        let Some((started, ended)) = indexable(connection, *order)? else {
            return Ok(None);
        };
        each_term(&started, &ended, |field, value| {
            let term = [&[field as u8], value].concat();
            let positions = expected.entry(term).or_insert(Positions::NONE);
            positions.insert(position);
        });
    }
    let mut found = Postings::new();
    let mut rows = 1;
    let mut statement = connection.prepare_cached("SELECT postings FROM terms WHERE id = ?1")?;
    for number in 0..BUCKETS {
        let postings: Option<Vec<u8>> = statement
            .query_row([key(number, block.id)], |row| row.get(0))
            .optional()?;
        let Some(postings) = postings else { continue };
        rows += 1;
        if read(&postings, number, &present, &mut found).is_none() {
            return Ok(None);
        }
    }
    Ok((found == expected).then_some(rows))
}

/// Reads the terms of a bucket that records have which are still there.
fn read(
    mut postings: &[u8],
    number: usize,
    present: &Positions,
    found: &mut Postings,
) -> Option<()> {
    while !postings.is_empty() {
        let length = usize::try_from(read_number(&mut postings)?).ok()?;
        let term = postings.split_off(..length)?;
        let mut positions = positions::read(&mut postings)?;
        positions.intersect(present);
        let is_new = positions.is_empty() || found.insert(term.to_vec(), positions).is_none();
        if !is_new || bucket(term) != number {
            return None;
        }
    }
    Some(())
}
