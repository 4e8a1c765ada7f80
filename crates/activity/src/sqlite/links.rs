//! The entries of the hash chain as rows. What a batch adds to the chain is one row, a *run*: the
//! sequence of its first entry, and all of its entries one after the other, each of the same size:
//!
//! ```text
//! entry = kind:u8  record:16 bytes  hash:32 bytes
//! ```
//!
//! A row for every entry would cost a call more than its arguments and its response do.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, params};

use super::codes::{signed, unsigned};
use crate::chain::{EntryKind, Hash, Link};
use crate::id::ActivityId;
use crate::store::StoreError;

const ENTRY: usize = 1 + 16 + 32;

/// An entry that is to be stored. A checkpoint is about no record.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagedLink {
    pub(super) link: Link,
    pub(super) kind: EntryKind,
    pub(super) id: Option<ActivityId>,
}

/// An entry as it was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredLink {
    pub(super) sequence: u64,
    /// Nothing if what is there is no kind of entry.
    pub(super) kind: Option<EntryKind>,
    pub(super) id: ActivityId,
    pub(super) hash: Hash,
}

impl StoredLink {
    /// The record that it is about; a checkpoint is about none.
    pub(super) fn named(&self) -> Option<ActivityId> {
        Some(self.id).filter(|id| id.order() != 0)
    }
}

/// Stores entries that follow each other.
pub(super) fn append(connection: &Connection, links: &[StagedLink]) -> rusqlite::Result<()> {
    let Some(first) = links.first() else {
        return Ok(());
    };
    let mut entries = Vec::with_capacity(ENTRY * links.len());
    for staged in links {
        let (order, tail) = staged.id.map_or((0, 0), |id| (id.order(), id.tail()));
        entries.push(staged.kind.code());
        entries.extend_from_slice(&order.to_be_bytes());
        entries.extend_from_slice(&tail.to_be_bytes());
        entries.extend_from_slice(&staged.link.hash.0);
    }
    connection
        .prepare_cached("INSERT INTO chain (first, entries) VALUES (?1, ?2)")?
        .execute(params![signed(first.link.sequence), entries])?;
    Ok(())
}

/// The end of the chain.
pub(super) fn head(connection: &Connection) -> rusqlite::Result<Link> {
    let last = connection
        .prepare_cached("SELECT first, entries FROM chain ORDER BY first DESC LIMIT 1")?
        .query_row([], |row| {
            let first = unsigned(row.get(0)?);
            Ok(read_run(first, row.get_ref(1)?.as_blob()?).last())
        })
        .optional()?;
    Ok(last.flatten().map_or(Link::GENESIS, |last| Link {
        sequence: last.sequence,
        hash: last.hash,
    }))
}

/// The record that the last entry about a record is about.
pub(super) fn last_record(connection: &Connection) -> rusqlite::Result<Option<ActivityId>> {
    let mut runs =
        connection.prepare("SELECT first, entries FROM chain ORDER BY first DESC LIMIT 1000")?;
    let mut rows = runs.query([])?;
    while let Some(row) = rows.next()? {
        let entries = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let happened = |link: &StoredLink| link.kind != Some(EntryKind::Carried);
        let records = read_run(unsigned(row.get(0)?), entries).filter(happened);
        if let Some(id) = records.filter_map(|link| link.named()).last() {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The sequence of the first entry that is still there.
pub(super) fn oldest(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let oldest: Option<i64> = connection
        .prepare_cached("SELECT min(first) FROM chain")?
        .query_row([], |row| row.get(0))?;
    Ok(oldest.map(unsigned))
}

/// Visits the entries after the given one, in order, until there are no more or it is told to stop.
pub(super) fn each_after<E: From<rusqlite::Error>>(
    connection: &Connection,
    after: u64,
    mut visit: impl FnMut(StoredLink) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    // The run in which it continues begins before it, or with it.
    let mut runs = connection.prepare_cached(
        "SELECT first, entries FROM chain \
         WHERE first >= coalesce((SELECT max(first) FROM chain WHERE first <= ?1 + 1), 0) \
         ORDER BY first",
    )?;
    let mut rows = runs.query([signed(after)])?;
    while let Some(row) = rows.next()? {
        let first = unsigned(row.get(0)?);
        let entries = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        for link in read_run(first, entries) {
            if link.sequence > after && visit(link)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The entries that ended a record, after the given one: their sequence, and the record's order. A
/// record that is carried has ended before.
pub(super) fn ends_after(
    connection: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, u64)>, StoreError> {
    let mut ends = Vec::new();
    each_after(connection, after, |link| {
        if matches!(link.kind, Some(EntryKind::End | EntryKind::Whole)) {
            ends.push((link.sequence, link.id.order()));
        }
        Ok::<_, StoreError>(if ends.len() < limit {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    Ok(ends)
}

/// The last entries of all records that have ended, those that were carried included.
pub(super) fn all_ends(connection: &Connection) -> Result<Vec<(u64, u64)>, StoreError> {
    let mut ends = Vec::new();
    each_after(connection, 0, |link| {
        if matches!(
            link.kind,
            Some(EntryKind::End | EntryKind::Whole | EntryKind::Carried)
        ) {
            ends.push((link.sequence, link.id.order()));
        }
        Ok::<_, StoreError>(ControlFlow::Continue(()))
    })?;
    Ok(ends)
}

/// Removes the entries up to and including this one.
pub(super) fn cut(connection: &Connection, through: u64) -> rusqlite::Result<()> {
    let last: Option<(i64, Vec<u8>)> = connection
        .prepare_cached(
            "SELECT first, entries FROM chain WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
        )?
        .query_row([signed(through)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    connection
        .prepare_cached("DELETE FROM chain WHERE first <= ?1")?
        .execute([signed(through)])?;
    let Some((first, entries)) = last else {
        return Ok(());
    };
    let removed = usize::try_from(through + 1 - unsigned(first)).unwrap_or(usize::MAX);
    let kept = entries.get(removed.saturating_mul(ENTRY)..);
    if let Some(kept @ [_, ..]) = kept {
        connection
            .prepare_cached("INSERT INTO chain (first, entries) VALUES (?1, ?2)")?
            .execute(params![signed(through + 1), kept])?;
    }
    Ok(())
}

/// What is left of an entry that was cut in half is an entry of no kind.
fn read_run(first: u64, entries: &[u8]) -> impl Iterator<Item = StoredLink> + '_ {
    (first..)
        .zip(entries.chunks(ENTRY))
        .map(|(sequence, entry)| {
            let whole = <&[u8; ENTRY]>::try_from(entry).ok();
            let (kind, rest) = whole.map_or((0, &[][..]), |entry| (entry[0], &entry[1..]));
            let number = |at: usize| {
                let bytes = rest.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(0, u64::from_be_bytes)
            };
            let hash = rest.get(16..).and_then(|hash| hash.try_into().ok());
            StoredLink {
                sequence,
                kind: EntryKind::from_code(kind.into()),
                id: ActivityId::from_halves(number(0), number(8)),
                hash: Hash(hash.unwrap_or_default()),
            }
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn staged(sequence: u64) -> StagedLink {
        let kinds = [EntryKind::Start, EntryKind::End, EntryKind::Whole];
        let kind = kinds[usize::try_from(sequence % 3).unwrap()];
        StagedLink {
            link: Link {
                sequence,
                hash: Hash::of(&sequence.to_be_bytes()),
            },
            kind,
            id: Some(ActivityId::from_halves(sequence, u64::MAX - sequence)),
        }
    }

    fn sequences(connection: &Connection, after: u64) -> Vec<u64> {
        let mut found = Vec::new();
        each_after(connection, after, |link| {
            let expected = staged(link.sequence);
            assert_eq!(
                (link.kind, link.named()),
                (Some(expected.kind), expected.id)
            );
            assert_eq!(link.hash, expected.link.hash);
            found.push(link.sequence);
            Ok::<_, rusqlite::Error>(ControlFlow::Continue(()))
        })
        .unwrap();
        found
    }

    proptest! {
        #[test]
        fn runs_are_one_chain_however_they_were_written_and_cut(
            runs in prop::collection::vec(1..6_u64, 1..8),
            cuts in prop::collection::vec(0..40_u64, 0..4),
            after in 0..40_u64,
        ) {
            let connection = Connection::open_in_memory().unwrap();
            let table = "CREATE TABLE chain (first INTEGER PRIMARY KEY, entries BLOB NOT NULL)";
            connection.execute(table, []).unwrap();
            let mut last = 0;
            for run in runs {
                let links: Vec<_> = (last + 1..=last + run).map(staged).collect();
                append(&connection, &links).unwrap();
                last += run;
            }
            for through in &cuts {
                cut(&connection, *through).unwrap();
            }
            let removed = cuts.into_iter().max().unwrap_or(0);
            let expected: Vec<u64> = (after.max(removed) + 1..=last).collect();
            prop_assert_eq!(sequences(&connection, after), expected.clone());
            let ends = expected.iter().filter(|sequence| **sequence % 3 != 0).count();
            prop_assert_eq!(ends_after(&connection, after, usize::MAX).unwrap().len(), ends);
            prop_assert_eq!(ends_after(&connection, after, 2).unwrap().len(), ends.min(2));
            let some_left = removed < last;
            prop_assert_eq!(oldest(&connection).unwrap(), some_left.then_some(removed + 1));
            let head = head(&connection).unwrap();
            prop_assert_eq!(head, if some_left { staged(last).link } else { Link::GENESIS });
        }
    }
}
