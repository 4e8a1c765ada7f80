//! A file that is no longer a log: it is kept, its name is told, and the daemon runs on.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::{Home, Script, TestDaemon};

use crate::support::{Proxy, WRITE, database, home, tools};

/// Damages the log of a daemon that has stopped, and starts another one.
async fn restarted_after(damage: impl Fn(&mut Vec<u8>)) -> Proxy {
    let proxy = Proxy::start().await;
    proxy.calls(3).await;
    let (home, _) = proxy.daemon.stop().await;
    let file = database(&home);
    let mut bytes = fs::read(&file).unwrap();
    damage(&mut bytes);
    fs::write(&file, bytes).unwrap();
    start(home).await
}

async fn start(home: Home) -> Proxy {
    let upstream = home.upstream("up", &Script::new(tools()));
    let config = json!({"mcpServers": {"up": upstream.config()}});
    Proxy {
        daemon: TestDaemon::start(home, config).await,
        record: upstream.record(),
    }
}

/// The names of the files that were moved aside.
fn set_aside(home: &Home) -> Vec<String> {
    let folder = database(home).parent().unwrap().to_owned();
    let names = fs::read_dir(folder).unwrap().map(|entry| {
        let name = entry.unwrap().file_name();
        name.into_string().unwrap()
    });
    // The companions keep their endings.
    names
        .filter(|name| name.starts_with("activity.db.corrupt-") && name.ends_with('Z'))
        .collect()
}

async fn assert_runs_on(proxy: &Proxy) {
    let home = &proxy.daemon.home;
    let aside = set_aside(home);
    let [aside] = aside.as_slice() else {
        panic!("{aside:?}");
    };
    let log = proxy.daemon.log();
    assert!(log.contains(aside), "{aside} is not named in {log}");
    // The new log says itself which one it replaces.
    let started = &proxy.list("?type=system").await[0]["arguments"];
    assert_eq!(started["damaged_log_kept_as"], aside.as_str(), "{started}");
    proxy.client().await.succeed(WRITE, &json!({"n": 1})).await;
    assert_eq!(proxy.recorded_calls().await.len(), 1);
    assert_eq!(proxy.data("/activity/verify").await["valid"], true);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_set_aside() {
    let proxy = restarted_after(|bytes| *bytes = b"not a database at all".repeat(1_000)).await;
    assert_runs_on(&proxy).await;
    let folder = database(&proxy.daemon.home).parent().unwrap().to_owned();
    let kept = folder.join(&set_aside(&proxy.daemon.home)[0]);
    assert!(fs::read(kept).unwrap().starts_with(b"not a database"));
}

#[tokio::test]
async fn a_file_with_garbage_in_its_midst_is_set_aside() {
    let proxy = restarted_after(|bytes| {
        let middle = bytes.len() / 3;
        bytes[4_096..middle * 2].fill(0xa5);
    })
    .await;
    assert_runs_on(&proxy).await;
}

#[tokio::test]
async fn a_file_cut_short_is_set_aside() {
    let proxy = restarted_after(|bytes| bytes.truncate(bytes.len() / 2)).await;
    assert_runs_on(&proxy).await;
}

#[tokio::test]
async fn an_empty_file_is_a_new_log_and_says_so() {
    let proxy = restarted_after(Vec::clear).await;
    assert_eq!(set_aside(&proxy.daemon.home), Vec::<String>::new());
    let started = &proxy.list("?type=system").await[0]["arguments"];
    assert_eq!(started["log_file_was_empty"], true, "{started}");
    let log = proxy.daemon.log();
    assert!(log.contains("was there and empty"), "{log}");
    proxy.calls(1).await;
    assert_eq!(proxy.recorded_calls().await.len(), 3);
}

/// The log of a daemon that has stopped, changed before a command without a daemon reads it.
async fn stopped_with(damage: impl Fn(&mut Vec<u8>)) -> Home {
    let proxy = Proxy::start().await;
    proxy.calls(20).await;
    let (home, _) = proxy.daemon.stop().await;
    let mut bytes = fs::read(database(&home)).unwrap();
    damage(&mut bytes);
    fs::write(database(&home), bytes).unwrap();
    home
}

#[tokio::test]
async fn a_damaged_log_is_told_of_once_with_what_to_do() {
    // One that cannot be opened, and one that turns out to be damaged while it is read.
    let no_database = stopped_with(|bytes| *bytes = b"not a database at all".repeat(1_000)).await;
    let in_its_midst = stopped_with(|bytes| {
        let pages = bytes.len() / 8_192;
        bytes[2 * 8_192..(pages - 1) * 8_192].fill(0xa5);
    })
    .await;
    for (home, said) in [
        (no_database, "file is not a database"),
        (in_its_midst, "malformed"),
    ] {
        for command in ["list", "verify", "export"] {
            let output = home.cli(["activity", command]).await;
            output.ended_with(1);
            let error = &output.stderr;
            assert_eq!(error.matches(said).count(), 1, "{command}: {error}");
            assert!(error.contains("   do: start `mcpproxy serve`"), "{error}");
            assert!(!error.contains("daemon's output"), "{error}");
            assert!(!error.contains("Error code"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_log_that_serve_refuses_comes_with_what_to_do() {
    type Spoil = fn(&std::path::Path);
    let table: [(Spoil, &str); 4] = [
        (
            |file| {
                let connection = rusqlite::Connection::open(file).unwrap();
                connection.pragma_update(None, "user_version", 99).unwrap();
            },
            "   do: upgrade mcpproxy, or move the file away",
        ),
        (
            |file| {
                let target = file.with_extension("elsewhere");
                fs::rename(file, &target).unwrap();
                std::os::unix::fs::symlink(&target, file).unwrap();
            },
            "   do: remove the link",
        ),
        (
            |file| {
                fs::remove_file(file).unwrap();
                fs::create_dir(file).unwrap();
            },
            "   do: make it a plain file",
        ),
        (
            |file| {
                fs::remove_file(file).unwrap();
                let connection = rusqlite::Connection::open(file).unwrap();
                let table = "CREATE TABLE recipes (name TEXT)";
                connection.execute_batch(table).unwrap();
            },
            "   do: move it away",
        ),
    ];
    for (spoil, advice) in table {
        let home = stopped_with(|_| ()).await;
        spoil(&database(&home));
        let output = home.cli(["serve"]).await;
        output.ended_with(1);
        assert!(output.stderr.contains(advice), "{}", output.stderr);
    }
}

#[tokio::test]
async fn only_the_owner_can_read_the_log() {
    let proxy = Proxy::start().await;
    proxy.calls(1).await;
    let file = database(&proxy.daemon.home);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = file.parent().unwrap();
    assert_eq!(mode(folder), 0o700);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn commands_without_a_log_say_so_or_show_an_empty_one() {
    let home = home();
    home.write_config(&json!({"mcpServers": {}}));
    let output = home.cli(["activity", "list", "-o", "json"]).await;
    let listed: Value = output.succeeded().json();
    assert_eq!(listed["activities"], json!([]));
    home.cli(["activity", "verify"]).await.succeeded();
}
