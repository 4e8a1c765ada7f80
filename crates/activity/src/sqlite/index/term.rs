//! Terms: what a record can be found by, as bytes. The first says which filter, the others are
//! its value or a word. They are on disk: never renumber the filters, never change the buckets.

use super::super::codes::Code;
use super::BUCKETS;
use crate::filter::Filter;
use crate::payload::Payload;
use crate::record::{Ended, Started};
use crate::search::{self, SHORTEST_PREFIX, SearchText};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Type = 1,
    Source = 2,
    Status = 3,
    IntentType = 4,
    Sensitivity = 5,
    Server = 6,
    Tool = 7,
    Client = 8,
    Session = 9,
    Request = 10,
    Word = 11,
}

/// A term that a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) term: Vec<u8>,
    /// Whether every term that begins like this one is meant.
    pub(super) prefix: bool,
}

impl Wanted {
    pub(super) fn is_met_by(&self, term: &[u8]) -> bool {
        if self.prefix {
            term.starts_with(&self.term)
        } else {
            term == self.term
        }
    }
}

/// The bucket in which a term is found. All words that a prefix can mean are in the same one.
pub(super) fn bucket(term: &[u8]) -> usize {
    let hashed = match term {
        [field, word @ ..] if *field == Field::Word as u8 => {
            let mut letters = word.iter().enumerate().filter(|(_, byte)| is_first(**byte));
            let end = letters
                .nth(SHORTEST_PREFIX)
                .map_or(word.len(), |(end, _)| end);
            &term[..=end]
        }
        _ => term,
    };
    crc32fast::hash(hashed) as usize % BUCKETS
}

/// Whether a character of UTF-8 begins with this byte.
fn is_first(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Calls `found` for every term of a record, for some of them more than once.
pub(super) fn each_term(started: &Started, ended: &Ended, mut found: impl FnMut(Field, &[u8])) {
    let intent = started.metadata.intent.as_ref();
    let codes = [
        (Field::Type, Some(started.record_type.code())),
        (Field::Source, Some(started.source.code())),
        (Field::Status, Some(ended.status.code())),
        (
            Field::IntentType,
            intent.and_then(|intent| intent.operation_type.map(Code::code)),
        ),
        (
            Field::Sensitivity,
            intent.and_then(|intent| intent.data_sensitivity.map(Code::code)),
        ),
    ];
    let texts = [
        (Field::Server, started.server_name.as_deref()),
        (Field::Tool, started.tool_name.as_deref()),
        (Field::Client, started.client_name.as_deref()),
        (Field::Session, started.session_id.as_deref()),
        (Field::Request, started.request_id.as_deref()),
    ];
    for (field, code) in codes {
        if let Some(code) = code {
            found(field, &[code_byte(code)]);
        }
    }
    for (field, text) in texts {
        if let Some(text) = text {
            found(field, text.as_bytes());
        }
    }
    let arguments = started.arguments.as_ref();
    search::each_word(
        started.tool_name.as_deref(),
        arguments.and_then(|arguments| arguments.text.as_ref().map(Payload::as_str)),
        ended.error_message.as_deref(),
        intent.and_then(|intent| intent.reason.as_deref()),
        |word| found(Field::Word, word),
    );
}

/// The terms that a record must have to pass the filter; its times are left out.
pub(super) fn wanted(filter: &Filter) -> Vec<Wanted> {
    let codes = [
        (Field::Type, filter.record_type.map(Code::code)),
        (Field::Source, filter.source.map(Code::code)),
        (Field::Status, filter.status.map(Code::code)),
        (Field::IntentType, filter.intent_type.map(Code::code)),
        (Field::Sensitivity, filter.sensitivity.map(Code::code)),
    ];
    let texts = [
        (Field::Server, &filter.server),
        (Field::Tool, &filter.tool),
        (Field::Client, &filter.client),
        (Field::Session, &filter.session_id),
        (Field::Request, &filter.request_id),
    ];
    let mut wanted = Vec::new();
    let mut want = |term, prefix| wanted.push(Wanted { term, prefix });
    for (field, code) in codes {
        if let Some(code) = code {
            want(of_code(field, code).to_vec(), false);
        }
    }
    for (field, text) in texts {
        if let Some(text) = text {
            want(of_text(field, text), false);
        }
    }
    for word in filter.q.iter().flat_map(SearchText::words) {
        want(of_text(Field::Word, &word.text), word.prefix);
    }
    wanted
}

fn of_code(field: Field, code: i64) -> [u8; 2] {
    [field as u8, code_byte(code)]
}

fn code_byte(code: i64) -> u8 {
    code.to_le_bytes()[0]
}

fn of_text(field: Field, text: &str) -> Vec<u8> {
    [&[field as u8], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_prefix_is_looked_for_where_its_words_are(word in "\\w{3,12}") {
            let whole = of_text(Field::Word, &word);
            for (end, _) in word.char_indices().skip(SHORTEST_PREFIX) {
                let prefix = of_text(Field::Word, &word[..end]);
                prop_assert_eq!(bucket(&prefix), bucket(&whole));
            }
        }
    }

    #[test]
    fn buckets_stay_where_they_are() {
        let buckets = [
            bucket(&of_code(Field::Status, 2)),
            bucket(&of_text(Field::Server, "github")),
            bucket(&of_text(Field::Word, "delete")),
        ];
        assert_eq!(buckets, [16, 14, 48]);
    }
}
