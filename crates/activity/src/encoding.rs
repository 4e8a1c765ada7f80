//! Records as bytes, always the same ones for the same record. The hash chain covers them, so they
//! never change; the journal keeps entries as them.
//!
//! ```text
//! start      = fields of `Started`, in the order in which `Encoder::start` writes them
//! end        = fields of `Ended`, likewise
//! field      = 0x00                                      (absent)
//!            | 0x01  length:u32  bytes                   (present)
//! ```
//!
//! Integers are big-endian; a number in a field is its eight bytes, a word its text, a payload
//! three fields: its digest, whether it was cut, whether its text is kept. Because every field
//! carries its length, no two records share an encoding. The version is 2 where the start ends in
//! the facts of a decision, and 1 where it has none.

mod decode;

pub(crate) use decode::{Decoder, InvalidEncoding};

use crate::id::ActivityId;
use crate::payload::SealedPayload;
use crate::record::{Ended, Started};
use crate::words::Word;

pub(crate) const VERSION: u8 = 1;
pub(crate) const VERSION_WITH_FACTS: u8 = 2;

/// Appends fields to bytes.
pub(crate) struct Encoder<'a>(pub(crate) &'a mut Vec<u8>);

/// How the start is encoded.
pub(crate) fn version(started: &Started) -> u8 {
    match started.metadata.facts {
        None => VERSION,
        Some(_) => VERSION_WITH_FACTS,
    }
}

impl Encoder<'_> {
    pub(crate) fn id(&mut self, id: ActivityId) {
        self.number(id.order());
        self.number(id.tail());
    }

    pub(crate) fn start(&mut self, started: &Started) {
        self.id(started.id);
        self.word(Some(started.record_type));
        self.word(Some(started.source));
        self.text(started.server_name.as_deref());
        self.text(started.tool_name.as_deref());
        self.text(started.session_id.as_deref());
        self.text(started.client_name.as_deref());
        self.text(started.request_id.as_deref());
        self.number(started.request_bytes);
        self.payload(started.arguments.as_ref());
        let metadata = &started.metadata;
        self.flag(metadata.intent.is_some());
        let intent = metadata.intent.as_ref();
        self.word(intent.and_then(|intent| intent.operation_type));
        self.word(intent.and_then(|intent| intent.data_sensitivity));
        self.text(intent.and_then(|intent| intent.reason.as_deref()));
        self.word(metadata.tool_variant);
        self.word(metadata.effective_tier);
        self.word(metadata.provenance);
        self.number(metadata.warnings.len() as u64);
        for warning in &metadata.warnings {
            self.text(Some(warning));
        }
        if let Some(facts) = metadata.facts {
            self.number(facts.pack());
        }
    }

    pub(crate) fn end(&mut self, ended: &Ended) {
        self.word(Some(ended.status));
        self.text(ended.error_code.as_deref());
        self.text(ended.error_message.as_deref());
        self.number(ended.duration_ms);
        self.number(ended.response_bytes);
        self.payload(ended.response.as_ref());
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.bytes(Some(&number.to_be_bytes()));
    }

    pub(crate) fn bytes(&mut self, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else {
            return self.0.push(0);
        };
        // Texts are limited far below 4 GiB before they get here.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let [first, second, third, fourth] = length.to_be_bytes();
        self.0.extend([1, first, second, third, fourth]);
        self.0.extend(bytes);
    }

    fn payload(&mut self, payload: Option<&SealedPayload>) {
        self.bytes(payload.map(|payload| payload.digest.0.as_slice()));
        self.flag(payload.is_some_and(|payload| payload.truncated));
        self.flag(payload.is_some_and(|payload| payload.kept));
    }

    fn flag(&mut self, flag: bool) {
        self.number(flag.into());
    }

    fn word(&mut self, word: Option<impl Word>) {
        self.text(word.map(Word::as_str));
    }

    fn text(&mut self, text: Option<&str>) {
        self.bytes(text.map(str::as_bytes));
    }
}

#[cfg(test)]
pub(crate) mod tests;
