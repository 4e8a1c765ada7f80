//! A quick look at several texts at once: is there anything to redact at all? Mostly there is not,
//! and then nothing has to be taken apart.
//!
//! The texts are put one after the other and searched together. That misses nothing that the
//! careful way finds, because everything that it searches is in there and looks the same:
//!
//! - plain text and JSON text as they are, which is also where parts of them are found, between
//!   strings or in text that is not quite JSON;
//! - what the strings of JSON mean. Escapes are resolved from left to right without regard to
//!   where strings begin. That comes to the same: an escape that is no escape, because it stands
//!   outside of a string, can swallow nothing of a string but its opening quote, and it means one.
//!   Whatever cannot be resolved counts as a find;
//! - before and behind each text and each string is its edge, a line break or a quote. None of them
//!   is part of a word, so a token has the boundary there that it needs.
//!
//! Where texts meet, something can be found that is in none of them; then the careful way settles
//! it.

use std::cell::Cell;

use memchr::memchr;

use super::Redactor;

/// Larger texts are searched where they are instead of being copied.
const LARGE: usize = 4 * 1024;

/// More than this is not kept between two looks.
const KEPT_CAPACITY: usize = 64 * 1024;

thread_local! {
    /// Every look needs space for its texts, and needs it only for a moment.
    static SPACE: Cell<String> = const { Cell::new(String::new()) };
}

#[derive(Debug)]
pub struct Prefilter<'a> {
    redactor: &'a Redactor,
    texts: String,
    found: bool,
}

impl<'a> Prefilter<'a> {
    pub(super) fn new(redactor: &'a Redactor) -> Self {
        Self {
            redactor,
            texts: SPACE.take(),
            found: false,
        }
    }

    /// Adds text that means what it says.
    pub fn text(&mut self, text: &str) {
        if text.len() > LARGE {
            self.found = self.found || self.redactor.finds_something(text);
            return;
        }
        self.texts.push_str(text);
        self.texts.push('\n');
    }

    /// Adds text that is JSON as a whole. Its strings are searched as what they mean only, as the
    /// careful way does with them; half the time of [`json`](Self::json) where there are escapes.
    pub fn whole_json(&mut self, text: &str) {
        if memchr(b'\\', text.as_bytes()).is_none() {
            return self.text(text);
        }
        let start = self.texts.len();
        self.found = self.found || push_meaning(&mut self.texts, text).is_none();
        self.texts.push('\n');
        if self.texts.len() - start > LARGE {
            self.found = self.found || self.redactor.finds_something(&self.texts[start..]);
            self.texts.truncate(start);
        }
    }

    /// Adds JSON text, which may be cut off: as it is, and as what it means where that differs.
    pub fn json(&mut self, text: &str) {
        self.text(text);
        if !self.found && memchr(b'\\', text.as_bytes()).is_some() {
            self.found = push_meaning(&mut self.texts, text).is_none();
            self.texts.push('\n');
        }
    }

    /// Whether there is certainly nothing to redact in any of the texts.
    pub fn finds_nothing(mut self) -> bool {
        let found = self.found || self.redactor.finds_something(&self.texts);
        if self.texts.capacity() <= KEPT_CAPACITY {
            self.texts.clear();
            SPACE.set(self.texts);
        }
        !found
    }
}

/// Appends the text with its escapes resolved, if all of them can be.
fn push_meaning(output: &mut String, text: &str) -> Option<()> {
    let mut rest = text;
    while let Some(backslash) = memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at(backslash);
        let (letter, length) = resolve(escape)?;
        output.push_str(before);
        output.push(letter);
        rest = &escape[length..];
    }
    output.push_str(rest);
    Some(())
}

/// What the escape at the beginning of the text stands for, and its length.
fn resolve(escape: &str) -> Option<(char, usize)> {
    let letter = match escape.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return resolve_unicode(escape),
        _ => return None,
    };
    Some((letter, 2))
}

/// The same for `\uXXXX`, of which a letter beyond the first plane takes two.
fn resolve_unicode(escape: &str) -> Option<(char, usize)> {
    let units = [
        code_unit(escape)?,
        escape.get(6..).and_then(code_unit).unwrap_or(0),
    ];
    let letter = char::decode_utf16(units).next()?.ok()?;
    Some((letter, 6 * letter.len_utf16()))
}

fn code_unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    // A sign is a number's, but not an escape's.
    let all_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| all_digits)
}

#[cfg(test)]
mod tests;
