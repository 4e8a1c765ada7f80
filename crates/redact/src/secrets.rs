//! Searches for configured values in all the forms they may be written in.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};

use super::literals::Literals;
use super::{MASK, written};

/// The first bytes of every form are searched for before the forms are: nearly all text has none of
/// them, and that is found out much more quickly.
const PREFIX: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Secrets {
    prefixes: Literals,
    forms: AhoCorasick,
    longest: usize,
}

impl Secrets {
    /// None if there is no value to search for.
    pub(super) fn new<'a>(
        values: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Self>, BuildError> {
        let mut forms: Vec<String> = values.flat_map(written::forms).collect();
        forms.sort_unstable();
        forms.dedup();
        let Some(longest) = forms.iter().map(String::len).max() else {
            return Ok(None);
        };
        let mut prefixes: Vec<&[u8]> = forms
            .iter()
            .map(|form| &form.as_bytes()[..form.len().min(PREFIX)])
            .collect();
        prefixes.dedup();
        Ok(Some(Self {
            prefixes: Literals::new(&prefixes)?,
            forms: AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(&forms)?,
            longest,
        }))
    }

    /// The length of the longest form.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.prefixes.is_match(text) && self.forms.is_match(text)
    }

    pub(super) fn replace<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut output = String::with_capacity(text.len());
        self.forms
            .replace_all_with(text, &mut output, |_, _, output| {
                output.push_str(MASK);
                true
            });
        Cow::Owned(output)
    }
}
