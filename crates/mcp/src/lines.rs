//! Newline framing, as the stdio transport uses it: one message a line, with a cap on its length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// The longest line that is taken whole: 16 MiB.
pub const DEFAULT_LINE_LIMIT: usize = 16 * 1024 * 1024;

/// How much of either end of an oversized line is kept, to find out whose answer it was.
const KEPT_END: usize = 512;

/// What one line held.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Text(&'a [u8]),
    /// The line was longer than the limit and has been skipped.
    Oversized {
        bytes: u64,
        head: &'a [u8],
        tail: &'a [u8],
    },
}

/// Reads lines and never holds more of one than the limit. Empty lines are passed over.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    /// How far the current line has been dropped because it is over the limit.
    skipped: u64,
    tail: Vec<u8>,
    /// Whether `line` was handed out and must be emptied before reading on.
    consumed: bool,
    ends_at_limit: bool,
}

/// Writes messages, one a line.
#[derive(Debug)]
pub struct LineWriter<W> {
    writer: W,
}

// === impl LineReader ===

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, reader),
            limit,
            line: Vec::new(),
            skipped: 0,
            tail: Vec::new(),
            consumed: false,
            ends_at_limit: false,
        }
    }

    /// Like [`new`](Self::new), but reports an oversized line as soon as it is over the limit,
    /// without waiting for its end, which may never come. There is nothing to be read after it.
    pub fn ending_at_the_limit(reader: R, limit: usize) -> Self {
        Self {
            ends_at_limit: true,
            ..Self::new(reader, limit)
        }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The next line without its end, or `None` at the end of the stream. Cancel safe: what was
    /// read of an unfinished line is kept for the next call.
    pub async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.consumed {
            self.reset();
        }
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                if self.is_blank() {
                    return Ok(None);
                }
                break;
            }
            let end = memchr::memchr(b'\n', available);
            let (part, used) = match end {
                Some(position) => (&available[..position], position + 1),
                None => (available, available.len()),
            };
            let room = self.limit.saturating_sub(self.line.len());
            let (kept, dropped) = part.split_at(part.len().min(room));
            self.line.extend_from_slice(kept);
            if !dropped.is_empty() {
                if self.skipped == 0 {
                    // The end of the line may lie on both sides of the cut.
                    keep_tail(&mut self.tail, &self.line);
                }
                self.skipped += dropped.len() as u64;
                keep_tail(&mut self.tail, dropped);
            }
            self.reader.consume(used);
            if self.ends_at_limit && self.skipped > 0 {
                break;
            }
            if end.is_some() {
                if self.is_blank() {
                    self.line.clear();
                    continue;
                }
                break;
            }
        }
        self.consumed = true;
        Ok(Some(self.current()))
    }

    fn is_blank(&self) -> bool {
        self.skipped == 0 && self.line.trim_ascii().is_empty()
    }

    fn current(&self) -> Line<'_> {
        if self.skipped == 0 {
            return Line::Text(self.line.trim_ascii());
        }
        Line::Oversized {
            bytes: self.line.len() as u64 + self.skipped,
            head: &self.line[..self.line.len().min(KEPT_END)],
            tail: &self.tail,
        }
    }

    fn reset(&mut self) {
        // One large message must not pin its memory for the life of the connection.
        if self.line.capacity() > 1024 * 1024 {
            self.line = Vec::new();
        } else {
            self.line.clear();
        }
        self.tail.clear();
        self.skipped = 0;
        self.consumed = false;
    }
}

fn keep_tail(tail: &mut Vec<u8>, part: &[u8]) {
    tail.extend_from_slice(&part[part.len().saturating_sub(KEPT_END)..]);
    let excess = tail.len().saturating_sub(KEPT_END);
    tail.drain(..excess);
}

// === impl LineWriter ===

impl<W: AsyncWrite + Unpin> LineWriter<W> {
    pub fn new(writer: W) -> Self {
        Self { writer }
    }

    /// Writes one message and its line end. The caller flushes, so that several messages can
    /// share a system call.
    pub async fn write(&mut self, mut message: Vec<u8>) -> io::Result<()> {
        // Line breaks between tokens are legal JSON but would end the frame early. Inside strings
        // they can only stand escaped, so every raw one is white space.
        let mut from = 0;
        while let Some(length) = memchr::memchr2(b'\n', b'\r', &message[from..]) {
            message[from + length] = b' ';
            from += length + 1;
        }
        message.push(b'\n');
        self.writer.write_all(&message).await
    }

    pub async fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().await
    }

    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(input: &[u8], limit: usize) -> Vec<String> {
        let mut reader = LineReader::new(input, limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(match line {
                Line::Text(text) => String::from_utf8_lossy(text).into_owned(),
                Line::Oversized { bytes, head, tail } => format!(
                    "{bytes}:{}…{}",
                    String::from_utf8_lossy(head),
                    String::from_utf8_lossy(tail)
                ),
            });
        }
        lines
    }

    #[tokio::test]
    async fn lines_end_with_either_line_end_or_the_stream() {
        assert_eq!(read_all(b"a\r\n\n  \nb\nc", 16).await, ["a", "b", "c"]);
        assert_eq!(read_all(b"a\n \r", 16).await, ["a"]);
    }

    #[tokio::test]
    async fn an_oversized_line_is_skipped_and_the_next_one_read() {
        assert_eq!(
            read_all(b"0123456789\nok\n", 4).await,
            ["10:0123…0123456789", "ok"]
        );
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_reported_at_the_limit() {
        let endless = tokio::io::repeat(b'x');
        let mut reader = LineReader::ending_at_the_limit(endless, 1_000);
        let line = reader.next().await.unwrap().unwrap();
        assert!(matches!(line, Line::Oversized { bytes, .. } if bytes > 1_000));
    }

    #[tokio::test]
    async fn line_breaks_inside_a_message_do_not_end_its_frame() {
        let mut written = Vec::new();
        let mut writer = LineWriter::new(&mut written);
        writer.write(b"{\n\"a\":\r1}".to_vec()).await.unwrap();
        writer.flush().await.unwrap();
        assert_eq!(written, b"{ \"a\": 1}\n");
    }
}
