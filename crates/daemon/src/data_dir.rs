//! The data directory: closed to others, and used by one daemon at a time.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, geteuid, test_kill_process};

const LOCK_FILE: &str = "mcpproxy.lock";
const SOCKET_FILE: &str = "mcpproxy.sock";
const LOG_DIR: &str = "logs";
const ERA_FILE: &str = "eras.json";
const DAEMON_LOG: &str = "daemon.log";

/// What must be ours alone before it is read or written. The activity log sees to its own files.
const OURS: [&str; 6] = [LOCK_FILE, LOG_DIR, ERA_FILE, DAEMON_LOG, "api_key", "pins"];

/// How long a lock is waited for whose holder is gone.
const PATIENCE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(10);

#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("the data directory {} cannot be used", path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("{} belongs to user {owner}, and mcpproxy runs as user {}", path.display(), geteuid().as_raw())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("{} can be written by other users (mode {mode:o})", path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("{} is a symbolic link, which is not followed", path.display())]
    Link { path: PathBuf },
    #[error("another mcpproxy{} uses the data directory {}", holder(.pid.as_deref()), path.display())]
    Locked { path: PathBuf, pid: Option<String> },
}

/// A data directory; one that was prepared exists, and only we can enter it.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

/// Held by a running daemon; given back when it ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

// === impl DataDirError ===

impl DataDirError {
    /// What the operator can do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::Foreign { path, .. } => format!(
                "run mcpproxy as that user, choose another directory with --data-dir, or look at what is in \
                 it and `chown` it: {}",
                path.display()
            ),
            Self::Writable { path, .. } => format!(
                "look at what others may have put there, then `chmod go-w {}`",
                path.display()
            ),
            Self::Link { path } => format!(
                "put the file itself in its place, or remove the link {}",
                path.display()
            ),
            Self::Unusable { .. } => "choose another directory with --data-dir".to_owned(),
            Self::Locked { .. } => {
                "stop the other daemon, or choose another directory with --data-dir".to_owned()
            }
        }
    }
}

// === impl DataDir ===

impl DataDir {
    /// Creates the directory where it is missing, and takes away what others may read in it. What
    /// they could have written is not trusted.
    pub fn prepare(path: &Path) -> Result<Self, DataDirError> {
        let unusable = |source| DataDirError::Unusable {
            path: path.to_owned(),
            source,
        };
        let create = |directory: &Path| {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(unusable)
        };
        create(path)?;
        // The directory itself may be a link of the operator's; what counts is where it leads.
        make_private(path, &fs::metadata(path).map_err(unusable)?)?;
        for name in OURS {
            let file = path.join(name);
            match fs::symlink_metadata(&file) {
                Ok(found) if found.is_symlink() => return Err(DataDirError::Link { path: file }),
                Ok(found) => make_private(&file, &found)?,
                Err(_) => {}
            }
        }
        create(&path.join(LOG_DIR))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// A directory that is only read, as it is. It need not exist, but if something else is in its
    /// place, or a link that leads nowhere, nothing can be said of what it holds.
    pub fn as_it_is(path: &Path) -> Result<Self, DataDirError> {
        let there = path
            .ancestors()
            .find(|ancestor| fs::symlink_metadata(ancestor).is_ok());
        let looked_at = there.map_or(Ok(true), |there| {
            fs::metadata(there).map(|metadata| metadata.is_dir())
        });
        let unusable = |source| DataDirError::Unusable {
            path: path.to_owned(),
            source,
        };
        if !looked_at.map_err(unusable)? {
            return Err(unusable(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn logs(&self) -> PathBuf {
        self.path.join(LOG_DIR)
    }

    /// Which era each upstream speaks, as far as it is known.
    pub fn eras(&self) -> PathBuf {
        self.path.join(ERA_FILE)
    }

    /// Where a daemon that uses `data_dir` listens for our own commands.
    pub fn socket(data_dir: &Path) -> PathBuf {
        data_dir.join(SOCKET_FILE)
    }

    /// What the daemon that uses `data_dir` wrote about itself.
    pub fn log(data_dir: &Path) -> PathBuf {
        data_dir.join(DAEMON_LOG)
    }

    /// Whether a process has locked `data_dir`. One that locks it at this very moment may find it in
    /// use and has to try again.
    pub fn is_in_use(data_dir: &Path) -> bool {
        let file = File::open(data_dir.join(LOCK_FILE));
        file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
    }

    /// Makes sure that no other daemon uses this directory.
    ///
    /// A daemon that was killed while it started an upstream leaves the lock to that child until
    /// the child has become another program, which takes a moment.
    pub async fn lock(&self) -> Result<Lock, DataDirError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.try_lock() {
                Err(DataDirError::Locked { pid: Some(pid), .. })
                    if !is_running(&pid) && Instant::now() < deadline =>
                {
                    tokio::time::sleep(RETRY).await;
                }
                outcome => return outcome,
            }
        }
    }

    fn try_lock(&self) -> Result<Lock, DataDirError> {
        let unusable = |source| DataDirError::Unusable {
            path: self.path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.path.join(LOCK_FILE))
            .map_err(unusable)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            let pid = file
                .read_to_string(&mut pid)
                .ok()
                .map(|_| pid.trim().to_owned());
            return Err(DataDirError::Locked {
                path: self.path.clone(),
                pid: pid.filter(|pid| !pid.is_empty()),
            });
        }
        // The number is for people; the lock itself is what counts.
        let noted = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        noted.map_err(unusable)?;
        Ok(Lock { _file: file })
    }
}

/// Takes away what others may do with a file that only we can have written.
fn make_private(path: &Path, found: &Metadata) -> Result<(), DataDirError> {
    let path = path.to_owned();
    if found.uid() != geteuid().as_raw() {
        let owner = found.uid();
        return Err(DataDirError::Foreign { path, owner });
    }
    let mode = found.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(DataDirError::Writable { path, mode });
    }
    let is_private = mode & !0o700 == 0;
    if is_private {
        return Ok(());
    }
    let private = Permissions::from_mode(mode & 0o700);
    match fs::set_permissions(&path, private) {
        Ok(()) => {
            tracing::warn!(path = %path.display(), "others could read this, mode {mode:o}; now they cannot");
            Ok(())
        }
        Err(source) => Err(DataDirError::Unusable { path, source }),
    }
}

fn is_running(pid: &str) -> bool {
    let pid = pid.parse().ok().and_then(Pid::from_raw);
    // One that we may not send anything to is there all the same.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

fn holder(pid: Option<&str>) -> String {
    pid.map(|pid| format!(" (process {pid})"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_made_private() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("deep").join("data");
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let data_dir = DataDir::prepare(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert!(data_dir.logs().is_dir());
    }

    #[test]
    fn what_others_can_write_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        DataDir::prepare(parent.path()).unwrap();
        for name in ["", "logs", "api_key", "pins", ERA_FILE, LOCK_FILE] {
            let path = parent.path().join(name);
            if !path.exists() {
                fs::write(&path, "").unwrap();
            }
            let before = fs::metadata(&path).unwrap().permissions();
            for mode in [0o720, 0o702, 0o777] {
                fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
                let refused = DataDir::prepare(parent.path());
                assert!(
                    matches!(refused, Err(DataDirError::Writable { .. })),
                    "{name}"
                );
            }
            fs::set_permissions(&path, before).unwrap();
            DataDir::prepare(parent.path()).unwrap();
        }
    }

    #[test]
    fn what_others_can_read_is_closed() {
        let parent = tempfile::tempdir().unwrap();
        let key = parent.path().join("api_key");
        fs::write(&key, "").unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
        DataDir::prepare(parent.path()).unwrap();
        assert_eq!(
            fs::metadata(&key).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn links_are_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        for name in OURS {
            let link = parent.path().join(name);
            std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
            let refused = DataDir::prepare(parent.path());
            assert!(matches!(refused, Err(DataDirError::Link { .. })), "{name}");
            fs::remove_file(&link).unwrap();
        }
        // The directory itself may be one.
        let link = elsewhere.path().join("data");
        std::os::unix::fs::symlink(parent.path(), &link).unwrap();
        DataDir::prepare(&link).unwrap();
    }

    #[tokio::test]
    async fn the_second_daemon_is_told_who_the_first_is() {
        let parent = tempfile::tempdir().unwrap();
        let data_dir = DataDir::prepare(parent.path()).unwrap();
        let lock = data_dir.lock().await.unwrap();
        let message = data_dir.lock().await.unwrap_err().to_string();
        assert!(
            message.contains(&format!("process {}", std::process::id())),
            "{message}"
        );
        drop(lock);
        data_dir.lock().await.unwrap();
    }

    #[tokio::test]
    async fn a_lock_whose_holder_is_gone_is_waited_for() {
        let parent = tempfile::tempdir().unwrap();
        let data_dir = DataDir::prepare(parent.path()).unwrap();
        let lock = data_dir.lock().await.unwrap();
        // No process has this number.
        fs::write(parent.path().join(LOCK_FILE), format!("{}\n", i32::MAX)).unwrap();
        let (second, ()) = tokio::join!(data_dir.lock(), async { drop(lock) });
        second.unwrap();
    }
}
