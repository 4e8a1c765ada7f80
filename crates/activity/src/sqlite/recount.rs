//! The sums once more, from the records that the walk along the chain has found to hold. The chain
//! does not cover the sums; that they agree with what it covers is the next best thing.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, Row};

use super::codes::{Code, signed, unsigned};
use super::derived::{self, KEPT_HOURS, hour_of};
use super::folding::{Folded, folded_hours};
use crate::record::{Ended, Started};
use crate::retention::is_protected;

/// A row of the hourly sums, with names for their numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    hour: i64,
    server: Option<Arc<str>>,
    tool: Option<Arc<str>>,
    client: Option<Arc<str>>,
    intent_type: i64,
    status: i64,
}

/// Records, milliseconds, bytes of requests and of responses.
type Sums = [i64; 4];

#[derive(Debug)]
pub(super) struct Recount {
    /// Ends up to this entry are in the sums.
    through: u64,
    records: u64,
    protected: u64,
    sums: HashMap<Key, Sums>,
    folded: Folded,
}

impl Recount {
    pub(super) fn new(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT through_sequence FROM progress";
        let through: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        Ok(Self {
            through: unsigned(through),
            records: 0,
            protected: 0,
            sums: HashMap::new(),
            folded: folded_hours(connection)?,
        })
    }

    /// Whether a record that ended with the entry of this sequence is in the sums.
    pub(super) fn covers(&self, sequence: u64) -> bool {
        sequence <= self.through
    }

    /// Counts a record that is in the sums.
    pub(super) fn add(&mut self, started: &Started, ended: &Ended) {
        self.records += 1;
        self.protected += u64::from(is_protected(started, ended));
        if !derived::is_counted(started.record_type) {
            return;
        }
        let intent = started.metadata.intent.as_ref();
        let hour = hour_of(started.id.timestamp());
        let is_folded = self.folded.contains(&hour);
        let named = |name: &Option<Arc<str>>| name.clone().filter(|_| !is_folded);
        let key = Key {
            hour,
            server: named(&started.server_name),
            tool: named(&started.tool_name),
            client: named(&started.client_name),
            intent_type: intent
                .and_then(|intent| intent.operation_type)
                .map_or(0, Code::code),
            status: ended.status.code(),
        };
        let one = [
            1,
            signed(ended.duration_ms),
            signed(started.request_bytes),
            signed(ended.response_bytes),
        ];
        let sums = self.sums.entry(key).or_default();
        for (sum, one) in sums.iter_mut().zip(one) {
            *sum = sum.wrapping_add(one);
        }
    }

    /// Whether the sums are what they should be. They outlive the records that retention removes,
    /// and may tell more than the records then, but never less.
    pub(super) fn agrees(
        mut self,
        connection: &Connection,
        some_removed: bool,
        now: Timestamp,
    ) -> rusqlite::Result<bool> {
        let held = derived::holdings(connection)?;
        if held.all.records != self.records || held.protected.records != self.protected {
            return Ok(false);
        }
        let kept_since = hour_of(now) - KEPT_HOURS;
        let mut statement = connection.prepare(
            "SELECT hour, servers.text, tools.text, clients.text, intent_type, status, \
             records, duration_ms, request_bytes, response_bytes FROM hourly \
             LEFT JOIN names AS servers ON servers.id = server \
             LEFT JOIN names AS tools ON tools.id = tool \
             LEFT JOIN names AS clients ON clients.id = client WHERE hour >= ?1",
        )?;
        let mut rows = statement.query([kept_since])?;
        while let Some(row) = rows.next()? {
            let (key, stored) = read(row)?;
            let counted = self.sums.remove(&key).unwrap_or_default();
            let mut pairs = stored.iter().zip(&counted);
            if !pairs
                .all(|(stored, counted)| stored == counted || (some_removed && stored > counted))
            {
                return Ok(false);
            }
        }
        Ok(self.sums.keys().all(|key| key.hour < kept_since))
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<(Key, Sums)> {
    let key = Key {
        hour: row.get(0)?,
        server: row.get(1)?,
        tool: row.get(2)?,
        client: row.get(3)?,
        intent_type: row.get(4)?,
        status: row.get(5)?,
    };
    Ok((key, [row.get(6)?, row.get(7)?, row.get(8)?, row.get(9)?]))
}
