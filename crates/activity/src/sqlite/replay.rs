//! Entries that were stored while a watcher was away, as the events they were.

use rusqlite::Connection;

use super::batch::event;
use super::codes::{signed, unsigned};
use super::open::read_head;
use super::row::{self, COLUMNS, JOINS, Part};
use crate::chain::EntryKind;
use crate::event::Replay;
use crate::store::StoreError;

pub(super) fn replay(
    connection: &mut Connection,
    after: u64,
    limit: u32,
) -> Result<Replay, StoreError> {
    let transaction = connection.transaction()?;
    let head = read_head(&transaction)?.sequence;
    let oldest: Option<i64> =
        transaction.query_row("SELECT min(sequence) FROM chain", [], |row| row.get(0))?;
    let oldest = oldest.map_or(head + 1, unsigned);
    if after > head || after + 1 < oldest {
        return Ok(Replay {
            events: Vec::new(),
            through: head,
            place_lost: true,
        });
    }
    let mut statement = transaction.prepare_cached(&format!(
        "SELECT chain.sequence, chain.kind, {COLUMNS} \
         FROM chain LEFT JOIN records ON records.id = chain.record {JOINS} \
         WHERE chain.sequence > ?1 ORDER BY chain.sequence LIMIT ?2"
    ))?;
    let mut rows = statement.query([signed(after), i64::from(limit)])?;
    let (mut events, mut through) = (Vec::new(), after);
    while let Some(found) = rows.next()? {
        through = unsigned(found.get(0)?);
        let kind = EntryKind::from_code(found.get(1)?);
        let Some(kind) = kind.filter(|kind| *kind != EntryKind::Checkpoint) else {
            continue;
        };
        let mut halves = row::read(found, 2)?;
        if let Some(arguments) = &mut halves.started.arguments {
            let order = halves.started.id.order();
            arguments.text = row::read_body(&transaction, Part::Arguments, order)?;
        }
        events.push(event(through, kind, &halves.started, halves.ended.as_ref()));
    }
    Ok(Replay {
        events,
        through,
        place_lost: false,
    })
}
