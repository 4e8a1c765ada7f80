//! Entries that were stored while a watcher was away, as the events they were.

use std::ops::ControlFlow;

use rusqlite::Connection;

use super::batch::event;
use super::links;
use super::row::{self, Part};
use crate::chain::EntryKind;
use crate::event::Replay;
use crate::store::StoreError;

pub(super) fn replay(
    connection: &mut Connection,
    after: u64,
    limit: u32,
) -> Result<Replay, StoreError> {
    let transaction = connection.transaction()?;
    let head = links::head(&transaction)?.sequence;
    let oldest = links::oldest(&transaction)?.unwrap_or(head + 1);
    if after > head || after + 1 < oldest {
        return Ok(Replay {
            events: Vec::new(),
            through: head,
            place_lost: true,
        });
    }
    let (mut events, mut through) = (Vec::new(), after);
    let last = after.saturating_add(limit.into());
    links::each_after(&transaction, after, |entry| {
        if entry.sequence > last {
            return Ok(ControlFlow::Break(()));
        }
        through = entry.sequence;
        // What retention enters did not happen then.
        let retention = [EntryKind::Checkpoint, EntryKind::Carried];
        let kind = entry.kind.filter(|kind| !retention.contains(kind));
        let order = entry.id.order();
        if let Some(kind) = kind
            && let Some(mut halves) = row::readable(row::find(&transaction, order))?.flatten()
        {
            if let Some(arguments) = &mut halves.started.arguments {
                let text = row::read_body(&transaction, Part::Arguments, order);
                arguments.text = row::readable(text)?.flatten();
            }
            events.push(event(through, kind, &halves.started, halves.ended.as_ref()));
        }
        Ok::<_, StoreError>(ControlFlow::Continue(()))
    })?;
    Ok(Replay {
        events,
        through,
        place_lost: false,
    })
}
