//! Opening the store: securing its files, setting a damaged one aside, bringing its layout up to
//! date and ending what the last process left open.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::batch::{Batch, Open};
use super::codes::{Code, unsigned};
use super::error::OpenError;
use super::files::Files;
use super::index::{self, Drafts};
use super::journal;
use super::links;
use super::names::Names;
use super::pool::keep_plans;
use super::row::{self, COLUMNS, JOINS};
use super::schema::{MIGRATIONS, check, migrate};
use super::time_keeper::TimeKeeper;
use super::{derived, write};
use crate::chain::Link;
use crate::record::Ended;
use crate::store::{Entry, StoreError};
use crate::words::Status;

/// How long the look for damage may take: small logs are checked whole, large ones in part.
const CHECK: Duration = Duration::from_millis(300);

/// How often the clock is looked at meanwhile, in steps of SQLite's machine.
const CHECK_STEPS: i32 = 10_000;

/// A connection that is ready to write, and what had to be done for it.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) connection: Connection,
    pub(super) head: Link,
    pub(super) names: Names,
    pub(super) time: TimeKeeper,
    /// What has ended and is in no block of the index.
    pub(super) drafts: Drafts,
    /// How large the file may become.
    pub(super) most_pages: Option<i64>,
    pub(super) moved_aside: Option<PathBuf>,
    pub(super) backup: Option<PathBuf>,
    pub(super) interrupted: u64,
    /// Whether the index was not as it was written, and was rebuilt.
    pub(super) rebuilt: bool,
}

pub(super) fn prepare(files: &Files, max_file_bytes: Option<u64>) -> Result<Prepared, OpenError> {
    let now = crate::clock::now();
    match attempt(files, max_file_bytes, now) {
        Err(OpenError::Store(StoreError::Corrupt(error))) => {
            tracing::error!(%error, "the activity log is damaged and is set aside");
            let moved_aside = Some(files.move_aside(now)?);
            let prepared = attempt(files, max_file_bytes, now)?;
            Ok(Prepared {
                moved_aside,
                ..prepared
            })
        }
        other => other,
    }
}

fn attempt(
    files: &Files,
    max_file_bytes: Option<u64>,
    now: Timestamp,
) -> Result<Prepared, OpenError> {
    files.secure_database()?;
    let mut connection = open_writer(files)?;
    look_for_damage(&mut connection)?;
    let backup = migrate(&mut connection, files, MIGRATIONS, now)?;
    let most_pages = limit_size(&connection, max_file_bytes)?;
    let mut head = links::head(&connection)?;
    // Before anything is recorded with the time of a clock that may be wrong.
    let time = TimeKeeper::load(&connection)?;
    store_journal(&mut connection, &mut head, files)?;
    let interrupted = end_what_was_open(&mut connection, &mut head)?;
    sum_up(&mut connection)?;
    let (drafts, rebuilt) = index_all(&mut connection)?;
    Ok(Prepared {
        names: Names::open(&connection)?,
        time,
        connection,
        head,
        drafts,
        most_pages,
        moved_aside: None,
        backup,
        interrupted,
        rebuilt,
    })
}

fn open_writer(files: &Files) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(files.database(), flags)?;
    // Only a backup tool can be in the way; waiting for it is better than failing calls.
    connection.busy_timeout(Duration::from_secs(30))?;
    keep_plans(&connection)?;
    // Hot pages are written once per so many, not once per thousand as by default.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    // Somewhat more than a checkpoint leaves, so that its pages are overwritten instead of cut off
    // and allocated again.
    connection.pragma_update(None, "journal_size_limit", 48 * 1024 * 1024)?;
    Ok(connection)
}

fn look_for_damage(connection: &mut Connection) -> Result<(), OpenError> {
    let deadline = Instant::now() + CHECK;
    connection.progress_handler(CHECK_STEPS, Some(move || Instant::now() > deadline))?;
    let verdict = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
        .optional();
    connection.progress_handler(0, None::<fn() -> bool>)?;
    match verdict {
        Ok(Some(verdict)) if verdict != "ok" => {
            Err(StoreError::Corrupt(Arc::new(Damage { verdict })).into())
        }
        // Running out of time means that so far nothing was wrong.
        Err(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) =>
        {
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{verdict}")]
struct Damage {
    verdict: String,
}

fn limit_size(
    connection: &Connection,
    max_file_bytes: Option<u64>,
) -> rusqlite::Result<Option<i64>> {
    let Some(most) = max_file_bytes else {
        return Ok(None);
    };
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = i64::try_from(most / unsigned(page).max(1)).unwrap_or(i64::MAX);
    connection.pragma_update(None, "max_page_count", pages)?;
    Ok(Some(pages))
}

/// For those who only read: stores what a process that died left in the journal, and no more, as
/// SQLite does with its own. What that process had told its callers is recorded must be found; what
/// it had begun is for the next start to end.
///
/// Another process that is running does that itself.
pub(super) fn store_left_behind(files: &Files) -> Result<(), OpenError> {
    if files.journal_is_empty() {
        return Ok(());
    }
    let lock = files.lock()?;
    files.secure_database()?;
    let mut connection = open_writer(files)?;
    check(&connection, files, MIGRATIONS)?;
    let mut head = links::head(&connection)?;
    store_journal(&mut connection, &mut head, files)?;
    sum_up(&mut connection)?;
    drop((connection, lock));
    Ok(())
}

/// How many entries of the journal the database does not have.
pub(super) fn count_left_behind(connection: &Connection, files: &Files) -> Result<u64, OpenError> {
    let mut waiting = 0;
    for entry in journal::left_behind(files)? {
        waiting += u64::from(needs(connection, &entry)?.is_some());
    }
    Ok(waiting)
}

/// Stores what the last process had in its journal and not in the database.
fn store_journal(
    connection: &mut Connection,
    head: &mut Link,
    files: &Files,
) -> Result<(), OpenError> {
    let entries = journal::left_behind(files)?;
    if !entries.is_empty() {
        // The journal is gone afterwards, so this must be on the disk.
        connection.pragma_update(None, "synchronous", "FULL")?;
        let transaction = connection.transaction()?;
        let mut batch = Batch::new(*head);
        for entry in &entries {
            let Some(open) = needs(&transaction, entry)? else {
                continue;
            };
            if let Err(error) = batch.stage(&open, entry) {
                tracing::warn!(%error, "an entry of the activity log's journal is left out");
            }
        }
        if !batch.is_empty() {
            write::write(&transaction, &mut Names::default(), &batch)?;
            transaction.commit()?;
            *head = batch.head;
        }
    }
    journal::discard(files)
}

/// What an entry needs to be staged; nothing if the database has the entry already.
fn needs(connection: &Connection, entry: &Entry) -> Result<Option<Open>, StoreError> {
    let id = entry.id();
    let Some(halves) = row::find(connection, id.order())? else {
        return Ok(Some(Open::default()));
    };
    let is_end = matches!(entry, Entry::End(..));
    Ok((is_end && halves.ended.is_none())
        .then(|| Open::from_iter([(id.order(), Arc::new(halves.started))])))
}

/// Whatever was running when the last process died has been interrupted.
fn end_what_was_open(connection: &mut Connection, head: &mut Link) -> Result<u64, StoreError> {
    let transaction = connection.transaction()?;
    let interrupted = Ended::interrupted();
    let mut batch = Batch::new(*head);
    {
        // Written out, because a value that is bound cannot be known to have an index.
        let pending = Status::Pending.code();
        let sql = format!("SELECT {COLUMNS} FROM records {JOINS} WHERE records.status = {pending}");
        let mut statement = transaction.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(found) = rows.next()? {
            let Some(halves) = row::readable(row::read(found, 0))? else {
                continue;
            };
            let started = Arc::new(halves.started);
            let id = started.id;
            let open = Open::from_iter([(id.order(), started)]);
            batch.stage_end(&open, id, &interrupted)?;
        }
    }
    if !batch.is_empty() {
        write::write(&transaction, &mut Names::default(), &batch)?;
        transaction.commit()?;
        *head = batch.head;
    }
    Ok(batch.ends.len() as u64)
}

/// Sums up what the last process did not get to, the interrupted records included.
fn sum_up(connection: &mut Connection) -> Result<(), StoreError> {
    loop {
        let transaction = connection.transaction()?;
        let missing = derived::read_missing(&transaction)?;
        let Some(through) = missing.through else {
            return Ok(());
        };
        derived::write_slice(&transaction, &missing.derived)?;
        derived::pass(&transaction, through)?;
        transaction.commit()?;
    }
}

/// Brings the index up to date, and rebuilds it if anything of it is missing or was changed. What does
/// not fill a block is drafted.
fn index_all(connection: &mut Connection) -> Result<(Drafts, bool), StoreError> {
    let drafts = match index_the_rest(connection) {
        // What is derived is no reason to set the records aside.
        Err(StoreError::Corrupt(_)) => None,
        result => Some(result?),
    };
    let counted = derived::is_holdings_counted(connection)?;
    if counted && let Some(drafts) = drafts {
        let records = derived::holdings(connection)?.all.records;
        if index::is_whole(connection, &drafts, records)? {
            return Ok((drafts, false));
        }
    }
    let transaction = connection.transaction()?;
    derived::count_holdings(&transaction)?;
    index::rebuild(&transaction)?;
    transaction.commit()?;
    Ok((Drafts::default(), counted))
}

/// Indexes what the last process did not get to. What does not fill a block is drafted.
fn index_the_rest(connection: &mut Connection) -> Result<Drafts, StoreError> {
    let mut drafts = Drafts::default();
    loop {
        let transaction = connection.transaction()?;
        if index::draft_missing(&transaction, &mut drafts)? == 0 {
            return Ok(drafts);
        }
        while drafts.full() > 0 {
            index::write_next(&transaction, &drafts)?;
            drafts.written();
        }
        transaction.commit()?;
    }
}
