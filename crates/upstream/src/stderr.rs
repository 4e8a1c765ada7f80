//! What an upstream writes to stderr: the last lines in memory, and all of it in a rotated file.
//! Servers write their credentials there, too, so every line is redacted before it is kept.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use platform::RotatedFile;
use redact::{KeyBlock, SharedRedactor};
use tokio::io::{AsyncRead, AsyncReadExt};

const RING_LINES: usize = 500;
/// Bytes of a line that are shown.
const LINE_LIMIT: usize = 4 * 1024;
/// Bytes of a line that are looked at for secrets. What a server writes beyond is not kept.
const LONGEST_LINE: usize = 64 * 1024;
/// Bytes at the end of the log file from which the last lines are known again.
const REMEMBERED: u64 = 64 * 1024;
const FILE_LIMIT: u64 = 5 * 1024 * 1024;

/// An upstream may write this much a second into its log file; the rest is counted and dropped,
/// so that one that writes without end costs neither disk nor time.
const BYTES_A_SECOND: u64 = 512 * 1024;

/// The log of one upstream. Survives its restarts.
#[derive(Debug, Clone)]
pub(crate) struct StderrLog {
    shared: Arc<Mutex<Shared>>,
    redactor: SharedRedactor,
}

/// The line that a child is writing, and what is known from the lines before.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    /// Whether there was more of it than is looked at.
    cut: bool,
    block: KeyBlock,
}

#[derive(Debug)]
struct Shared {
    lines: VecDeque<String>,
    /// How many lines there have been, of which `lines` are the last.
    count: u64,
    /// Tells this log from those of the server's earlier lives.
    life: u64,
    /// The lines that an earlier life wrote.
    remembered: u64,
    file: Option<LogFile>,
}

/// A place in the log of one upstream, in a form that callers pass back without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogCursor {
    life: u64,
    line: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the cursor of a log; use `cursor` of the answer before, as it is")]
pub struct InvalidLogCursor;

/// Some lines of a log, oldest first, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    pub lines: Vec<String>,
    pub cursor: LogCursor,
}

#[derive(Debug)]
struct LogFile {
    file: RotatedFile,
    window: Instant,
    window_bytes: u64,
    dropped: u64,
}

// === impl StderrLog ===

impl StderrLog {
    /// A log that is kept in memory and, where `path` is given, in a file as well, from which the
    /// last lines of earlier lives are known. Without `write` the file is only read.
    pub(crate) fn new(path: Option<&Path>, write: bool, redactor: SharedRedactor) -> Self {
        let lines: VecDeque<String> = path.map(remember).unwrap_or_default().into();
        let file = path
            .filter(|_| write)
            .and_then(|path| match LogFile::open(path.to_owned()) {
                Ok(file) => Some(file),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "upstream log cannot be written");
                    None
                }
            });
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let shared = Shared {
            count: lines.len() as u64,
            remembered: lines.len() as u64,
            life: since_epoch.map_or(0, |time| time.as_micros().try_into().unwrap_or(0)),
            lines,
            file,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            redactor,
        }
    }

    /// How many lines there have been so far.
    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    /// The last lines that were written after there had been `count`, oldest first.
    pub(crate) fn tail_since(&self, count: u64, most: usize) -> Vec<String> {
        let shared = self.lock();
        let new = shared.count.saturating_sub(count);
        let most = most.min(usize::try_from(new).unwrap_or(usize::MAX));
        shared.last(most)
    }

    /// The last lines, or those after a cursor; at most so many.
    pub(crate) fn page(&self, after: Option<LogCursor>, most: usize) -> LogPage {
        let shared = self.lock();
        let Some(after) = after else {
            return LogPage {
                lines: shared.last(most),
                cursor: shared.cursor(shared.count),
            };
        };
        let first = shared.count - shared.lines.len() as u64;
        // A reader that followed an earlier process has seen what is remembered of it.
        let wanted = if after.life == shared.life {
            after.line.min(shared.count)
        } else {
            shared.remembered
        };
        let begin = wanted.max(first);
        let skip = usize::try_from(begin - first).unwrap_or(usize::MAX);
        let lines: Vec<String> = shared.lines.iter().skip(skip).take(most).cloned().collect();
        LogPage {
            cursor: shared.cursor(begin + lines.len() as u64),
            lines,
        }
    }

    /// Text about the upstream as it may be shown.
    pub(crate) fn redacted(&self, text: &str) -> String {
        self.redactor.text(text)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a child's stderr to its end.
    pub(crate) async fn collect(self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 16 * 1024];
        let mut line = Line::default();
        loop {
            match stderr.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(count) => self.take(&chunk[..count], &mut line),
            }
        }
        if !line.bytes.is_empty() {
            self.take(b"\n", &mut line);
        }
    }

    fn take(&self, bytes: &[u8], line: &mut Line) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(line.bytes.len());
            line.bytes.extend_from_slice(&part[..part.len().min(room)]);
            line.cut |= part.len() > room;
            if part.ends_with(b"\n")
                && let Some(text) = line.end(&self.redactor)
            {
                self.lock().push(&text);
            }
        }
    }
}

// === impl Line ===

impl Line {
    /// What may be kept of the line, which is empty afterwards; none inside of a private key.
    fn end(&mut self, redactor: &SharedRedactor) -> Option<String> {
        let text = String::from_utf8_lossy(self.bytes.trim_ascii_end()).into_owned();
        self.bytes.clear();
        let cut = std::mem::take(&mut self.cut);
        redactor.with(|redactor| {
            let line = self.block.line(redactor, &text)?;
            Some(if cut {
                redactor.without_cut_end(line)
            } else {
                line
            })
        })
    }
}

// === impl Shared ===

impl Shared {
    fn push(&mut self, line: &str) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write(format!("{line}\n").as_bytes())
        {
            tracing::warn!(path = %file.file.path().display(), %error, "upstream log stopped");
            self.file = None;
        }
        if self.lines.len() == RING_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(shown(line).to_owned());
        self.count += 1;
    }

    fn last(&self, most: usize) -> Vec<String> {
        let skip = self.lines.len().saturating_sub(most);
        self.lines.iter().skip(skip).cloned().collect()
    }

    fn cursor(&self, line: u64) -> LogCursor {
        LogCursor {
            life: self.life,
            line,
        }
    }
}

/// The part of a line that is shown.
fn shown(line: &str) -> &str {
    &line[..line.floor_char_boundary(LINE_LIMIT)]
}

/// The last lines of a log file, which were redacted when they were written.
fn remember(path: &Path) -> Vec<String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(REMEMBERED)))?;
        let mut bytes = Vec::new();
        file.take(REMEMBERED).read_to_end(&mut bytes)?;
        if length > REMEMBERED {
            // The first line is most likely the end of one.
            let end = bytes.iter().position(|byte| *byte == b'\n');
            bytes.drain(..end.map_or(bytes.len(), |end| end + 1));
        }
        Ok(bytes)
    };
    // A log that cannot be read is as good as one that is not there.
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let skip = lines.len().saturating_sub(RING_LINES);
    lines[skip..]
        .iter()
        .map(|line| shown(line).to_owned())
        .collect()
}

// === impl LogCursor ===

impl fmt::Display for LogCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}-{:x}", self.life, self.line)
    }
}

impl FromStr for LogCursor {
    type Err = InvalidLogCursor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (life, place) = text.split_once('-').ok_or(InvalidLogCursor)?;
        let number = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| InvalidLogCursor);
        Ok(Self {
            life: number(life)?,
            line: number(place)?,
        })
    }
}

// === impl LogFile ===

impl LogFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        Ok(Self {
            file: RotatedFile::open(path, FILE_LIMIT)?,
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
                self.file
                    .append(format!("[mcpproxy: {dropped} bytes dropped]\n").as_bytes())?;
            }
        }
        let length = bytes.len() as u64;
        if self.window_bytes + length > BYTES_A_SECOND {
            self.dropped += length;
            return Ok(());
        }
        self.window_bytes += length;
        self.file.append(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(path: Option<&Path>, secrets: &[&str]) -> StderrLog {
        let redactor = SharedRedactor::default();
        redactor.learn(secrets);
        StderrLog::new(path, true, redactor)
    }

    #[tokio::test]
    async fn the_ring_keeps_the_last_lines_and_cuts_long_ones() {
        let log = log(None, &[]);
        let mut text = "x".repeat(LINE_LIMIT * 3);
        for number in 0..RING_LINES {
            text.push_str(&format!("\nline {number}"));
        }
        log.clone().collect(text.as_bytes()).await;
        assert_eq!(log.page(None, 2).lines, ["line 498", "line 499"]);
        assert_eq!(log.page(None, usize::MAX).lines.len(), RING_LINES);
        assert_eq!(log.tail_since(RING_LINES as u64, 3), ["line 499"]);
        assert_eq!(log.tail_since(log.count(), 3), Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_reader_goes_on_where_it_was() {
        let log = log(None, &[]);
        log.clone().collect("one\ntwo\nthree\n".as_bytes()).await;
        let page = log.page(None, 1);
        assert_eq!(page.lines, ["three"]);
        log.clone().collect("four\nfive\n".as_bytes()).await;
        let cursor = page.cursor.to_string().parse().unwrap();
        let page = log.page(Some(cursor), 1);
        assert_eq!(page.lines, ["four"]);
        let page = log.page(Some(page.cursor), 10);
        assert_eq!(page.lines, ["five"]);
        assert_eq!(log.page(Some(page.cursor), 10).lines, Vec::<String>::new());
        for wrong in ["", "1", "x-1", "1-", "1-2-3"] {
            assert_eq!(wrong.parse::<LogCursor>(), Err(InvalidLogCursor), "{wrong}");
        }
    }

    #[tokio::test]
    async fn the_next_life_remembers_and_is_followed_from_its_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let first = log(Some(&path), &[]);
        first.clone().collect("before\n".as_bytes()).await;
        let seen = first.page(None, 10).cursor;
        drop(first);
        let second = log(Some(&path), &[]);
        assert_eq!(second.page(None, 10).lines, ["before"]);
        second.clone().collect("after\n".as_bytes()).await;
        let seen = LogCursor { life: 1, ..seen };
        assert_eq!(second.page(Some(seen), 10).lines, ["after"]);
    }

    #[tokio::test]
    async fn secrets_are_neither_kept_nor_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let log = log(Some(&path), &["very secret token"]);
        let padding = "y".repeat(LINE_LIMIT - 4);
        let text = format!("my key is very secret token!\n{padding}very secret token\n");
        log.clone().collect(text.as_bytes()).await;
        let lines = log.page(None, 10).lines;
        assert_eq!(lines[0], "my key is [REDACTED]!");
        assert!(lines[1].ends_with("y[RED"), "cut after the secret is gone");
        let file = std::fs::read_to_string(&path).unwrap();
        assert!(!file.contains("secret"), "{file}");
        assert_eq!(log.redacted("a very secret token"), "a [REDACTED]");
    }

    #[tokio::test]
    async fn a_private_key_is_struck_out_over_all_its_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let log = log(Some(&path), &[]);
        let digits = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        let text = format!(
            "using -----BEGIN PRIVATE KEY-----\n{digits}\n{digits}\nTg==\n-----END PRIVATE KEY-----\nready\n"
        );
        log.clone().collect(text.as_bytes()).await;
        assert_eq!(log.page(None, 10).lines, ["using [REDACTED]", "ready"]);
        let file = std::fs::read_to_string(&path).unwrap();
        assert_eq!(file, "using [REDACTED]\nready\n");
    }

    #[tokio::test]
    async fn a_secret_across_the_end_of_what_is_looked_at_leaves_no_half() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let log = log(Some(&path), &["very secret token"]);
        let text = format!("{}very secret token\nnext\n", "y".repeat(LONGEST_LINE - 8));
        log.clone().collect(text.as_bytes()).await;
        let file = std::fs::read_to_string(&path).unwrap();
        assert!(!file.contains("very"), "half a secret is kept");
        assert!(file.ends_with("y\nnext\n"));
    }

    #[tokio::test]
    async fn a_flood_is_counted_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("noisy.log");
        let log = log(Some(&path), &[]);
        let flood = "a line of noise\n".repeat(200_000);
        log.clone().collect(flood.as_bytes()).await;
        let written = std::fs::metadata(&path).unwrap().len();
        // A second's worth for each second it took, however slow the machine.
        assert!(written < flood.len() as u64, "{written} bytes written");
        assert_eq!(log.page(None, 1).lines, ["a line of noise"]);
    }

    #[tokio::test]
    async fn the_file_is_rotated_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let mut file = LogFile::open(path.clone()).unwrap();
        let block = vec![b'x'; usize::try_from(FILE_LIMIT).unwrap() / 2 + 1];
        file.file.append(&block).unwrap();
        file.file.append(&block).unwrap();
        assert!(directory.path().join("server.log.1").exists());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
