//! The files of the store: whose they are, what happens when they are damaged or too new.

use std::fs;
use std::path::Path;

use activity::sqlite::{OpenError, SqliteOptions, SqliteStore};
use activity::{Activity, Durability, GroupBy, Period, StoreError};
use rusqlite::Connection;

use crate::support::*;

fn database(folder: &Path) -> std::path::PathBuf {
    folder.join("data/activity.db")
}

async fn filled(folder: &Path) {
    let activity = open(folder);
    for _ in 0..50 {
        complete(&activity, read_call(), success()).await;
    }
    activity.close().await.unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_and_the_log_goes_on() {
    type Damage = fn(&mut Vec<u8>);
    let table: &[(&str, Damage)] = &[
        ("not a database at all", |bytes| {
            *bytes = b"this is no database".repeat(100);
        }),
        ("a broken header", |bytes| bytes[..100].fill(0xff)),
        ("broken pages", |bytes| {
            let middle = bytes.len() / 2;
            bytes[4_096..middle].fill(0xa5);
        }),
        ("cut off", |bytes| bytes.truncate(bytes.len() / 2)),
    ];
    for (name, damage) in table {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path()).await;
        let mut bytes = fs::read(database(folder.path())).unwrap();
        damage(&mut bytes);
        fs::write(database(folder.path()), &bytes).unwrap();

        let opened = SqliteStore::open(&options(folder.path())).unwrap();
        let aside = opened
            .moved_aside
            .unwrap_or_else(|| panic!("{name} went unnoticed"));
        let file = aside.file_name().unwrap().to_string_lossy().into_owned();
        assert!(file.starts_with("activity.db.corrupt-"), "{file}");
        assert_eq!(
            fs::read(&aside).unwrap(),
            bytes,
            "{name}: the evidence is kept"
        );
        let activity = Activity::new(std::sync::Arc::new(opened.store), settings());
        complete(&activity, read_call(), success()).await;
        assert_eq!(list(&activity, &[]).await.total, 1);
        assert!(activity.verify(None).await.unwrap().holds());
    }
}

#[tokio::test]
async fn an_empty_file_is_a_fresh_log() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("data")).unwrap();
    fs::write(database(folder.path()), b"").unwrap();
    let activity = open(folder.path());
    complete(&activity, read_call(), success()).await;
}

#[tokio::test]
async fn a_newer_layout_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    let connection = Connection::open(database(folder.path())).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = SqliteStore::open(&options(folder.path())).unwrap_err();
    assert!(
        matches!(error, OpenError::Newer { found: 99, .. }),
        "{error}"
    );
    let error = SqliteStore::open_read_only(&folder.path().join("data")).unwrap_err();
    assert!(error.to_string().contains("newer mcpproxy"), "{error}");
    assert!(database(folder.path()).exists());
}

#[tokio::test]
async fn somebody_elses_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("data")).unwrap();
    let connection = Connection::open(database(folder.path())).unwrap();
    connection
        .execute_batch("CREATE TABLE recipes (name TEXT)")
        .unwrap();
    drop(connection);
    let error = SqliteStore::open(&options(folder.path())).unwrap_err();
    assert!(matches!(error, OpenError::Foreign(_)), "{error}");
}

#[tokio::test]
async fn two_writers_are_one_too_many_but_readers_are_welcome() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let error = SqliteStore::open(&options(folder.path())).unwrap_err();
    assert!(matches!(error, OpenError::InUse(_)), "{error}");

    let id = complete(&activity, read_call(), success()).await;
    let reader = open_to_read(folder.path()).0;
    eventually("what was answered is in the database", async || {
        reader.get(id).await.unwrap().is_some()
    })
    .await;
    assert_eq!(list(&reader, &[]).await.total, 1);
    assert!(reader.verify(None).await.unwrap().holds());
    let error = reader
        .begin(read_call(), Durability::Written)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly), "{error}");
    reader.close().await.unwrap();
}

#[tokio::test]
async fn what_stands_in_for_a_log_is_empty_and_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::nothing_in(&folder.path().join("data")).unwrap();
    let nothing = Activity::new(std::sync::Arc::new(store), settings());
    assert_eq!(list(&nothing, &[("server", "files")]).await.total, 0);
    let found = nothing.verify(None).await.unwrap();
    assert!(found.holds() && found.records == 0);
    let day = nothing.summary(Period::Day, GroupBy::Server).await.unwrap();
    assert_eq!(day.total.records, 0);
    let refused = nothing.begin(read_call(), Durability::Written).await;
    assert!(matches!(refused.unwrap_err(), StoreError::ReadOnly));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn an_older_layout_is_not_read_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    let connection = Connection::open(database(folder.path())).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    drop(connection);
    let error = SqliteStore::open_read_only(&folder.path().join("data")).unwrap_err();
    assert!(
        matches!(error, OpenError::Older { found: 1, .. }),
        "{error}"
    );
}

#[test]
fn reading_a_log_that_is_not_there_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let error = SqliteStore::open_read_only(&folder.path().join("nowhere")).unwrap_err();
    assert!(matches!(error, OpenError::Missing(_)), "{error}");
    let error = SqliteStore::open_read_only(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Missing(_)), "{error}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[tokio::test]
    async fn everything_is_private_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(database(folder.path()), b"").unwrap();
        fs::set_permissions(database(folder.path()), fs::Permissions::from_mode(0o644)).unwrap();
        let activity = open(folder.path());
        complete(&activity, read_call(), success()).await;
        assert_eq!(mode(&data), 0o700);
        for file in fs::read_dir(&data).unwrap() {
            let path = file.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }

    /// Runs it in a thread of a user who is not allowed everything, if this one is. Its threads
    /// are that user's, too.
    fn as_nobody(work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::spawn(move || {
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::process::Uid::from_raw(65_534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            work();
        });
        thread.join().unwrap();
    }

    /// Copies some files of a log into a directory that nobody can write.
    fn sealed_copy(folder: &Path, files: &[&str]) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        let data = copy.path().join("data");
        fs::create_dir(&data).unwrap();
        for file in files {
            fs::copy(folder.join("data").join(file), data.join(file)).unwrap();
            fs::set_permissions(data.join(file), fs::Permissions::from_mode(0o444)).unwrap();
        }
        fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o555)).unwrap();
        copy
    }

    #[tokio::test]
    async fn a_copy_that_cannot_be_written_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path()).await;
        let copy = sealed_copy(folder.path(), &["activity.db"]);
        let path = copy.path().to_owned();
        as_nobody(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let (activity, waiting) = open_to_read(&path);
                assert_eq!(waiting, 0);
                assert_eq!(list(&activity, &[("server", "files")]).await.total, 50);
                assert!(activity.verify(None).await.unwrap().holds());
            });
        });
        let data = copy.path().join("data");
        assert_eq!(fs::read_dir(data).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn what_a_journal_holds_that_cannot_be_stored_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path()).await;
        let journal = ["activity.journal-1", "activity.journal-2"];
        let before = sealed_copy(folder.path(), &["activity.db"]);
        let activity = open(folder.path());
        let blocker = Connection::open(database(folder.path())).unwrap();
        blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
        complete(&activity, read_call(), success()).await;
        complete(&activity, read_call(), success()).await;
        let data = before.path().join("data");
        fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
        for file in journal {
            fs::copy(folder.path().join("data").join(file), data.join(file)).unwrap();
            fs::set_permissions(data.join(file), fs::Permissions::from_mode(0o444)).unwrap();
        }
        fs::set_permissions(&data, fs::Permissions::from_mode(0o555)).unwrap();
        blocker.execute_batch("COMMIT").unwrap();
        let path = before.path().to_owned();
        as_nobody(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let (activity, waiting) = open_to_read(&path);
                assert_eq!(waiting, 4, "two starts and two ends");
                assert_eq!(list(&activity, &[]).await.total, 50);
            });
        });
        activity.close().await.unwrap();
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        for name in ["activity.db", "activity.db-wal", "activity.db.lock"] {
            let folder = tempfile::tempdir().unwrap();
            let victim = folder.path().join("victim");
            fs::write(&victim, b"precious").unwrap();
            fs::create_dir(folder.path().join("data")).unwrap();
            symlink(&victim, folder.path().join("data").join(name)).unwrap();
            let error = SqliteStore::open(&options(folder.path())).unwrap_err();
            assert!(
                matches!(error, OpenError::SymbolicLink(_)),
                "{name}: {error}"
            );
            assert_eq!(fs::read(&victim).unwrap(), b"precious");
        }
    }

    #[test]
    fn a_directory_that_is_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, folder.path().join("data")).unwrap();
        let error = SqliteStore::open(&options(folder.path())).unwrap_err();
        assert!(matches!(error, OpenError::SymbolicLink(_)), "{error}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        // Only root can give a directory away; everybody else finds one that is root's.
        let options = if rustix::process::geteuid().is_root() {
            fs::create_dir(&data).unwrap();
            std::os::unix::fs::chown(&data, Some(65_534), None).unwrap();
            options(folder.path())
        } else {
            SqliteOptions {
                directory: "/usr".into(),
                max_file_bytes: None,
            }
        };
        let error = SqliteStore::open(&options).unwrap_err();
        assert!(matches!(error, OpenError::ForeignOwner(_)), "{error}");
    }

    #[test]
    fn a_directory_for_everybody_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let options = SqliteOptions {
            directory: folder.path().to_owned(),
            max_file_bytes: None,
        };
        let error = SqliteStore::open(&options).unwrap_err();
        assert!(matches!(error, OpenError::SharedDirectory(_)), "{error}");
        assert_eq!(mode(folder.path()), 0o1777);
    }
}
