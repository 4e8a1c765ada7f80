//! Pruning, one short slice at a time: records go, those that stay are carried to the end of the
//! chain, a checkpoint says where the rest of it continues from, and the space is given back.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior, params};

use super::codes::{signed, unsigned};
use super::derived::{self, Derived};
use super::index::{self, Drafts};
use super::links::{self, StagedLink};
use super::names;
use super::row;
use super::write::{record_bytes, stored_bytes};
use super::writer::Writer;
use crate::chain::{Checkpoint, EntryKind, Link};
use crate::retention::{
    Candidate, Fate, Holdings, PruneStep, RetentionPolicy, Share, is_protected,
};
use crate::store::StoreError;

/// How many records one slice looks at; about a millisecond of work.
pub(super) const SLICE: usize = 48;

/// After so many records that were carried with none removed, it is time to wonder why.
const MANY: u64 = 1_024;

/// How long one step goes on; callers wait for it.
const STEP: Duration = Duration::from_millis(4);

/// How many pages of the file one slice gives back.
const PAGES: u64 = 64;

/// How far beyond its limit the file may grow while something is removed.
const RESERVED_PAGES: i64 = 64;

/// A record at the beginning of the chain that has ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    /// Its last entry.
    through: Link,
    order: u64,
    /// Whether an earlier slice has carried it.
    carried: bool,
    candidate: Candidate,
}

/// The beginning of the chain.
#[derive(Debug, Default)]
struct Beginning {
    /// In the order of the chain.
    ended: Vec<Ended>,
    /// Records that are still open, with the place of their start.
    open: Vec<(u64, u64)>,
}

pub(super) fn step(
    writer: &mut Writer,
    policy: RetentionPolicy,
    now: Timestamp,
) -> Result<PruneStep, StoreError> {
    match writer.flush() {
        // A full store is what pruning is for. What cannot be summed up now goes without.
        Ok(()) | Err(StoreError::Full) => {}
        Err(error) => return Err(error),
    }
    let believed = writer.time.observe(now);
    let began = Instant::now();
    let mut removed = None;
    while let Some(slice) = with_reserve(writer, |writer| remove_slice(writer, policy, believed))? {
        *removed.get_or_insert(0) += slice;
        if began.elapsed() > STEP {
            break;
        }
    }
    if let Some(removed) = removed {
        return Ok(PruneStep::Removed(removed));
    }
    let released = release_slice(&writer.connection)?;
    if released > 0 {
        return Ok(PruneStep::Released(released));
    }
    derived::forget_old_sums(&writer.connection, believed)?;
    names::forget_unused(&writer.connection, &mut writer.names)?;
    writer.time.save(&writer.connection)?;
    Ok(PruneStep::Done)
}

/// Removes one slice if the log is larger than it may be. It may be a tenth larger than its limits
/// unless it is being brought back. Returns whether there is more to do.
pub(super) fn trim(
    writer: &mut Writer,
    policy: RetentionPolicy,
    is_outgrown: bool,
) -> Result<bool, StoreError> {
    let held = holdings(writer)?.all;
    let exceeded = if is_outgrown {
        policy.is_exceeded_by(held)
    } else {
        policy.is_outgrown_by(held)
    };
    if !exceeded {
        if is_outgrown {
            names::forget_unused(&writer.connection, &mut writer.names)?;
        }
        return Ok(false);
    }
    writer.flush()?;
    let removed = with_reserve(writer, |writer| {
        remove_slice(writer, policy, crate::clock::now())
    })?;
    Ok(removed.is_some())
}

/// Removing takes a little space before it gives any back, so it may go beyond the limit.
fn with_reserve<T>(
    writer: &mut Writer,
    work: impl FnOnce(&mut Writer) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let Some(limit) = writer.most_pages else {
        return work(writer);
    };
    let reserved = limit.saturating_add(RESERVED_PAGES);
    writer
        .connection
        .pragma_update(None, "max_page_count", reserved)?;
    let result = work(writer);
    writer
        .connection
        .pragma_update(None, "max_page_count", limit)?;
    result
}

/// Removes or carries the first records of the chain. Returns how many were removed, or nothing if
/// all may stay where they are.
fn remove_slice(
    writer: &mut Writer,
    policy: RetentionPolicy,
    now: Timestamp,
) -> Result<Option<u64>, StoreError> {
    let held = holdings(writer)?;
    let beginning = read_beginning(&writer.connection)?;
    let mut ended = beginning.ended;
    let candidates: Vec<Candidate> = ended.iter().map(|record| record.candidate).collect();
    let mut fates = policy.fates(held, &candidates, now);
    if !prepare_to_carry(writer, &ended, &mut fates)? {
        return Ok(None);
    }
    ended.truncate(fates.len());
    let Some(last) = ended.last() else {
        return Ok(None);
    };
    let cut = last.through;
    let (mut removed, mut carried) = (Vec::new(), Vec::new());
    for (record, fate) in ended.into_iter().zip(fates) {
        match fate {
            Fate::Remove => removed.push(record),
            Fate::Carry => carried.push(record.order),
        }
    }
    writer.carried = if removed.is_empty() {
        writer.carried + carried.len() as u64
    } else {
        0
    };
    // Counting takes long; so many is more than a few.
    if writer.carried > MANY && writer.carried > count_records(&writer.connection)? {
        // All of the chain was carried and nothing could be removed: the count must be wrong.
        writer.carried = 0;
        derived::count_holdings(&writer.connection)?;
        return Ok(None);
    }
    let mut orders: Vec<u64> = removed.iter().map(|record| record.order).collect();
    orders.sort_unstable();
    let first_waiting = writer.waiting.front().map_or(u64::MAX, Derived::sequence);
    let transaction = writer
        .connection
        .transaction_with_behavior(TransactionBehavior::Immediate)?;
    remove_records(&transaction, &orders)?;
    let is_damaged = match index::forget(&transaction, &orders) {
        Err(StoreError::Corrupt(_)) => true,
        result => result.map(|()| false)?,
    };
    let mut chain = Extension::of(writer.head);
    for order in carried {
        chain.restate(&transaction, order, EntryKind::Carried)?;
    }
    for (order, start) in beginning.open {
        if start < cut.sequence {
            chain.restate(&transaction, order, EntryKind::Start)?;
        }
    }
    chain.push(leave_checkpoint(
        &transaction,
        chain.head,
        cut,
        orders.len() as u64,
        now,
    )?);
    links::append(&transaction, &chain.entries)?;
    links::cut(&transaction, cut.sequence)?;
    if is_damaged {
        tracing::warn!("the index of the activity log was damaged and is rebuilt");
        index::rebuild(&transaction)?;
    }
    let (mut all, mut protected) = (Share::default(), Share::default());
    for record in &removed {
        if record.carried || record.through.sequence < first_waiting {
            all.add(record.candidate.bytes);
            if record.candidate.protected {
                protected.add(record.candidate.bytes);
            }
        }
    }
    derived::change_holdings(&transaction, all, protected, -1)?;
    transaction.commit()?;
    writer.head = chain.head;
    if is_damaged {
        writer.drafts = Drafts::default();
    } else {
        writer.drafts.forget(&orders);
    }
    writer
        .waiting
        .retain(|derived| derived.sequence() > cut.sequence);
    Ok(Some(orders.len() as u64))
}

fn count_records(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM records";
    connection.query_row(sql, [], |row| row.get(0).map(unsigned))
}

/// What the log holds, with what is not in the sums yet.
pub(super) fn holdings(writer: &Writer) -> rusqlite::Result<Holdings> {
    let mut held = derived::holdings(&writer.connection)?;
    for derived in &writer.waiting {
        derived.add_to(&mut held);
    }
    Ok(held)
}

/// Makes sure that the records to be carried are summed up and indexed, which is known by the entry
/// that ended them. What cannot be is left alone, with everything behind it. Returns whether there is
/// anything to do.
fn prepare_to_carry(
    writer: &mut Writer,
    ended: &[Ended],
    fates: &mut Vec<Fate>,
) -> Result<bool, StoreError> {
    let last_new = ended
        .iter()
        .zip(fates.iter())
        .rfind(|(record, fate)| **fate == Fate::Carry && !record.carried);
    let Some(last) = last_new.map(|(record, _)| record.through.sequence) else {
        return Ok(!fates.is_empty());
    };
    let indexed = if last > index::indexed_sequence(&writer.connection)? {
        writer.write_all_blocks()
    } else {
        Ok(())
    };
    let first_unsure = match indexed {
        Ok(()) => writer.waiting.front().map_or(u64::MAX, Derived::sequence),
        Err(StoreError::Full) => 0,
        Err(error) => return Err(error),
    };
    let is_unsure = |(record, fate): (&Ended, &Fate)| {
        *fate == Fate::Carry && !record.carried && record.through.sequence >= first_unsure
    };
    if let Some(sure) = ended.iter().zip(fates.iter()).position(is_unsure) {
        fates.truncate(sure);
    }
    Ok(!fates.is_empty())
}

/// A record goes with its last entry: until then that entry protects all of it.
fn read_beginning(connection: &Connection) -> Result<Beginning, StoreError> {
    let mut beginning = Beginning::default();
    links::each_after(connection, 0, |entry| {
        let order = entry.id.order();
        if entry.kind == Some(EntryKind::Checkpoint) {
            return Ok(ControlFlow::Continue(()));
        }
        // A row that was removed or changed outside the log must not stop everything else from
        // being pruned.
        let halves = row::readable(row::find(connection, order))?.flatten();
        let started = halves.as_ref().map(|halves| &halves.started);
        let ended = halves.as_ref().and_then(|halves| halves.ended.as_ref());
        if entry.kind == Some(EntryKind::Start) {
            if started.is_some() && ended.is_none() {
                beginning.open.push((order, entry.sequence));
            }
            return Ok(ControlFlow::Continue(()));
        }
        let payloads = stored_bytes(connection, order)?;
        beginning.ended.push(Ended {
            through: Link {
                sequence: entry.sequence,
                hash: entry.hash,
            },
            order,
            carried: entry.kind == Some(EntryKind::Carried),
            candidate: Candidate {
                timestamp: entry.id.timestamp(),
                bytes: started.map_or(payloads, |started| record_bytes(started, ended, payloads)),
                protected: started
                    .zip(ended)
                    .is_some_and(|(started, ended)| is_protected(started, ended)),
            },
        });
        Ok::<_, StoreError>(if beginning.ended.len() < SLICE {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    Ok(beginning)
}

/// Entries that are added to the chain.
struct Extension {
    head: Link,
    entries: Vec<StagedLink>,
}

impl Extension {
    fn of(head: Link) -> Self {
        Self {
            head,
            entries: Vec::new(),
        }
    }

    fn push(&mut self, entry: StagedLink) {
        self.head = entry.link;
        self.entries.push(entry);
    }

    /// Enters a record again, because its entry is about to go.
    fn restate(
        &mut self,
        connection: &Connection,
        order: u64,
        kind: EntryKind,
    ) -> Result<(), StoreError> {
        let halves = row::find(connection, order)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let covered = halves.ended.as_ref().filter(|_| kind != EntryKind::Start);
        self.push(StagedLink {
            link: self.head.extend(&halves.started, covered, kind),
            kind,
            id: Some(halves.started.id),
        });
        Ok(())
    }
}

fn remove_records(connection: &Connection, orders: &[u64]) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM payloads WHERE record = ?1",
        "DELETE FROM records WHERE id = ?1",
    ] {
        let mut statement = connection.prepare_cached(sql)?;
        for order in orders {
            statement.execute([signed(*order)])?;
        }
    }
    Ok(())
}

fn leave_checkpoint(
    connection: &Connection,
    head: Link,
    through: Link,
    removed: u64,
    now: Timestamp,
) -> rusqlite::Result<StagedLink> {
    let before: i64 = connection
        .prepare_cached("SELECT coalesce(max(removed_records), 0) FROM checkpoints")?
        .query_row([], |row| row.get(0))?;
    // Milliseconds are what is stored, so they are also what is hashed.
    let made_at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
    let removed_records = unsigned(before) + removed;
    let checkpoint = Checkpoint {
        through,
        removed_records,
        made_at,
    };
    let link = head.extend_checkpoint(&checkpoint);
    connection
        .prepare_cached("INSERT INTO checkpoints VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![
            signed(link.sequence),
            signed(through.sequence),
            through.hash.0,
            signed(removed_records),
            made_at.as_millisecond(),
        ])?;
    connection
        .prepare_cached("DELETE FROM checkpoints WHERE sequence <= ?1")?
        .execute([signed(through.sequence)])?;
    Ok(StagedLink {
        link,
        kind: EntryKind::Checkpoint,
        id: None,
    })
}

fn release_slice(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let free = unsigned(number("freelist_count")?);
    if free == 0 {
        return Ok(0);
    }
    let pages = free.min(PAGES);
    // Each step of the statement gives one page back; it must be stepped to its end.
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(pages * unsigned(number("page_size")?))
}
