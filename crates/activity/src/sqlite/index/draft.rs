//! A block that is still being gathered.

use std::collections::VecDeque;

use super::BLOCK;
use super::positions::Positions;
use super::term::each_term;
use super::terms::Terms;
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
    terms: Terms,
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
            self.close();
        }
    }

    /// Everything up to the entry of this sequence has been looked at.
    pub(super) fn pass(&mut self, sequence: u64) {
        self.current.through = sequence;
    }

    /// Has everything written that was added so far.
    pub(in super::super) fn close(&mut self) {
        if !self.current.orders.is_empty() {
            let next = self.current.next();
            self.full
                .push_back(std::mem::replace(&mut self.current, next));
        }
    }

    /// How many records are in no block yet.
    pub(super) fn len(&self) -> usize {
        let drafts = self.full.iter().chain([&self.current]);
        drafts
            .map(|draft| draft.orders.len() - draft.gone.len())
            .sum()
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

    /// Takes note that records were removed from the log; they are in order.
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
    /// An empty one; a block has about as many terms as the one before it.
    fn next(&self) -> Self {
        Self {
            orders: Vec::with_capacity(BLOCK),
            terms: Terms::with_room_of(&self.terms),
            ..Self::default()
        }
    }

    fn add(&mut self, sequence: u64, started: &Started, ended: &Ended) {
        let Ok(position) = u16::try_from(self.orders.len()) else {
            return;
        };
        self.orders.push(started.id.order());
        self.through = sequence;
        each_term(started, ended, |field, value| {
            self.terms.add(field, value, position);
        });
    }

    fn forget(&mut self, orders: &[u64]) {
        for (position, order) in self.orders.iter().enumerate() {
            if orders.binary_search(order).is_ok() {
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

    /// Its terms as they are written, by bucket.
    pub(super) fn postings(&self) -> Vec<Vec<u8>> {
        self.terms.postings()
    }
}
