//! Interned words: a server, tool or client name is stored once and referred to by number.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

/// Names come from callers, also made-up ones; remembering is only an optimisation.
const MOST_REMEMBERED: usize = 4_096;

/// So many names may be unused before they are looked for.
const BEARABLE: u64 = 1_024;

#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashMap<Arc<str>, i64, foldhash::fast::RandomState>,
    /// How many were added since unused ones were removed.
    added: u64,
    /// How many there were then.
    kept: u64,
}

impl Names {
    /// Names of a store that is opened.
    pub(super) fn open(connection: &Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            added: count(connection)?,
            ..Self::default()
        })
    }

    /// The number of a name, new or not.
    pub(super) fn intern(
        &mut self,
        connection: &Connection,
        name: Option<&Arc<str>>,
    ) -> rusqlite::Result<Option<i64>> {
        let Some(name) = name else { return Ok(None) };
        if let Some(number) = self.known.get(name) {
            return Ok(Some(*number));
        }
        let known: Option<i64> = connection
            .prepare_cached("SELECT id FROM names WHERE text = ?1")?
            .query_row([name], |row| row.get(0))
            .optional()?;
        let number = if let Some(number) = known {
            number
        } else {
            self.added += 1;
            connection
                .prepare_cached("INSERT INTO names (text) VALUES (?1)")?
                .insert([name])?
        };
        if self.known.len() >= MOST_REMEMBERED {
            self.known.clear();
        }
        self.known.insert(Arc::clone(name), number);
        Ok(Some(number))
    }

    /// After a rollback the numbers of new names may be given to others.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}

/// Removes the names that no record and no sum has, once there may be many of them.
pub(super) fn forget_unused(connection: &Connection, names: &mut Names) -> rusqlite::Result<()> {
    if names.added < BEARABLE.max(names.kept) {
        return Ok(());
    }
    // Compiled anew each time: it is rare, and its plan may depend on what there is.
    connection.execute(
        "DELETE FROM names WHERE id NOT IN (\
         SELECT server FROM records WHERE server IS NOT NULL \
         UNION SELECT tool FROM records WHERE tool IS NOT NULL \
         UNION SELECT client FROM records WHERE client IS NOT NULL \
         UNION SELECT server FROM hourly UNION SELECT tool FROM hourly \
         UNION SELECT client FROM hourly \
         UNION SELECT server FROM hourly_histograms UNION SELECT tool FROM hourly_histograms)",
        [],
    )?;
    names.forget();
    names.added = 0;
    names.kept = count(connection)?;
    Ok(())
}

fn count(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM names";
    connection.query_row(sql, [], |row| row.get(0).map(super::codes::unsigned))
}
