//! What a program writes before it speaks MCP. Start-up banners and log lines on stdout are common
//! and harmless; a program that never gets to the point must not be listened to for ever.

/// How much of the wrong output is put up with before the first message.
const MOST_LINES: usize = 100;
const MOST_BYTES: u64 = 64 * 1024;

/// How much of it is kept to show to a person.
const SHOWN: usize = 600;

#[derive(Debug, Default)]
pub(super) struct Preamble {
    lines: usize,
    bytes: u64,
    output: Vec<u8>,
    over: bool,
}

impl Preamble {
    /// Passes over a line that is no message. Whether there is patience left for more.
    pub(super) fn skip(&mut self, line: &[u8]) -> bool {
        let bytes = line.len() as u64;
        tracing::debug!(bytes, "a line that is not a message was skipped");
        if self.over {
            return true;
        }
        self.lines += 1;
        self.bytes += bytes;
        let room = SHOWN.saturating_sub(self.output.len());
        if room > 0 {
            if !self.output.is_empty() {
                self.output.push(b'\n');
            }
            self.output.extend_from_slice(&line[..line.len().min(room)]);
        }
        self.lines <= MOST_LINES && self.bytes <= MOST_BYTES
    }

    /// The first message came.
    pub(super) fn end(&mut self) {
        self.over = true;
        self.output = Vec::new();
    }

    pub(super) fn take_output(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.output)).into_owned()
    }
}
