//! Editing the config file of a running daemon, in every way editors and dotfile managers do it.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use config::{CommandLine, Config, ConfigWatcher, Document, LoadError, ReloadReport, Settings};
use tempfile::TempDir;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, timeout};

/// Shorter than the watcher waits before it looks without a sign, so that a missed sign shows.
const DEADLINE: Duration = Duration::from_secs(8);

struct Running {
    directory: TempDir,
    watcher: ConfigWatcher,
    config: Receiver<Arc<Config>>,
    report: Receiver<ReloadReport>,
}

impl Running {
    /// A watcher on a file that `prepare` puts at the given path, after its first look at it.
    async fn start(prepare: impl FnOnce(&Path, &Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mcp_config.json");
        prepare(directory.path(), &file);
        let command_line = CommandLine {
            config: Some(file),
            ..CommandLine::default()
        };
        let settings = Settings::locate(command_line, None).unwrap();
        let mut loaded = settings.load().unwrap();
        // Every file here has something doubtful. Its report comes with the first look.
        loaded.warnings.clear();
        let watcher = ConfigWatcher::start(settings, loaded);
        let mut report = watcher.report();
        let looked = report.wait_for(|report| !report.warnings.is_empty());
        timeout(DEADLINE, looked).await.unwrap().unwrap();
        Self {
            config: watcher.config(),
            report,
            watcher,
            directory,
        }
    }

    async fn plain() -> Self {
        Self::start(|_, file| fs::write(file, with_port(1)).unwrap()).await
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("mcp_config.json")
    }

    async fn until_port(&mut self, port: u16) {
        let arrived = self.config.wait_for(|config| config.listen.port() == port);
        timeout(DEADLINE, arrived).await.unwrap().unwrap();
    }

    async fn until_error(&mut self) -> Arc<LoadError> {
        let arrived = self.report.wait_for(|report| report.error.is_some());
        let report = timeout(DEADLINE, arrived).await.unwrap().unwrap();
        report.error.clone().unwrap()
    }

    async fn until_healthy(&mut self) {
        let arrived = self.report.wait_for(|report| report.error.is_none());
        timeout(DEADLINE, arrived).await.unwrap().unwrap();
    }

    fn port(&self) -> u16 {
        self.config.borrow().listen.port()
    }
}

fn with_port(port: u16) -> String {
    format!("{{\n  \"doubtful\": 1,\n  \"listen\": \"127.0.0.1:{port}\"\n}}\n")
}

/// The way most editors save.
fn rename_over(file: &Path, text: &str) {
    let temporary = file.with_extension("json~");
    fs::write(&temporary, text).unwrap();
    fs::rename(temporary, file).unwrap();
}

#[tokio::test]
async fn a_file_written_in_place_is_reloaded() {
    let mut running = Running::plain().await;
    fs::write(running.file(), with_port(2)).unwrap();
    running.until_port(2).await;
}

#[tokio::test]
async fn a_file_renamed_into_place_is_reloaded_every_time() {
    let mut running = Running::plain().await;
    for port in 2..5 {
        rename_over(&running.file(), &with_port(port));
        running.until_port(port).await;
    }
}

#[tokio::test]
async fn our_own_edits_are_reloaded() {
    let mut running = Running::plain().await;
    let mut document = Document::load(&running.file()).unwrap();
    document.set_override("a:b", policy::Tier::Write).unwrap();
    document.save().unwrap();
    let arrived = running
        .config
        .wait_for(|config| !config.tool_overrides.written().is_empty());
    timeout(DEADLINE, arrived).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_broken_file_keeps_the_old_config_and_says_where() {
    let mut running = Running::plain().await;
    fs::write(running.file(), "{\n  \"listen\": \"127.0.0.1:2\",\n}").unwrap();
    let error = running.until_error().await;
    assert!(error.why().starts_with("line 3, column 1: "), "{error}");
    assert_eq!(running.port(), 1);
    fs::write(running.file(), with_port(3)).unwrap();
    running.until_port(3).await;
    running.until_healthy().await;
}

#[tokio::test]
async fn a_repaired_file_that_says_the_same_is_no_change() {
    let mut running = Running::plain().await;
    fs::write(running.file(), "{").unwrap();
    running.until_error().await;
    fs::write(running.file(), with_port(1)).unwrap();
    running.until_healthy().await;
    assert!(!running.config.has_changed().unwrap());
}

#[tokio::test]
async fn a_vanished_file_keeps_the_old_config() {
    let mut running = Running::plain().await;
    fs::remove_file(running.file()).unwrap();
    let error = running.until_error().await;
    assert!(error.is_not_found(), "{error}");
    assert_eq!(running.port(), 1);
    fs::write(running.file(), with_port(2)).unwrap();
    running.until_port(2).await;
    running.until_healthy().await;
}

#[tokio::test]
async fn a_replaced_directory_is_found_again() {
    let mut running = Running::plain().await;
    let folder = running.directory.path().to_owned();
    fs::remove_dir_all(&folder).unwrap();
    running.until_error().await;
    fs::create_dir(&folder).unwrap();
    fs::write(running.file(), with_port(2)).unwrap();
    running.until_port(2).await;
    rename_over(&running.file(), &with_port(3));
    running.until_port(3).await;
}

#[tokio::test]
async fn an_edit_cannot_open_the_daemon_to_others() {
    let mut running = Running::start(|_, file| {
        fs::write(
            file,
            r#"{"doubtful": 1, "listen": "192.0.2.1:1", "require_mcp_auth": true}"#,
        )
        .unwrap();
    })
    .await;
    fs::write(running.file(), r#"{"listen": "192.0.2.1:1"}"#).unwrap();
    let error = running.until_error().await;
    assert!(matches!(*error, LoadError::Exposed { .. }), "{error}");
    assert!(running.config.borrow().require_mcp_auth);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_quick_edits_are_few_reloads_and_the_last_one_wins() {
    let mut running = Running::plain().await;
    let mut published = running.watcher.config();
    let counting = tokio::spawn(async move {
        let mut reloads = 0_u32;
        loop {
            published.changed().await.unwrap();
            reloads += 1;
            if published.borrow_and_update().listen.port() == 1_100 {
                return reloads;
            }
        }
    });
    let started = Instant::now();
    for port in 1_001..=1_100 {
        rename_over(&running.file(), &with_port(port));
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    running.until_port(1_100).await;
    let reloads = timeout(DEADLINE, counting).await.unwrap().unwrap();
    let windows = started.elapsed().as_millis() / 250;
    assert!(
        u128::from(reloads) <= windows + 2,
        "{reloads} reloads in {windows} windows"
    );
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn a_file_behind_a_link_is_followed() {
        let mut running = Running::start(|directory, file| {
            fs::create_dir(directory.join("dotfiles")).unwrap();
            fs::write(directory.join("dotfiles/real.json"), with_port(1)).unwrap();
            symlink("dotfiles/real.json", file).unwrap();
        })
        .await;
        let real = running.directory.path().join("dotfiles/real.json");
        fs::write(&real, with_port(2)).unwrap();
        running.until_port(2).await;
        rename_over(&real, &with_port(3));
        running.until_port(3).await;
    }

    #[tokio::test]
    async fn a_link_that_moves_is_followed() {
        let mut running = Running::start(|directory, file| {
            for (name, port) in [("old", 1), ("new", 2)] {
                fs::create_dir(directory.join(name)).unwrap();
                fs::write(directory.join(name).join("real.json"), with_port(port)).unwrap();
            }
            symlink("old/real.json", file).unwrap();
        })
        .await;
        let folder = running.directory.path().to_owned();
        symlink("new/real.json", folder.join("next")).unwrap();
        fs::rename(folder.join("next"), running.file()).unwrap();
        running.until_port(2).await;
        fs::write(folder.join("new/real.json"), with_port(3)).unwrap();
        running.until_port(3).await;
    }

    /// The way Kubernetes mounts a config: the file leads through a directory that is swapped.
    #[tokio::test]
    async fn a_linked_directory_that_is_swapped_is_noticed() {
        let mut running = Running::start(|directory, file| {
            for (name, port) in [("v1", 1), ("v2", 2)] {
                fs::create_dir(directory.join(name)).unwrap();
                fs::write(
                    directory.join(name).join("mcp_config.json"),
                    with_port(port),
                )
                .unwrap();
            }
            symlink("v1", directory.join("data")).unwrap();
            symlink("data/mcp_config.json", file).unwrap();
        })
        .await;
        let folder = running.directory.path().to_owned();
        symlink("v2", folder.join("data_next")).unwrap();
        fs::rename(folder.join("data_next"), folder.join("data")).unwrap();
        running.until_port(2).await;
    }
}
