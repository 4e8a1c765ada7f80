//! Finding the records of a list in the blocks, newest first.

use std::collections::BinaryHeap;

use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::super::codes::signed;
use super::blocks::{Block, COLUMNS_OF_BLOCK, Damaged, key};
use super::positions::{self, Positions, read_number};
use super::term::{self, bucket};
use crate::filter::Filter;
use crate::store::StoreError;

/// Which of the records that pass a filter are wanted.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Wanted {
    /// Only records before this one are listed; all of them are counted.
    pub(in super::super) before: Option<u64>,
    pub(in super::super) skip: u64,
    pub(in super::super) take: usize,
    /// Counting stops when there are more than this; nothing means that nobody wants to know.
    pub(in super::super) count: Option<u64>,
}

/// What was found.
#[derive(Debug, Default)]
pub(in super::super) struct Found {
    /// Newest first.
    pub(in super::super) orders: Vec<u64>,
    /// Right up to as many as were to be counted; any higher number means that there are more.
    pub(in super::super) counted: u64,
}

/// Walks over the blocks as far as needed. `outside` are records that pass the filter and are in
/// no block.
pub(in super::super) fn look_up(
    connection: &Connection,
    filter: &Filter,
    outside: impl IntoIterator<Item = u64>,
    wanted: Wanted,
) -> Result<Found, StoreError> {
    let mut listing = Listing::new(wanted);
    for order in outside {
        listing.found.counted += 1;
        listing.add(order);
    }
    let mut matcher = Matcher::new(connection, filter)?;
    let mut blocks = connection.prepare_cached(&format!(
        "SELECT {COLUMNS_OF_BLOCK} FROM blocks INDEXED BY blocks_by_newest \
         WHERE newest >= ?1 ORDER BY newest DESC"
    ))?;
    let mut rows = blocks.query([signed(*matcher.range.start())])?;
    while let Some(row) = rows.next()? {
        let block = Block::read(row)?;
        listing.take_after(block.newest);
        if listing.is_complete() {
            break;
        }
        if !listing.wants(&block) {
            continue;
        }
        let found = matcher.matching(&block)?;
        listing.found.counted += found.len() as u64;
        if !found.is_empty() && listing.lists(&block) {
            let orders = block.orders(connection)?;
            found
                .iter()
                .for_each(|position| listing.add(orders[position]));
        }
    }
    listing.take_after(0);
    Ok(listing.found)
}

/// A page in the making. Blocks overlap where calls took long, so what was found waits until no
/// other block can have anything newer.
struct Listing {
    wanted: Wanted,
    waiting: BinaryHeap<u64>,
    skipped: u64,
    found: Found,
}

impl Listing {
    fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            waiting: BinaryHeap::new(),
            skipped: 0,
            found: Found::default(),
        }
    }

    fn add(&mut self, order: u64) {
        if self.wanted.before.is_none_or(|before| order < before) {
            self.waiting.push(order);
        }
    }

    /// Everything newer than this has been found.
    fn take_after(&mut self, newest: u64) {
        while !self.is_filled()
            && let Some(order) = self.waiting.peek().copied()
            && order > newest
        {
            self.waiting.pop();
            if self.skipped < self.wanted.skip {
                self.skipped += 1;
            } else {
                self.found.orders.push(order);
            }
        }
    }

    fn is_filled(&self) -> bool {
        self.found.orders.len() >= self.wanted.take
    }

    fn is_counted(&self) -> bool {
        self.wanted
            .count
            .is_none_or(|most| self.found.counted > most)
    }

    fn is_complete(&self) -> bool {
        self.is_filled() && self.is_counted()
    }

    fn wants(&self, block: &Block) -> bool {
        !self.is_counted() || self.lists(block)
    }

    fn lists(&self, block: &Block) -> bool {
        let before = self.wanted.before;
        !self.is_filled() && before.is_none_or(|before| block.oldest < before)
    }
}

/// Tells which records of a block pass the filter.
struct Matcher<'a> {
    connection: &'a Connection,
    terms: Vec<(usize, term::Wanted)>,
    range: std::ops::RangeInclusive<u64>,
    postings: CachedStatement<'a>,
}

impl<'a> Matcher<'a> {
    fn new(connection: &'a Connection, filter: &Filter) -> rusqlite::Result<Self> {
        let terms = term::wanted(filter)
            .into_iter()
            .map(|wanted| (bucket(&wanted.term), wanted));
        Ok(Self {
            connection,
            terms: terms.collect(),
            range: filter.orders(),
            postings: connection.prepare_cached("SELECT postings FROM terms WHERE id = ?1")?,
        })
    }

    fn matching(&mut self, block: &Block) -> Result<Positions, StoreError> {
        if block.oldest > *self.range.end() {
            return Ok(Positions::NONE);
        }
        let mut found = block.present();
        for (bucket, wanted) in &self.terms {
            let key = key(*bucket, block.id);
            let with_term = self
                .postings
                .query_row([key], |row| Ok(find(row.get_ref(0)?.as_blob()?, wanted)))
                .optional()?
                .unwrap_or(Some(Positions::NONE))
                .ok_or(Damaged)?;
            found.intersect(&with_term);
            if found.is_empty() {
                return Ok(found);
            }
        }
        let within = self.range.contains(&block.oldest) && self.range.contains(&block.newest);
        if !within {
            let orders = block.orders(self.connection)?;
            let mut in_range = Positions::NONE;
            for (position, order) in orders.iter().enumerate() {
                if self.range.contains(order) {
                    in_range.insert(position);
                }
            }
            found.intersect(&in_range);
        }
        Ok(found)
    }
}

/// The positions of everything in a bucket that meets what is wanted.
fn find(mut postings: &[u8], wanted: &term::Wanted) -> Option<Positions> {
    let mut found = Positions::NONE;
    while !postings.is_empty() {
        let length = usize::try_from(read_number(&mut postings)?).ok()?;
        let term = postings.split_off(..length)?;
        if !wanted.is_met_by(term) {
            positions::skip(&mut postings)?;
            continue;
        }
        found.unite(&positions::read(&mut postings)?);
        if !wanted.prefix {
            break;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests;
