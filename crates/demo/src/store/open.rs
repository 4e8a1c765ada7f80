//! Opening the file: its mode, its schema, and the sample notes of a first start.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::column::Count;
use super::{Notes, Store};
use crate::note::PortableNote;

/// The schema, one step per released version; `PRAGMA user_version` counts the steps taken.
const STEPS: [&str; 1] = [include_str!("schema.sql")];

/// What a first start puts into the store, so that the first search finds something.
const SAMPLES: &str = include_str!("samples.json");

/// How long to wait for another server that is writing to the same file.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot create the file")]
    Create(#[source] io::Error),
    #[error("cannot open the file as a database")]
    Database(#[from] rusqlite::Error),
    #[error(
        "the file was written by a newer version of this program (schema {found}, known {known})"
    )]
    Newer { found: usize, known: usize },
    #[error("cannot read the sample notes")]
    Samples(#[source] serde_json::Error),
}

impl Store {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // Servers that start at once take turns: SQLite cannot change a file to WAL while another
        // connection so much as looks at it, and gives up then without waiting.
        let _turn = lock_folder(folder).map_err(OpenError::Create)?;
        create_private(path).map_err(OpenError::Create)?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        // What is purged must not stay readable in free pages of the file.
        connection.pragma_update(None, "secure_delete", true)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        migrate(&mut connection)?;
        Ok(Self { connection })
    }
}

/// Makes the folder, if need be, and keeps other servers out until the result is dropped.
fn lock_folder(folder: &Path) -> io::Result<File> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let folder = File::open(folder)?;
    folder.lock()?;
    Ok(folder)
}

/// Notes are private: only the owner may read the file. SQLite gives its side files the same mode.
fn create_private(path: &Path) -> io::Result<()> {
    // A file that exists must not even be opened here: closing it would take away the locks of
    // every other connection that this process has to it.
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match created {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Brings the schema up to date, and a new store into the state of a first start.
fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Count(found) = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > STEPS.len() {
        let known = STEPS.len();
        return Err(OpenError::Newer { found, known });
    }
    for step in &STEPS[found..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", Count(STEPS.len()))?;
    let notes = Notes { transaction };
    if found == 0 {
        let samples: Vec<PortableNote> =
            serde_json::from_str(SAMPLES).map_err(OpenError::Samples)?;
        for sample in &samples {
            notes.insert(sample)?;
        }
    }
    Ok(notes.transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;
    use crate::note::NoteId;
    use crate::store::{Scope, StoreError};

    struct Place {
        folder: tempfile::TempDir,
        file: PathBuf,
    }

    fn place() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data/notes.db");
        Place { folder, file }
    }

    fn ids(store: &mut Store) -> Vec<NoteId> {
        store.read(|notes| notes.ids(Scope::Everything)).unwrap()
    }

    #[test]
    fn only_the_owner_may_read_the_store() {
        let place = place();
        let mut store = Store::open(&place.file).unwrap();
        ids(&mut store);
        let folder = place.folder.path().join("data");
        let mut modes: Vec<_> = folder
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
            .collect();
        modes.dedup();
        assert_eq!(modes, [0o600]);
        let mode = folder.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn servers_that_start_at_once_put_the_samples_in_once() {
        let place = place();
        std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Store::open(&place.file).map(|mut store| ids(&mut store))))
                .collect();
            for start in starts {
                assert_eq!(start.join().unwrap().unwrap().len(), 3);
            }
        });
    }

    #[test]
    fn an_emptied_store_stays_empty() {
        let place = place();
        let mut store = Store::open(&place.file).unwrap();
        store
            .write(|notes| {
                for id in notes.ids(Scope::Everything)? {
                    notes.purge(id)?;
                }
                Ok::<_, StoreError>(())
            })
            .unwrap();
        drop(store);
        assert_eq!(ids(&mut Store::open(&place.file).unwrap()), []);
    }

    #[test]
    fn the_words_of_a_purged_note_leave_the_file() {
        let place = place();
        let holds_tomatoes = || {
            let bytes = std::fs::read(&place.file).unwrap();
            bytes.windows(8).any(|window| window == b"tomatoes")
        };
        let mut store = Store::open(&place.file).unwrap();
        let groceries = ids(&mut store)[1];
        drop(store);
        assert!(holds_tomatoes());
        let mut store = Store::open(&place.file).unwrap();
        store.write(|notes| notes.purge(groceries)).unwrap();
        // The last one to close the store moves what was written into the main file.
        drop(store);
        assert!(!holds_tomatoes());
    }

    #[test]
    fn a_store_of_a_newer_version_is_left_alone() {
        let place = place();
        drop(Store::open(&place.file).unwrap());
        let connection = Connection::open(&place.file).unwrap();
        connection.pragma_update(None, "user_version", 7).unwrap();
        let error = Store::open(&place.file).unwrap_err();
        assert!(matches!(error, OpenError::Newer { found: 7, known: 1 }));
    }

    #[test]
    fn a_file_that_is_no_database_is_left_alone() {
        let place = place();
        std::fs::create_dir(place.file.parent().unwrap()).unwrap();
        let text = "not a database, but long enough to be taken for the header of one".repeat(20);
        std::fs::write(&place.file, &text).unwrap();
        assert!(matches!(
            Store::open(&place.file),
            Err(OpenError::Database(_))
        ));
        assert_eq!(std::fs::read_to_string(&place.file).unwrap(), text);
    }
}
