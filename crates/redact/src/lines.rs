//! Private keys that arrive line by line, as on a server's stderr, where one line alone does not
//! show what it is part of.

use super::Redactor;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// The most lines a block has. A key of 16,384 bits has about 200.
const MOST_LINES: usize = 512;

/// After this many lines that cannot be part of a key, a block without an end is over.
const MOST_OTHER_LINES: usize = 16;

/// A run of base64 digits of this length in a line makes it one of a key, whatever is before it.
const DIGITS: usize = 32;

/// Whether a private key is being written, kept between the lines of one stream.
#[derive(Debug, Default)]
pub struct KeyBlock {
    /// The lines that may still belong to it; 0 outside of a block.
    lines_left: usize,
    /// Lines in a row that did not.
    others: usize,
}

impl KeyBlock {
    /// Redacts the next line. None for a line inside a key: its first line stands for all of it.
    pub fn line(&mut self, redactor: &Redactor, line: &str) -> Option<String> {
        if self.lines_left == 0 {
            return Some(self.outside(redactor, line));
        }
        if let Some(end) = line.find(END) {
            self.lines_left = 0;
            let rest = line[end + END.len()..].split_once("-----");
            let rest = rest.map_or("", |(_, rest)| rest).trim();
            return (!rest.is_empty()).then(|| self.outside(redactor, rest));
        }
        self.lines_left -= 1;
        if is_of_a_key(line) {
            self.others = 0;
            return None;
        }
        self.others += 1;
        if self.others == MOST_OTHER_LINES {
            self.lines_left = 0;
        }
        Some(self.outside(redactor, line))
    }

    fn outside(&mut self, redactor: &Redactor, line: &str) -> String {
        // The shape of a key that does not end in this line goes to the end of the line.
        if let Some(begin) = line.rfind(BEGIN)
            && line[begin..].contains(PRIVATE_KEY)
            && !line[begin..].contains(END)
        {
            *self = Self {
                lines_left: MOST_LINES,
                others: 0,
            };
        }
        let is_json = line.trim_start().starts_with(['{', '[']);
        let redacted = if is_json {
            redactor.json(line)
        } else {
            redactor.text(line)
        };
        redacted.into_owned()
    }
}

/// A line of base64, a header of the armour, or nothing; also behind a time or a level.
fn is_of_a_key(line: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let line = line.trim();
    let is_header = || {
        let name = line.split_once(": ").map(|(name, _)| name);
        name.is_some_and(|name| {
            name.bytes()
                .all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
        })
    };
    line.bytes().all(is_digit)
        || is_header()
        || line
            .as_bytes()
            .split(|byte| !is_digit(*byte))
            .any(|run| run.len() >= DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MASK;

    fn lines(text: &str) -> Vec<String> {
        let redactor = Redactor::new(["hunter2!"]).unwrap();
        let mut block = KeyBlock::default();
        text.lines()
            .filter_map(|line| block.line(&redactor, line))
            .collect()
    }

    #[test]
    fn a_key_is_struck_out_to_its_end() {
        for kind in ["", "RSA ", "OPENSSH ", "EC ", "ENCRYPTED "] {
            let digits = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
            let text = format!(
                "starting\nkey: -----BEGIN {kind}PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n\
                 {digits}\n2026-01-01 INFO {digits}\nTg==\n-----END {kind}PRIVATE KEY-----\nhunter2! ready"
            );
            assert_eq!(
                lines(&text),
                [
                    "starting",
                    &format!("key: {MASK}"),
                    &format!("{MASK} ready")
                ]
            );
        }
        let pgp = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQOYBF\n=aBcD\n-----END PGP PRIVATE KEY BLOCK----- done";
        assert_eq!(lines(pgp), [MASK, "done"]);
    }

    #[test]
    fn other_lines_are_shown_and_end_a_block_that_has_no_end() {
        let other = "this is not a key, hunter2!\n".repeat(MOST_OTHER_LINES);
        let text = format!("expected -----BEGIN PRIVATE KEY----- here\nabcd\n{other}abcd");
        let seen = lines(&text);
        assert_eq!(seen[0], format!("expected {MASK}"));
        assert_eq!(seen[1], format!("this is not a key, {MASK}"));
        assert_eq!(seen.len(), MOST_OTHER_LINES + 2);
        assert_eq!(seen.last().unwrap(), "abcd");
    }

    #[test]
    fn a_block_has_a_bounded_number_of_lines() {
        let text = format!(
            "-----BEGIN PRIVATE KEY-----\n{}",
            "abcd\n".repeat(MOST_LINES + 1)
        );
        assert_eq!(lines(&text), [MASK, "abcd"]);
    }

    #[test]
    fn a_line_of_json_is_read_as_such() {
        assert_eq!(
            lines(r#"{"level":"info","password":"a\"b"}"#),
            [r#"{"level":"info","password":"[REDACTED]"}"#]
        );
    }
}
