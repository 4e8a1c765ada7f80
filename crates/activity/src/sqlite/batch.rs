//! A batch of entries, staged in memory before the database sees any of it.
//!
//! Staging computes the hash chain and decides which entries are possible. The batch only refers to
//! the entries, and the writer's state changes when it is committed, so a failed commit needs no
//! undoing.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::links::StagedLink;
use crate::chain::{EntryKind, Link};
use crate::encoding::{self, Encoder};
use crate::event::{Event, Phase};
use crate::id::ActivityId;
use crate::record::{Ended, Record, Started};
use crate::store::{Entry, StoreError};

/// Records that have started and not ended, by the upper half of their identifier.
pub(super) type Open = HashMap<u64, Arc<Started>, RandomState>;

/// Larger arguments are not sent to watchers.
const LARGEST_WATCHED: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Batch<'a> {
    pub(super) head: Link,
    /// Records that are new; most reads start and end within one batch and are written once.
    pub(super) records: Vec<StagedRecord<'a>>,
    /// Ends of records that were stored before.
    pub(super) ends: Vec<StagedEnd<'a>>,
    pub(super) links: Vec<StagedLink>,
    places: HashMap<u64, Place, RandomState>,
    /// Starts as the chain covers them, one after the other: the end of a record covers its start,
    /// too, and mostly is in the same batch.
    encoded: Vec<u8>,
}

/// Where in the batch a record is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Record(usize),
    End(usize),
}

#[derive(Debug)]
pub(super) struct StagedRecord<'a> {
    pub(super) started: &'a Arc<Started>,
    /// With the sequence of the entry that ended it.
    pub(super) ended: Option<(u64, &'a Ended)>,
    /// Where its start is encoded.
    encoded: Range<usize>,
}

#[derive(Debug)]
pub(super) struct StagedEnd<'a> {
    pub(super) sequence: u64,
    pub(super) started: Arc<Started>,
    pub(super) ended: &'a Ended,
}

impl<'a> Batch<'a> {
    pub(super) fn new(head: Link) -> Self {
        Self {
            head,
            records: Vec::new(),
            ends: Vec::new(),
            links: Vec::new(),
            places: HashMap::default(),
            encoded: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub(super) fn stage(&mut self, open: &Open, entry: &'a Entry) -> Result<(), StoreError> {
        match entry {
            Entry::Start(started) => {
                self.refuse_known(open, started.id)?;
                let encoded = self.encode(started);
                self.link(started, encoded.clone(), None, EntryKind::Start);
                self.add(started, None, encoded);
            }
            Entry::Whole(started, ended) => {
                self.refuse_known(open, started.id)?;
                let encoded = self.encode(started);
                let sequence = self.link(started, encoded.clone(), Some(ended), EntryKind::Whole);
                self.add(started, Some((sequence, ended)), encoded);
            }
            Entry::End(id, ended, _) => self.stage_end(open, *id, ended)?,
        }
        Ok(())
    }

    pub(super) fn stage_end(
        &mut self,
        open: &Open,
        id: ActivityId,
        ended: &'a Ended,
    ) -> Result<(), StoreError> {
        match self.places.get(&id.order()) {
            Some(&Place::Record(index)) => {
                let record = self.records.get(index);
                let (started, encoded) = record
                    .filter(|record| record.ended.is_none() && record.started.id == id)
                    .map(|record| (record.started, record.encoded.clone()))
                    .ok_or(StoreError::NotPending(id))?;
                let sequence = self.link(started, encoded, Some(ended), EntryKind::End);
                self.records[index].ended = Some((sequence, ended));
            }
            Some(Place::End(_)) => return Err(StoreError::NotPending(id)),
            None => {
                let started = open.get(&id.order()).filter(|started| started.id == id);
                let started = Arc::clone(started.ok_or(StoreError::NotPending(id))?);
                let encoded = self.encode(&started);
                let sequence = self.link(&started, encoded, Some(ended), EntryKind::End);
                self.places.insert(id.order(), Place::End(self.ends.len()));
                self.ends.push(StagedEnd {
                    sequence,
                    started,
                    ended,
                });
            }
        }
        Ok(())
    }

    fn refuse_known(&self, open: &Open, id: ActivityId) -> Result<(), StoreError> {
        if open.contains_key(&id.order()) || self.places.contains_key(&id.order()) {
            return Err(StoreError::Exists(id));
        }
        Ok(())
    }

    /// Encodes a start, and tells where.
    fn encode(&mut self, started: &Started) -> Range<usize> {
        let start = self.encoded.len();
        Encoder(&mut self.encoded).start(started);
        start..self.encoded.len()
    }

    fn link(
        &mut self,
        started: &Started,
        encoded: Range<usize>,
        ended: Option<&Ended>,
        kind: EntryKind,
    ) -> u64 {
        let end = self.encoded.len();
        if let Some(ended) = ended {
            Encoder(&mut self.encoded).end(ended);
        }
        let body = [&self.encoded[encoded], &self.encoded[end..]];
        let version = encoding::version(started);
        self.head = self.head.extend_encoded(kind, version, body);
        self.encoded.truncate(end);
        self.links.push(StagedLink {
            link: self.head,
            kind,
            id: Some(started.id),
        });
        self.head.sequence
    }

    fn add(
        &mut self,
        started: &'a Arc<Started>,
        ended: Option<(u64, &'a Ended)>,
        encoded: Range<usize>,
    ) {
        self.places
            .insert(started.id.order(), Place::Record(self.records.len()));
        self.records.push(StagedRecord {
            started,
            ended,
            encoded,
        });
    }

    /// Brings the open records up to date after the batch was committed.
    pub(super) fn settle(&self, open: &mut Open) {
        for record in self.records.iter().filter(|record| record.ended.is_none()) {
            open.insert(record.started.id.order(), Arc::clone(record.started));
        }
        for end in &self.ends {
            open.remove(&end.started.id.order());
        }
    }

    /// The records that the batch ended, in the order in which it did.
    pub(super) fn ended(&self) -> Vec<(u64, &Started, &Ended)> {
        let whole = self.records.iter().filter_map(|record| {
            let (sequence, ended) = record.ended?;
            Some((sequence, &**record.started, ended))
        });
        let ends = self.ends.iter();
        let mut ended: Vec<_> = whole
            .chain(ends.map(|end| (end.sequence, &*end.started, end.ended)))
            .collect();
        ended.sort_unstable_by_key(|(sequence, ..)| *sequence);
        ended
    }

    /// What to tell those who watch, in order.
    pub(super) fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.links.iter().filter_map(|link| {
            let (started, ended) = match *self.places.get(&link.id?.order())? {
                Place::Record(index) => {
                    let record = self.records.get(index)?;
                    (record.started, record.ended.map(|(_, ended)| ended))
                }
                Place::End(index) => {
                    let end = self.ends.get(index)?;
                    (&end.started, Some(end.ended))
                }
            };
            Some(event(link.link.sequence, link.kind, started, ended))
        })
    }
}

/// An entry as those who watch see it: a start shows nothing of the end that came after it.
pub(super) fn event(
    sequence: u64,
    kind: EntryKind,
    started: &Started,
    ended: Option<&Ended>,
) -> Event {
    let phase = if kind == EntryKind::Start {
        Phase::Started
    } else {
        Phase::Completed
    };
    let ended = ended.filter(|_| phase == Phase::Completed);
    let mut record = Record::from_halves(started, ended);
    record.response = None;
    record.arguments = record
        .arguments
        .filter(|text| text.as_str().len() <= LARGEST_WATCHED);
    Event {
        sequence,
        phase,
        record: Arc::new(record),
    }
}
