//! A block that is still being gathered.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;

use super::positions::{self, Positions};
use super::term::{bucket, each_term};
use super::{BLOCK, BUCKETS};
use crate::record::{Ended, Started};

/// Records that have ended and are in no block yet.
#[derive(Debug, Default)]
pub(in super::super) struct Drafts {
    /// Ready to be written.
    full: VecDeque<Draft>,
    current: Draft,
}

/// Up to a block of them, with everything they are found by.
#[derive(Debug, Default)]
pub(super) struct Draft {
    orders: Vec<u64>,
    terms: HashMap<Box<[u8]>, Vec<u16>, RandomState>,
    /// Those that were removed again, as places in `orders`.
    gone: Vec<usize>,
    /// The entry that ended the last of them.
    through: u64,
}

impl Drafts {
    /// Adds a record that ended with the entry of this sequence. They must be added in the order
    /// in which they ended.
    pub(in super::super) fn add(&mut self, sequence: u64, started: &Started, ended: &Ended) {
        self.current.add(sequence, started, ended);
        if self.current.orders.len() >= BLOCK {
            let next = Draft::with_room_for(self.current.terms.len());
            self.full
                .push_back(std::mem::replace(&mut self.current, next));
        }
    }

    /// Everything up to the entry of this sequence has been looked at.
    pub(super) fn pass(&mut self, sequence: u64) {
        self.current.through = sequence;
    }

    /// How many can be written.
    pub(in super::super) fn full(&self) -> usize {
        self.full.len()
    }

    /// The one to be written next.
    pub(super) fn next(&self) -> Option<&Draft> {
        self.full.front()
    }

    /// The next one was written.
    pub(in super::super) fn written(&mut self) {
        self.full.pop_front();
    }

    /// Takes note that records were removed from the log.
    pub(in super::super) fn forget(&mut self, orders: &[u64]) {
        for draft in self.full.iter_mut().chain([&mut self.current]) {
            draft.forget(orders);
        }
    }

    /// The entry that ended the last of them.
    pub(super) fn through(&self) -> u64 {
        let full = self.full.back().map_or(0, Draft::through);
        full.max(self.current.through())
    }
}

impl Draft {
    /// A block has about as many terms as the one before it.
    fn with_room_for(terms: usize) -> Self {
        Self {
            orders: Vec::with_capacity(BLOCK),
            terms: HashMap::with_capacity_and_hasher(terms, RandomState::default()),
            ..Self::default()
        }
    }

    fn add(&mut self, sequence: u64, started: &Started, ended: &Ended) {
        let Ok(position) = u16::try_from(self.orders.len()) else {
            return;
        };
        self.orders.push(started.id.order());
        self.through = sequence;
        each_term(started, ended, |term| match self.terms.get_mut(term) {
            Some(positions) if positions.last() == Some(&position) => {}
            Some(positions) => positions.push(position),
            None => {
                self.terms.insert(term.into(), vec![position]);
            }
        });
    }

    fn forget(&mut self, orders: &[u64]) {
        for (position, order) in self.orders.iter().enumerate() {
            if orders.contains(order) {
                self.gone.push(position);
            }
        }
    }

    pub(super) fn orders(&self) -> &[u64] {
        &self.orders
    }

    pub(super) fn through(&self) -> u64 {
        self.through
    }

    pub(super) fn gone(&self) -> Option<Positions> {
        let mut gone = Positions::NONE;
        self.gone.iter().for_each(|position| gone.insert(*position));
        (!gone.is_empty()).then_some(gone)
    }

    /// The terms as they are written, by bucket: the length of each, the term, its positions.
    pub(super) fn postings(&self) -> Vec<Vec<u8>> {
        let mut buckets = vec![Vec::new(); BUCKETS];
        for (term, places) in &self.terms {
            let output = &mut buckets[bucket(term)];
            positions::write_number(output, term.len() as u64);
            output.extend_from_slice(term);
            positions::write(output, places);
        }
        buckets
    }
}
