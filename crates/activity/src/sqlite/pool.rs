//! A few connections that only read, lent out to one question at a time.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::store::StoreError;

const READERS: usize = 4;

#[derive(Debug)]
pub(super) struct Pool {
    free: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl Pool {
    pub(super) fn open(database: &Path) -> rusqlite::Result<Arc<Self>> {
        let free = (0..READERS)
            .map(|_| open_reader(database))
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
            let mut connection = pool.take().ok_or(StoreError::Closed)?;
            let answer = question(&mut connection);
            pool.free().push(connection);
            drop(permit);
            answer
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

/// Keeps prepared statements prepared. Otherwise this build of SQLite compiles a statement again
/// whenever a bound value could make it choose another index, which is nearly always.
pub(super) fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

pub(super) fn open_reader(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    keep_plans(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}
