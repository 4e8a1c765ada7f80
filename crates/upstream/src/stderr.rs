//! What an upstream writes to stderr: the last lines in memory, and all of it in a rotated file.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};

const RING_LINES: usize = 500;
const LINE_LIMIT: usize = 4 * 1024;
const FILE_LIMIT: u64 = 5 * 1024 * 1024;

/// An upstream may write this much a second into its log file; the rest is counted and dropped,
/// so that one that writes without end costs neither disk nor time.
const BYTES_A_SECOND: u64 = 512 * 1024;

/// The log of one upstream. Survives its restarts.
#[derive(Debug, Clone)]
pub(crate) struct StderrLog {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    lines: VecDeque<String>,
    file: Option<LogFile>,
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    size: u64,
    window: Instant,
    window_bytes: u64,
    dropped: u64,
}

// === impl StderrLog ===

impl StderrLog {
    /// A log that is kept in memory, and in `path` as well where one is given and can be opened.
    pub(crate) fn new(path: Option<&Path>) -> Self {
        let file = path.and_then(|path| match LogFile::open(path.to_owned()) {
            Ok(file) => Some(file),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "upstream log cannot be written");
                None
            }
        });
        let lines = VecDeque::new();
        Self {
            shared: Arc::new(Mutex::new(Shared { lines, file })),
        }
    }

    /// The last lines, oldest first.
    pub(crate) fn tail(&self, count: usize) -> Vec<String> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let skip = shared.lines.len().saturating_sub(count);
        shared.lines.iter().skip(skip).cloned().collect()
    }

    /// Reads a child's stderr to its end.
    pub(crate) async fn collect(self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 16 * 1024];
        let mut line = Vec::new();
        loop {
            match stderr.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(count) => self.take(&chunk[..count], &mut line),
            }
        }
        if !line.is_empty() {
            self.take(b"\n", &mut line);
        }
    }

    fn take(&self, bytes: &[u8], line: &mut Vec<u8>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_LIMIT.saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                line.clear();
                shared.push(text);
            }
        }
        if let Some(file) = &mut shared.file
            && let Err(error) = file.write(bytes)
        {
            tracing::warn!(path = %file.path.display(), %error, "upstream log stopped");
            shared.file = None;
        }
    }
}

impl Shared {
    fn push(&mut self, line: String) {
        if self.lines.len() == RING_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

// === impl LogFile ===

impl LogFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(&path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path,
            file,
            size,
            window: Instant::now(),
            window_bytes: 0,
            dropped: 0,
        })
    }

    /// Appends within the allowance. Plain blocking writes: they go to the page cache, and the
    /// allowance keeps them far below what a disk takes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.window.elapsed() >= Duration::from_secs(1) {
            self.window = Instant::now();
            self.window_bytes = 0;
            if self.dropped > 0 {
                let dropped = std::mem::take(&mut self.dropped);
                self.append(format!("[mcpproxy: {dropped} bytes dropped]\n").as_bytes())?;
            }
        }
        let length = bytes.len() as u64;
        if self.window_bytes + length > BYTES_A_SECOND {
            self.dropped += length;
            return Ok(());
        }
        self.window_bytes += length;
        self.append(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.size + bytes.len() as u64 > FILE_LIMIT {
            self.rotate()?;
        }
        self.size += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn rotate(&mut self) -> io::Result<()> {
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        std::fs::rename(&self.path, old)?;
        let fresh = Self::open(self.path.clone())?;
        self.file = fresh.file;
        self.size = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_ring_keeps_the_last_lines_and_cuts_long_ones() {
        let log = StderrLog::new(None);
        let mut text = "x".repeat(LINE_LIMIT * 3);
        for number in 0..RING_LINES {
            text.push_str(&format!("\nline {number}"));
        }
        log.clone().collect(text.as_bytes()).await;
        assert_eq!(log.tail(2), ["line 498", "line 499"]);
        assert_eq!(log.tail(usize::MAX).len(), RING_LINES);
    }

    #[tokio::test]
    async fn a_flood_is_counted_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("noisy.log");
        let log = StderrLog::new(Some(&path));
        let flood = "a line of noise\n".repeat(200_000);
        log.clone().collect(flood.as_bytes()).await;
        let written = std::fs::metadata(&path).unwrap().len();
        assert!(written <= 2 * BYTES_A_SECOND, "{written} bytes written");
        assert_eq!(log.tail(1), ["a line of noise"]);
    }

    #[tokio::test]
    async fn the_file_is_rotated_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let mut file = LogFile::open(path.clone()).unwrap();
        let block = vec![b'x'; usize::try_from(FILE_LIMIT).unwrap() / 2 + 1];
        file.append(&block).unwrap();
        file.append(&block).unwrap();
        assert!(directory.path().join("server.log.1").exists());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
