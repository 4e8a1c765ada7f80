//! Walking the hash chain from its beginning, or from where retention cut it, to its end.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension};

use super::checkpoints::{self, StoredCheckpoint};
use super::codes::unsigned;
use super::index;
use super::links::{self, StoredLink};
use super::recount::Recount;
use super::row::{self, Halves, Part, RowError};
use crate::chain::{EntryKind, Hash, Link};
use crate::gap::NOT_RECORDED;
use crate::id::ActivityId;
use crate::payload::SealedPayload;
use crate::store::StoreError;
use crate::verify::{Break, BreakReason, NotedHead, Verification};

/// Why the walk stopped: something is wrong with the log, or with reading it.
enum Stop {
    Broken(BreakReason),
    Failed(StoreError),
}

struct Walk<'a> {
    connection: &'a Connection,
    /// The last place that holds.
    place: Link,
    records: u64,
    gaps: u64,
    entries: u64,
    /// Started and not ended so far: the entry, and whether the row claims an end.
    open: HashMap<u64, (u64, ActivityId, bool)>,
    /// The checkpoints whose entries hold.
    checkpoints: HashSet<u64>,
    recount: Recount,
    /// Ends up to this entry are in the index, and these records therefore.
    indexed_sequence: u64,
    indexed: HashSet<u64>,
    noted: Option<Hash>,
    noted_at: Option<u64>,
}

/// The whole walk happens in one snapshot, so that calls and retention go on beside it.
pub(super) fn verify(
    connection: &mut Connection,
    noted: Option<Hash>,
) -> Result<Verification, StoreError> {
    let transaction = connection.transaction()?;
    let newest = checkpoints::newest(&transaction)?;
    let claimed = newest.and_then(|newest| newest.checkpoint);
    let mut walk = Walk {
        connection: &transaction,
        place: claimed.map_or(Link::GENESIS, |checkpoint| checkpoint.through),
        records: 0,
        gaps: 0,
        entries: 0,
        open: HashMap::new(),
        checkpoints: HashSet::new(),
        recount: Recount::new(&transaction)?,
        indexed_sequence: index::indexed_sequence(&transaction)?,
        indexed: HashSet::new(),
        noted,
        // The place before the first entry is before whatever retention removed.
        noted_at: (noted == Some(Hash::GENESIS)).then_some(0),
    };
    let broken = match walk.at_the_beginning(newest)? {
        None => match walk.along_the_chain()? {
            None => walk.at_the_end()?,
            broken => broken,
        },
        broken => broken,
    };
    let (head, noted_at) = (walk.place, walk.noted_at);
    let vouched = newest.is_some_and(|newest| walk.checkpoints.contains(&newest.sequence));
    // A head that was not met can only be said to be gone if all of the log was seen.
    let seen_whole = broken.is_none() && newest.is_none();
    let checkpoint = claimed.filter(|_| vouched);
    let (records, entries, gaps) = (walk.records, walk.entries, walk.gaps);
    let (sums_agree, index_agrees) = if broken.is_some() {
        (None, None)
    } else {
        let now = crate::clock::now();
        let sums = walk
            .recount
            .agrees(&transaction, checkpoint.is_some(), now)?;
        (Some(sums), Some(index::agrees(&transaction, walk.indexed)?))
    };
    Ok(Verification {
        records,
        entries,
        head,
        checkpoint,
        broken,
        sums_agree,
        index_agrees,
        gaps,
        noted_head: noted.map(|noted| NotedHead::place(noted, noted_at, head, seen_whole)),
    })
}

impl Walk<'_> {
    /// Where the chain begins is what the newest checkpoint says, so the chain must know of it.
    /// Whether its hash covers what the checkpoint says turns out when the walk gets there.
    fn at_the_beginning(
        &self,
        newest: Option<StoredCheckpoint>,
    ) -> Result<Option<Break>, StoreError> {
        let Some(newest) = newest else {
            return Ok(None);
        };
        let reason = if newest.checkpoint.is_none() {
            BreakReason::CheckpointUnreadable
        } else if !checkpoints::has_entry(self.connection, newest.sequence)? {
            BreakReason::CheckpointNotInChain
        } else {
            return Ok(None);
        };
        Ok(Some(Break {
            id: None,
            sequence: newest.sequence,
            reason,
        }))
    }

    fn along_the_chain(&mut self) -> Result<Option<Break>, StoreError> {
        let mut broken = None;
        links::each_after(self.connection, 0, |entry| match self.step(&entry) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Broken(reason)) => {
                broken = Some(Break {
                    id: entry.named(),
                    sequence: entry.sequence,
                    reason,
                });
                Ok(ControlFlow::Break(()))
            }
        })?;
        Ok(broken)
    }

    fn step(&mut self, stored: &StoredLink) -> Result<(), Stop> {
        if stored.sequence != self.place.sequence + 1 {
            return Err(Stop::Broken(BreakReason::EntriesMissing));
        }
        let place = match stored.kind {
            Some(EntryKind::Checkpoint) => self.checkpoint(stored)?,
            Some(kind) => self.record(stored, kind)?,
            None => return Err(Stop::Broken(BreakReason::HashMismatch)),
        };
        self.place = place;
        self.entries += 1;
        if self.noted == Some(place.hash) {
            self.noted_at = Some(place.sequence);
        }
        Ok(())
    }

    fn checkpoint(&mut self, stored: &StoredLink) -> Result<Link, Stop> {
        let found = checkpoints::at(self.connection, stored.sequence)?
            .ok_or(Stop::Broken(BreakReason::CheckpointMissing))?;
        let checkpoint = found
            .checkpoint
            .ok_or(Stop::Broken(BreakReason::CheckpointUnreadable))?;
        let expected = self.place.extend_checkpoint(&checkpoint);
        let place = holds(stored, expected, stored.named().is_none())
            .map_err(|_| Stop::Broken(BreakReason::CheckpointChanged))?;
        self.checkpoints.insert(place.sequence);
        if self.noted == Some(checkpoint.through.hash) {
            // It was in the log when this was removed, or the entry would not say so.
            self.noted_at = Some(checkpoint.through.sequence);
        }
        Ok(place)
    }

    fn record(&mut self, stored: &StoredLink, kind: EntryKind) -> Result<Link, Stop> {
        let order = stored.id.order();
        let halves = self
            .halves(order)?
            .ok_or(Stop::Broken(BreakReason::RecordMissing))?;
        let (started, ended) = (&halves.started, halves.ended.as_ref());
        let covered = if kind == EntryKind::Start {
            None
        } else {
            ended
        };
        let expected = self.place.extend(started, covered, kind);
        let named = stored.id == started.id;
        let ended_as_said = kind == EntryKind::Start || ended.is_some();
        let place = holds(stored, expected, named && ended_as_said)?;
        match kind {
            EntryKind::Start => {
                self.open
                    .insert(order, (place.sequence, started.id, ended.is_some()));
                if ended.is_none() {
                    self.bodies(order, &halves)?;
                }
            }
            EntryKind::End | EntryKind::Whole | EntryKind::Carried | EntryKind::Checkpoint => {
                self.open.remove(&order);
                self.bodies(order, &halves)?;
                self.records += 1;
                if let Some(ended) = ended {
                    self.gaps += u64::from(ended.error_code.as_deref() == Some(NOT_RECORDED));
                    // A record is summed up and indexed before it is carried.
                    let summed = kind == EntryKind::Carried || self.recount.covers(place.sequence);
                    if summed {
                        self.recount.add(started, ended);
                    }
                    if kind == EntryKind::Carried || place.sequence <= self.indexed_sequence {
                        self.indexed.insert(order);
                    }
                }
            }
        }
        Ok(place)
    }

    fn bodies(&self, order: u64, halves: &Halves) -> Result<(), Stop> {
        let arguments = halves.started.arguments.as_ref();
        self.body(
            Part::Arguments,
            order,
            arguments,
            BreakReason::ArgumentsChanged,
        )?;
        let response = halves
            .ended
            .as_ref()
            .and_then(|ended| ended.response.as_ref());
        self.body(
            Part::Response,
            order,
            response,
            BreakReason::ResponseChanged,
        )
    }

    fn body(
        &self,
        part: Part,
        order: u64,
        sealed: Option<&SealedPayload>,
        reason: BreakReason,
    ) -> Result<(), Stop> {
        let stored = match row::read_body(self.connection, part, order) {
            Ok(stored) => stored,
            Err(RowError::Database(error)) => return Err(Stop::Failed(error.into())),
            Err(_) => return Err(Stop::Broken(reason)),
        };
        let expected = sealed
            .filter(|sealed| sealed.kept)
            .map(|sealed| sealed.digest);
        let actual = stored.map(|text| Hash::of(text.as_str().as_bytes()));
        if actual == expected {
            Ok(())
        } else {
            Err(Stop::Broken(reason))
        }
    }

    fn halves(&self, order: u64) -> Result<Option<Halves>, Stop> {
        // A value of the wrong type is damage to the record, not to the reading of it.
        row::find(self.connection, order).map_err(|error| match error {
            RowError::Database(error) if error.sqlite_error_code().is_some() => {
                Stop::Failed(error.into())
            }
            _ => Stop::Broken(BreakReason::RecordUnreadable),
        })
    }

    /// What the chain itself cannot tell: rows it does not know of, and a cut at the end.
    fn at_the_end(&mut self) -> Result<Option<Break>, StoreError> {
        let forged = self
            .open
            .values()
            .filter(|(_, _, ended)| *ended)
            .min_by_key(|open| open.0);
        if let Some((sequence, id, _)) = forged {
            let reason = BreakReason::EndedOutsideChain;
            return Ok(Some(Break {
                id: Some(*id),
                sequence: *sequence,
                reason,
            }));
        }
        self.records += self.open.len() as u64;
        let rows: i64 = self
            .connection
            .query_row("SELECT count(*) FROM records", [], |row| row.get(0))?;
        if unsigned(rows) != self.records {
            let id = self.stranger()?;
            let reason = BreakReason::NotInChain;
            return Ok(Some(Break {
                id,
                sequence: self.place.sequence,
                reason,
            }));
        }
        if let Some(sequence) = checkpoints::stranger(self.connection, &self.checkpoints)? {
            return Ok(Some(Break {
                id: None,
                sequence,
                reason: BreakReason::CheckpointNotInChain,
            }));
        }
        let derived: i64 = self.connection.query_row(
            "SELECT max(through_sequence, indexed_sequence) FROM progress",
            [],
            |row| row.get(0),
        )?;
        if unsigned(derived) > self.place.sequence {
            let sequence = self.place.sequence + 1;
            return Ok(Some(Break {
                id: None,
                sequence,
                reason: BreakReason::TailMissing,
            }));
        }
        let orphan: Option<i64> = self
            .connection
            .query_row(
                "SELECT record FROM payloads WHERE record NOT IN (SELECT id FROM records) LIMIT 1",
                [],
                |row| row.get(0),
            )
            .optional()?;
        if orphan.is_some() {
            return Ok(Some(Break {
                id: None,
                sequence: self.place.sequence,
                reason: BreakReason::PayloadNotInChain,
            }));
        }
        Ok(None)
    }

    fn stranger(&self) -> Result<Option<ActivityId>, StoreError> {
        let mut known = HashSet::new();
        links::each_after(self.connection, 0, |entry| {
            known.insert(entry.id.order());
            Ok::<_, StoreError>(ControlFlow::Continue(()))
        })?;
        let mut statement = self
            .connection
            .prepare("SELECT id, id_tail FROM records ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (order, tail) = (unsigned(row.get(0)?), unsigned(row.get(1)?));
            if !known.contains(&order) {
                return Ok(Some(ActivityId::from_halves(order, tail)));
            }
        }
        Ok(None)
    }
}

fn holds(stored: &StoredLink, expected: Link, well_formed: bool) -> Result<Link, Stop> {
    if stored.hash == expected.hash && stored.sequence == expected.sequence && well_formed {
        Ok(expected)
    } else {
        Err(Stop::Broken(BreakReason::HashMismatch))
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.into())
    }
}
