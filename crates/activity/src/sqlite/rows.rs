//! Many rows put into one table. Every run of a statement opens the table and finds its end anew,
//! which costs about as much as the row; a statement that takes several rows does that once.

use rusqlite::{CachedStatement, Connection, Statement, ToSql};

/// How many rows a statement takes; those that are left over are put in one by one.
const AT_ONCE: usize = 16;

/// Puts rows into a table.
pub(super) struct Rows<'a> {
    several: CachedStatement<'a>,
    one: CachedStatement<'a>,
}

/// Takes the values of a statement, one after the other.
pub(super) struct Values<'a, 'b> {
    statement: &'a mut Statement<'b>,
    taken: usize,
}

impl<'a> Rows<'a> {
    /// `into` is the table with its columns, if not all of them are given.
    pub(super) fn prepare(
        connection: &'a Connection,
        into: &str,
        columns: usize,
    ) -> rusqlite::Result<Self> {
        let row = format!("({})", vec!["?"; columns].join(", "));
        let prepare = |rows: usize| {
            let rows = vec![row.as_str(); rows].join(", ");
            // Should a row be refused, the whole batch is rolled back anyway. Said here, it spares
            // SQLite to remember how to take back this statement alone.
            connection.prepare_cached(&format!("INSERT OR ROLLBACK INTO {into} VALUES {rows}"))
        };
        Ok(Self {
            several: prepare(AT_ONCE)?,
            one: prepare(1)?,
        })
    }

    /// Puts in a row for each item; `give` gives the values of all columns.
    pub(super) fn insert<T>(
        &mut self,
        items: &[T],
        give: impl Fn(&mut Values<'_, '_>, &T) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let chunks = items.chunks_exact(AT_ONCE);
        let rest = chunks.remainder().chunks(1);
        for chunk in chunks {
            insert(&mut self.several, chunk, &give)?;
        }
        for item in rest {
            insert(&mut self.one, item, &give)?;
        }
        Ok(())
    }
}

fn insert<T>(
    statement: &mut Statement<'_>,
    items: &[T],
    give: impl Fn(&mut Values<'_, '_>, &T) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut values = Values {
        statement,
        taken: 0,
    };
    for item in items {
        give(&mut values, item)?;
    }
    statement.raw_execute()?;
    Ok(())
}

impl Values<'_, '_> {
    pub(super) fn take(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.taken += 1;
        self.statement.raw_bind_parameter(self.taken, value)
    }
}
