//! The layout of the database, as a list of steps that is only ever added to.

use std::path::PathBuf;

use jiff::Timestamp;
use rusqlite::Connection;

use super::error::OpenError;
use super::files::Files;

/// Marks the file as an activity log ("mcpa").
const APPLICATION_ID: i64 = 0x6d63_7061;

const PAGE_BYTES: i64 = 8 * 1024;

/// Step `n` leads from version `n` to version `n + 1`. Never edit one that was released.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001_initial.sql"),
    include_str!("schema/0002_facts.sql"),
    include_str!("schema/0003_cheaper_records.sql"),
    include_str!("schema/0004_shares.sql"),
];

/// What is known about a file before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    Ours { version: i64 },
    Foreign,
}

/// Brings the database to the newest version. Before a layout with data in it changes, the whole
/// file is copied; the name of the copy is returned.
pub(super) fn migrate(
    connection: &mut Connection,
    files: &Files,
    migrations: &[&str],
    now: Timestamp,
) -> Result<Option<PathBuf>, OpenError> {
    let known = newest(migrations);
    let version = match state(connection)? {
        State::Empty => 0,
        State::Ours { version } => version,
        State::Foreign => return Err(OpenError::Foreign(files.database())),
    };
    if version > known {
        return Err(OpenError::Newer {
            path: files.database(),
            found: version,
            known,
        });
    }
    if version == known {
        return Ok(None);
    }
    let backup = if version > 0 {
        Some(copy(connection, files, version, now)?)
    } else {
        None
    };
    if version == 0 {
        // Both must be set before the first table exists: the size because a record fills a good
        // part of a page and larger ones are fewer to write, and the other because space would
        // never be given back to the disk.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let transaction = connection.transaction()?;
    for step in migrations
        .iter()
        .skip(usize::try_from(version).unwrap_or(0))
    {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(backup)
}

/// Refuses what this binary cannot read; for those who only read.
pub(super) fn check(
    connection: &Connection,
    files: &Files,
    migrations: &[&str],
) -> Result<(), OpenError> {
    let known = newest(migrations);
    match state(connection)? {
        State::Ours { version } if version == known => Ok(()),
        State::Ours { version } if version > known => Err(OpenError::Newer {
            path: files.database(),
            found: version,
            known,
        }),
        // It is brought up to date by whoever opens it for writing.
        State::Ours { version } => Err(OpenError::Older {
            path: files.database(),
            found: version,
            known,
        }),
        State::Empty => Err(OpenError::Missing(files.directory().to_owned())),
        State::Foreign => Err(OpenError::Foreign(files.database())),
    }
}

/// A log that nothing was ever written to, for those who read where there is none.
pub(super) fn nothing() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    for step in MIGRATIONS {
        connection.execute_batch(step)?;
    }
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn state(connection: &Connection) -> rusqlite::Result<State> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, version, tables) {
        (APPLICATION_ID, version, _) => State::Ours { version },
        (0, 0, 0) => State::Empty,
        _ => State::Foreign,
    })
}

fn newest(migrations: &[&str]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}

fn copy(
    connection: &Connection,
    files: &Files,
    version: i64,
    now: Timestamp,
) -> Result<PathBuf, OpenError> {
    let backup = files.backup(version, now)?;
    connection.execute("VACUUM INTO ?1", [backup.to_string_lossy()])?;
    Ok(backup)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE things (name TEXT) STRICT;";
    const SECOND: &str = "ALTER TABLE things ADD COLUMN size INTEGER;";
    const BROKEN: &str = "ALTER TABLE things ADD COLUMN colour TEXT; SELECT nonsense;";

    fn fixture() -> (tempfile::TempDir, Files, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::prepare(folder.path()).unwrap();
        let connection = Connection::open(files.database()).unwrap();
        (folder, files, connection)
    }

    fn migrate_to(
        connection: &mut Connection,
        files: &Files,
        steps: &[&str],
    ) -> Result<Option<PathBuf>, OpenError> {
        migrate(
            connection,
            files,
            steps,
            "2026-01-31T12:00:00Z".parse().unwrap(),
        )
    }

    #[test]
    fn a_fresh_file_needs_no_backup_and_a_filled_one_gets_it() {
        let (_folder, files, mut connection) = fixture();
        assert_eq!(migrate_to(&mut connection, &files, &[FIRST]).unwrap(), None);
        connection
            .execute("INSERT INTO things VALUES ('kept')", [])
            .unwrap();
        assert_eq!(migrate_to(&mut connection, &files, &[FIRST]).unwrap(), None);

        let backup = migrate_to(&mut connection, &files, &[FIRST, SECOND])
            .unwrap()
            .unwrap();
        assert!(backup.ends_with("activity.db.backup-v1-20260131T120000Z"));
        let copy = Connection::open(&backup).unwrap();
        let name: String = copy
            .query_row("SELECT name FROM things", [], |row| row.get(0))
            .unwrap();
        assert_eq!(name, "kept");
        connection
            .execute("INSERT INTO things VALUES ('new', 1)", [])
            .unwrap();
    }

    #[test]
    fn a_step_that_fails_changes_nothing() {
        let (_folder, files, mut connection) = fixture();
        migrate_to(&mut connection, &files, &[FIRST]).unwrap();
        migrate_to(&mut connection, &files, &[FIRST, BROKEN]).unwrap_err();
        assert_eq!(state(&connection).unwrap(), State::Ours { version: 1 });
        assert!(connection.prepare("SELECT colour FROM things").is_err());
    }

    #[test]
    fn an_older_binary_refuses_a_newer_file() {
        let (_folder, files, mut connection) = fixture();
        migrate_to(&mut connection, &files, &[FIRST, SECOND]).unwrap();
        let error = migrate_to(&mut connection, &files, &[FIRST]).unwrap_err();
        assert!(matches!(
            error,
            OpenError::Newer {
                found: 2,
                known: 1,
                ..
            }
        ));
        let error = check(&connection, &files, &[FIRST]).unwrap_err();
        assert!(error.to_string().contains("newer mcpproxy"), "{error}");
    }

    #[test]
    fn somebody_elses_database_is_left_alone() {
        let (_folder, files, mut connection) = fixture();
        connection.execute_batch(FIRST).unwrap();
        let error = migrate_to(&mut connection, &files, &[FIRST]).unwrap_err();
        assert!(matches!(error, OpenError::Foreign(_)));
    }
}
