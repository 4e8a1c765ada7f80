//! Interned words: a server, tool or client name is stored once and referred to by number.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

/// Names come from callers, also made-up ones; remembering is only an optimisation.
const MOST_REMEMBERED: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashMap<Arc<str>, i64, foldhash::fast::RandomState>,
}

impl Names {
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
        let number = match known {
            Some(number) => number,
            None => connection
                .prepare_cached("INSERT INTO names (text) VALUES (?1)")?
                .insert([name])?,
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
