//! The terms of a draft, and which of its records have them.
//!
//! A record has some thirty terms, so this is what indexing it costs. A map from every term to a
//! list of its own would be thousands of small pieces of memory per block; here all texts are one
//! piece and all finds another, which are put in order when the block is written.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::BUCKETS;
use super::positions;
use super::term::{Field, bucket};

#[derive(Debug, Default)]
pub(super) struct Terms {
    hasher: RandomState,
    /// Places in `list`.
    known: HashTable<usize>,
    list: Vec<Term>,
    /// All terms one after the other, as they are written.
    text: Vec<u8>,
    /// Every term of every record, in the order in which they were added.
    finds: Vec<Find>,
}

#[derive(Debug)]
struct Term {
    hash: u64,
    /// Where its text ends; it begins where the one before it ends.
    end: usize,
    /// How many records have it, and the last of them.
    count: usize,
    last: u16,
}

#[derive(Debug, Clone, Copy)]
struct Find {
    term: usize,
    position: u16,
}

impl Terms {
    /// Empty, with the space that others needed.
    pub(super) fn with_room_of(others: &Self) -> Self {
        Self {
            hasher: RandomState::default(),
            known: HashTable::with_capacity(others.list.len()),
            list: Vec::with_capacity(others.list.len()),
            text: Vec::with_capacity(others.text.len()),
            finds: Vec::with_capacity(others.finds.len()),
        }
    }

    /// The record at this position has this term; to be said once or more often, before anything
    /// is said of the next record.
    pub(super) fn add(&mut self, field: Field, value: &[u8], position: u16) {
        let place = self.place_of(field, value);
        let term = &mut self.list[place];
        if term.count > 0 && term.last == position {
            return;
        }
        term.count += 1;
        term.last = position;
        self.finds.push(Find {
            term: place,
            position,
        });
    }

    fn place_of(&mut self, field: Field, value: &[u8]) -> usize {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u8(field as u8);
        hasher.write(value);
        let hash = hasher.finish();
        let (terms, text) = (&self.list, &self.text);
        let is_same = |place: &usize| {
            terms[*place].hash == hash
                && text_of(terms, text, *place).split_first() == Some((&(field as u8), value))
        };
        match self.known.entry(hash, is_same, |place| terms[*place].hash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let place = terms.len();
                new.insert(place);
                self.text.push(field as u8);
                self.text.extend_from_slice(value);
                self.list.push(Term {
                    hash,
                    end: self.text.len(),
                    count: 0,
                    last: 0,
                });
                place
            }
        }
    }

    /// The terms as they are written, by bucket: the length of each, the term, its positions.
    pub(super) fn postings(&self) -> Vec<Vec<u8>> {
        let mut buckets = vec![Vec::new(); BUCKETS];
        let sorted = self.positions_by_term();
        let mut rest = sorted.as_slice();
        for (place, term) in self.list.iter().enumerate() {
            let (positions, others) = rest.split_at(term.count);
            rest = others;
            let text = text_of(&self.list, &self.text, place);
            let output = &mut buckets[bucket(text)];
            positions::write_number(output, text.len() as u64);
            output.extend_from_slice(text);
            positions::write(output, positions);
        }
        buckets
    }

    /// The positions of the first term, then those of the second, and so on.
    fn positions_by_term(&self) -> Vec<u16> {
        let mut end = 0;
        let mut next: Vec<usize> = Vec::with_capacity(self.list.len());
        for term in &self.list {
            next.push(end);
            end += term.count;
        }
        let mut positions = vec![0; end];
        for find in &self.finds {
            let place = &mut next[find.term];
            positions[*place] = find.position;
            *place += 1;
        }
        positions
    }
}

fn text_of<'a>(terms: &[Term], text: &'a [u8], place: usize) -> &'a [u8] {
    let start = place.checked_sub(1).map_or(0, |before| terms[before].end);
    &text[start..terms[place].end]
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::super::positions::{read, read_number};
    use super::*;

    /// What a bucket says: each term and the positions that have it.
    fn read_bucket(mut bytes: &[u8]) -> Option<Vec<(Vec<u8>, BTreeSet<u16>)>> {
        let mut terms = Vec::new();
        while !bytes.is_empty() {
            let length = usize::try_from(read_number(&mut bytes)?).ok()?;
            let term = bytes.split_off(..length)?.to_vec();
            let positions = read(&mut bytes)?;
            let positions = positions
                .iter()
                .map(|position| position.try_into().unwrap());
            terms.push((term, positions.collect()));
        }
        Some(terms)
    }

    proptest! {
        #[test]
        fn every_term_is_written_once_with_the_records_that_have_it(
            records in prop::collection::vec(prop::collection::vec("[ab]{0,3}", 0..6), 0..100),
        ) {
            let (mut terms, mut expected) = (Terms::default(), BTreeMap::new());
            for (position, words) in (0..).zip(&records) {
                for word in words {
                    terms.add(Field::Word, word.as_bytes(), position);
                    let term = [&[Field::Word as u8], word.as_bytes()].concat();
                    expected.entry(term).or_insert_with(BTreeSet::new).insert(position);
                }
            }
            let mut found = BTreeMap::new();
            for (number, bytes) in terms.postings().iter().enumerate() {
                for (term, positions) in read_bucket(bytes).unwrap() {
                    prop_assert_eq!(bucket(&term), number);
                    prop_assert!(found.insert(term, positions).is_none());
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
