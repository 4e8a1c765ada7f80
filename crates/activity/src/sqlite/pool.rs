//! A few connections that only read, lent out to one question at a time.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::store::StoreError;

const READERS: usize = 4;

#[derive(Debug)]
pub(super) struct Pool {
    free: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl Pool {
    pub(super) fn open(
        reader: impl Fn() -> rusqlite::Result<Connection>,
    ) -> rusqlite::Result<Arc<Self>> {
        let free = (0..READERS)
            .map(|_| reader())
            .collect::<Result<Vec<_>, _>>()?;
        let permits = Arc::new(Semaphore::new(READERS));
        Ok(Arc::new(Self {
            free: Mutex::new(free),
            permits,
        }))
    }

    /// Runs a question on a thread that may block.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        let pool = Arc::clone(self);
        let answer = tokio::task::spawn_blocking(move || {
            let mut lent = Lent {
                connection: pool.take(),
                pool,
                _permit: permit,
            };
            let connection = lent.connection.as_mut().ok_or(StoreError::Closed)?;
            question(connection)
        });
        answer
            .await
            .map_err(|error| StoreError::Unavailable(Some(Arc::new(error))))?
    }

    fn take(&self) -> Option<Connection> {
        self.free().pop()
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is given back also if the question panics, and before its permit.
struct Lent {
    connection: Option<Connection>,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.free().extend(self.connection.take());
    }
}

/// Keeps prepared statements prepared. Otherwise this build of SQLite compiles a statement again
/// whenever a bound value could make it choose another index, which is nearly always.
pub(super) fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// How the files of a database are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Somebody else may be writing them.
    Shared,
    /// They are a copy that nobody writes, and nothing can be created beside them.
    Still,
}

pub(super) fn open_reader(database: &Path, sharing: Sharing) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = match sharing {
        Sharing::Shared => Connection::open_with_flags(database, flags)?,
        Sharing::Still => {
            let address = format!("file:{}?immutable=1", in_address(database));
            Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_URI)?
        }
    };
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    keep_plans(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// A path as a part of an address, in which some letters mean something else.
fn in_address(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                text.push(char::from(*byte));
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_question_that_panics_costs_no_connection() {
        let pool = Pool::open(Connection::open_in_memory).unwrap();
        for _ in 0..READERS {
            let failed = pool.run::<()>(|_| panic!("as a bug would")).await;
            assert!(matches!(failed, Err(StoreError::Unavailable(_))));
        }
        let answer = pool.run(|connection| {
            Ok(connection.query_row("SELECT 1", [], |row| row.get::<_, i64>(0))?)
        });
        assert_eq!(answer.await.unwrap(), 1);
    }

    #[test]
    fn a_still_copy_is_read_without_a_file_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        // Everything in this name would mean something in an address.
        let path = folder.path().join("a log?mode=rw#%20é.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .unwrap();
        connection
            .execute_batch("CREATE TABLE things (name TEXT); INSERT INTO things VALUES ('one')")
            .unwrap();
        drop(connection);
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files(), 1);
        let still = open_reader(&path, Sharing::Still).unwrap();
        let name: String = still
            .query_row("SELECT name FROM things", [], |row| row.get(0))
            .unwrap();
        assert_eq!((name.as_str(), files()), ("one", 1));
        still.execute("DELETE FROM things", []).unwrap_err();
    }
}
