//! The task behind the watcher: waits for a sign of change, looks at the file, publishes.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::ReloadReport;
use super::links::Names;
use crate::error::LoadError;
use crate::model::Config;
use crate::settings::Settings;

/// Reloads are at least this far apart.
const BETWEEN_RELOADS: Duration = Duration::from_millis(250);
/// Editors truncate and then write; looking at once would find an empty file.
const SETTLE: Duration = Duration::from_millis(40);
/// How often to look without a sign: directories can be replaced, and network file systems and
/// exhausted watch limits report nothing at all.
const LOOK_ANYWAY: Duration = Duration::from_secs(10);
/// How often to look for a directory that is gone, whose return nothing reports.
const LOOK_FOR_DIRECTORY: Duration = Duration::from_secs(1);

pub(super) struct Follower {
    settings: Settings,
    wake: Arc<Notify>,
    config: watch::Sender<Arc<Config>>,
    report: watch::Sender<ReloadReport>,
    /// What the last look found; `None` before the first.
    seen: Option<Result<Vec<u8>, io::ErrorKind>>,
    directories: Directories,
}

/// The watch on every directory the file depends on.
struct Directories {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    /// Whether every directory could be watched.
    complete: bool,
    names: Arc<Mutex<Names>>,
}

impl Follower {
    pub(super) fn new(
        settings: Settings,
        wake: Arc<Notify>,
        config: watch::Sender<Arc<Config>>,
        report: watch::Sender<ReloadReport>,
    ) -> Self {
        let mut directories = Directories::new(&wake);
        // Before the first look, so that no edit falls between the two.
        directories.follow(settings.config_file());
        Self {
            settings,
            wake,
            config,
            report,
            seen: None,
            directories,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.look().await;
            let earliest = Instant::now() + BETWEEN_RELOADS;
            // A sign that arrives during a look is kept and taken here, so the last edit is
            // always seen.
            let patience = if self.directories.complete {
                LOOK_ANYWAY
            } else {
                LOOK_FOR_DIRECTORY
            };
            let _ = timeout(patience, self.wake.notified()).await;
            sleep_until(earliest.max(Instant::now() + SETTLE)).await;
        }
    }

    async fn look(&mut self) {
        let file = self.settings.config_file();
        self.directories.follow(file);
        let found = tokio::fs::read(file).await;
        let seen = Some(match &found {
            Ok(content) => Ok(content.clone()),
            Err(error) => Err(error.kind()),
        });
        // A daemon that started without a file has nothing to report until there is one.
        let never_was = self.seen.is_none() && seen == Some(Err(io::ErrorKind::NotFound));
        if self.seen != seen && !never_was {
            self.publish(found);
        }
        self.seen = seen;
    }

    fn publish(&self, found: io::Result<Vec<u8>>) {
        let content = found.map_err(|source| LoadError::Unreadable {
            file: self.settings.config_file().to_owned(),
            source,
        });
        match content.and_then(|content| self.settings.parse(&content)) {
            Ok(loaded) => {
                self.report.send_if_modified(|report| {
                    let changed = report.error.is_some() || *report.warnings != loaded.warnings;
                    if changed {
                        *report = ReloadReport {
                            error: None,
                            warnings: loaded.warnings.into(),
                        };
                    }
                    changed
                });
                self.config.send_if_modified(|current| {
                    let changed = **current != loaded.config;
                    if changed {
                        *current = Arc::new(loaded.config);
                    }
                    changed
                });
            }
            Err(error) => self
                .report
                .send_modify(|report| report.error = Some(Arc::new(error))),
        }
    }
}

impl Directories {
    fn new(wake: &Arc<Notify>) -> Self {
        let names = Arc::new(Mutex::new(Names::default()));
        let handler = {
            let wake = Arc::clone(wake);
            let names = Arc::clone(&names);
            move |event: notify::Result<Event>| {
                let names = names.lock().unwrap_or_else(PoisonError::into_inner);
                if event.map_or(true, |event| is_sign(&event, &names)) {
                    wake.notify_one();
                }
            }
        };
        let watcher = notify::recommended_watcher(handler)
            .inspect_err(|error| {
                tracing::warn!(%error, "config.watch: no notice of changes, looking every 10 s");
            })
            .ok();
        Self {
            watcher,
            watched: BTreeSet::new(),
            complete: true,
            names,
        }
    }

    /// Watches what `file` depends on now. Called before every look, since links may have moved.
    fn follow(&mut self, file: &Path) {
        let names = Names::of(file);
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let wanted = names.directories();
        let count = wanted.len();
        for gone in self.watched.difference(&wanted) {
            // It fails when the directory itself is gone, and then there is nothing to stop.
            let _ = watcher.unwatch(gone);
        }
        // Again for those already watched: a directory that was replaced has lost its watch.
        self.watched = wanted
            .into_iter()
            .filter(|directory| {
                watcher
                    .watch(directory, RecursiveMode::NonRecursive)
                    .is_ok()
            })
            .collect();
        self.complete = self.watched.len() == count;
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }
}

/// Whether an event may mean that the config changed.
///
/// The directory often holds the database, too, whose every write is an event; and reading the
/// file is one, which must not lead to the next look.
fn is_sign(event: &Event, names: &Names) -> bool {
    let about_file = || event.paths.iter().any(|path| names.contains(path));
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => about_file(),
        EventKind::Access(_) => false,
        // A rename of something else matters when the way to the file leads through it.
        EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any | EventKind::Other => true,
        EventKind::Modify(_) | EventKind::Create(_) | EventKind::Remove(_) => about_file(),
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, DataChange, RemoveKind, RenameMode};

    use super::*;
    use crate::settings::CommandLine;

    const DATA: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));

    #[test]
    fn only_what_may_change_the_config_is_a_sign() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let names = Names::of(&directory.join("mcp_config.json"));
        let sign = |kind: EventKind, name: &str| {
            is_sign(&Event::new(kind).add_path(directory.join(name)), &names)
        };
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        for kind in [
            DATA,
            closed,
            EventKind::Create(CreateKind::File),
            EventKind::Remove(RemoveKind::File),
        ] {
            assert!(sign(kind, "mcp_config.json"), "{kind:?}");
            assert!(!sign(kind, "activity.db-wal"), "{kind:?}");
        }
        let read = EventKind::Access(AccessKind::Open(AccessMode::Read));
        assert!(!sign(read, "mcp_config.json"), "our own look");
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        assert!(
            sign(renamed, "data"),
            "the way to the file may lead through it"
        );
    }

    #[tokio::test]
    async fn the_same_content_is_published_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mcp_config.json");
        let command_line = CommandLine {
            config: Some(file.clone()),
            ..CommandLine::default()
        };
        let settings = Settings::locate(command_line, None).unwrap();
        let (config_sender, mut config) = watch::channel(Arc::new(Config::default()));
        let (report_sender, mut report) = watch::channel(ReloadReport::default());
        let wake = Arc::new(Notify::new());
        let mut follower = Follower::new(settings, wake, config_sender, report_sender);
        let mut look_at = async |text: &str| {
            std::fs::write(&file, text).unwrap();
            follower.look().await;
            let seen = (config.has_changed().unwrap(), report.has_changed().unwrap());
            config.mark_unchanged();
            report.mark_unchanged();
            seen
        };
        assert_eq!(look_at(r#"{"listen": "127.0.0.1:1"}"#).await, (true, false));
        assert_eq!(
            look_at(r#"{"listen": "127.0.0.1:1"}"#).await,
            (false, false)
        );
        assert_eq!(look_at(r#"{"listen":"127.0.0.1:1"}"#).await, (false, false));
        assert_eq!(
            look_at(r#"{"listen":"127.0.0.1:1", "x": 1}"#).await,
            (false, true)
        );
        assert_eq!(look_at("{").await, (false, true));
        assert_eq!(look_at("{").await, (false, false));
        assert_eq!(look_at(r#"{"listen": "127.0.0.1:1"}"#).await, (false, true));
    }
}
