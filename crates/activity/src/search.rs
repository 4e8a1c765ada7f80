//! Free text search: which words of a record are found, and by what.

use crate::filter::FilterError;
use crate::payload::Payload;
use crate::record::Record;
use redact::cut;

/// More words than this narrow nothing down and only cost time.
const MOST_WORDS: usize = 16;

/// Of very large arguments only the beginning can be found.
const SEARCHED_ARGUMENTS: usize = 8 * 1024;

/// Fewer letters begin nearly every word, and finding them all would take too long.
pub(crate) const SHORTEST_PREFIX: usize = 3;

/// Words that must all be found in the tool's name, the arguments, the error or the reason.
///
/// Letters and digits make words and case does not matter. A word that ends in `*` finds the words
/// it begins; that is slower in a large log, because there are many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchText {
    words: Vec<SearchWord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchWord {
    pub(crate) text: String,
    pub(crate) prefix: bool,
}

impl SearchText {
    pub fn parse(value: &str) -> Result<Self, FilterError> {
        let words: Vec<SearchWord> = value
            .split(|letter: char| !letter.is_alphanumeric() && letter != '*')
            .flat_map(|piece| piece.split_inclusive('*'))
            .filter_map(SearchWord::parse)
            .collect();
        if words.is_empty() || words.len() > MOST_WORDS {
            return Err(FilterError::SearchText {
                value: value.to_owned(),
                most: MOST_WORDS,
            });
        }
        Ok(Self { words })
    }

    pub(crate) fn words(&self) -> &[SearchWord] {
        &self.words
    }

    pub(crate) fn matches(&self, record: &Record) -> bool {
        let mut missing: Vec<&SearchWord> = self.words.iter().collect();
        each_word(
            record.tool_name.as_deref(),
            record.arguments.as_ref().map(Payload::as_str),
            record.error_message.as_deref(),
            record
                .metadata
                .intent
                .as_ref()
                .and_then(|intent| intent.reason.as_deref()),
            |word| missing.retain(|wanted| !wanted.is_met_by(word)),
        );
        missing.is_empty()
    }
}

impl SearchWord {
    fn parse(piece: &str) -> Option<Self> {
        let word = piece.strip_suffix('*').unwrap_or(piece);
        if word.is_empty() {
            return None;
        }
        let text = fold(word);
        let prefix = word.len() < piece.len() && text.chars().count() >= SHORTEST_PREFIX;
        Some(Self { text, prefix })
    }

    fn is_met_by(&self, word: &[u8]) -> bool {
        if self.prefix {
            word.starts_with(self.text.as_bytes())
        } else {
            word == self.text.as_bytes()
        }
    }
}

/// Calls `found` with the bytes of every word by which a record is found. Stores index these and nothing else,
/// so that they agree with [`SearchText::matches`] on what a word is.
pub(crate) fn each_word(
    tool_name: Option<&str>,
    arguments: Option<&str>,
    error_message: Option<&str>,
    reason: Option<&str>,
    mut found: impl FnMut(&[u8]),
) {
    let arguments = arguments.map(|text| cut(text, SEARCHED_ARGUMENTS));
    let mut folded = Vec::with_capacity(arguments.map_or(0, str::len));
    for text in [tool_name, arguments, error_message, reason]
        .into_iter()
        .flatten()
    {
        if text.is_ascii() {
            folded.clear();
            folded.extend_from_slice(text.as_bytes());
            folded.make_ascii_lowercase();
            folded
                .split(|letter| !letter.is_ascii_alphanumeric())
                .filter(|word| !word.is_empty())
                .for_each(&mut found);
        } else {
            text.split(|letter: char| !letter.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .for_each(|word| found(fold(word).as_bytes()));
        }
    }
}

fn fold(word: &str) -> String {
    if word.is_ascii() {
        word.to_ascii_lowercase()
    } else {
        word.to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_a_word_is_refused() {
        for value in ["", "  ", "***", "\"'"] {
            assert!(matches!(
                SearchText::parse(value),
                Err(FilterError::SearchText { .. })
            ));
        }
        assert!(SearchText::parse(&"word ".repeat(17)).is_err());
    }

    #[test]
    fn words_are_split_at_anything_but_letters_and_digits() {
        let text = SearchText::parse("Delete_Rep* v2* **x").unwrap();
        let words: Vec<_> = text
            .words()
            .iter()
            .map(|word| (word.text.as_str(), word.prefix))
            .collect();
        assert_eq!(
            words,
            [
                ("delete", false),
                ("rep", true),
                ("v2", false),
                ("x", false)
            ]
        );
    }
}
