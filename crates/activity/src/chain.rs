//! The hash chain that makes the log tamper-evident.
//!
//! The log is an append-only chain of *entries*. A record that runs for a while has two, one when
//! it starts and one when it ends; a record of a moment has one; deleting old records leaves one
//! more, a checkpoint. The hash of an entry is SHA-256 over this encoding:
//!
//! ```text
//! entry      = version:u8  kind:u8  sequence:u64  previous:32 bytes  body
//! body       = fields of the start                       (kind 1, a start)
//!            | fields of the start, fields of the end    (kind 2, an end; kind 3, both at once)
//!            | fields of the checkpoint                  (kind 4)
//! field      = 0x00                                      (absent)
//!            | 0x01  length:u32  bytes                   (present)
//! ```
//!
//! Integers are big-endian; a number in a field is its eight bytes, a word its text, a payload
//! three fields: its digest, whether it was cut, whether its text is kept. Because every field
//! carries its length, no two records share an encoding. The version is 2 where the start ends in
//! the facts of a decision, and 1 where it has none.
//!
//! An end covers the whole record and not only its second half, so that a record whose start was
//! deleted by retention is still protected; a record that has not ended by then is started anew at
//! the end of the chain.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::payload::SealedPayload;
use crate::record::{Ended, Started};
use crate::words::Word;

const ENCODING_VERSION: u8 = 1;
const ENCODING_VERSION_WITH_FACTS: u8 = 2;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A SHA-256 hash, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Hash(pub [u8; 32]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a hash; it has 64 hexadecimal digits")]
pub struct InvalidHash;

/// A place in the chain: the number of an entry and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    pub sequence: u64,
    #[schema(value_type = String)]
    pub hash: Hash,
}

/// What an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Start,
    End,
    Whole,
    Checkpoint,
}

/// What retention leaves behind: where the rest of the chain continues from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checkpoint {
    /// The last entry that was removed.
    pub through: Link,
    /// How many records were removed in all, by this and every earlier checkpoint.
    pub removed_records: u64,
    #[schema(value_type = String, format = DateTime)]
    pub made_at: Timestamp,
}

impl Hash {
    /// What the first entry of a log has before it.
    pub const GENESIS: Self = Self([0; 32]);

    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl Link {
    /// The place before the first entry.
    pub const GENESIS: Self = Self {
        sequence: 0,
        hash: Hash::GENESIS,
    };

    /// The place after this one, for an entry about this record.
    pub(crate) fn extend(self, started: &Started, ended: Option<&Ended>, kind: EntryKind) -> Self {
        let version = match started.metadata.facts {
            None => ENCODING_VERSION,
            Some(_) => ENCODING_VERSION_WITH_FACTS,
        };
        let mut encoder = Encoder::new(self, kind, version);
        encoder.start(started);
        if let Some(ended) = ended {
            encoder.end(ended);
        }
        encoder.finish(self)
    }

    /// The place after this one, for a checkpoint.
    pub(crate) fn extend_checkpoint(self, checkpoint: &Checkpoint) -> Self {
        let mut encoder = Encoder::new(self, EntryKind::Checkpoint, ENCODING_VERSION);
        encoder.number(checkpoint.through.sequence);
        encoder.bytes(Some(&checkpoint.through.hash.0));
        encoder.number(checkpoint.removed_records);
        encoder.number(checkpoint.made_at.as_millisecond().cast_unsigned());
        encoder.finish(self)
    }
}

impl EntryKind {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Start => 1,
            Self::End => 2,
            Self::Whole => 3,
            Self::Checkpoint => 4,
        }
    }

    pub(crate) fn from_code(code: i64) -> Option<Self> {
        [Self::Start, Self::End, Self::Whole, Self::Checkpoint]
            .into_iter()
            .find(|kind| i64::from(kind.code()) == code)
    }
}

/// Writes the canonical encoding straight into the hash function.
struct Encoder(Sha256);

impl Encoder {
    fn new(previous: Link, kind: EntryKind, version: u8) -> Self {
        let mut hasher = Sha256::new();
        hasher.update([version, kind.code()]);
        hasher.update((previous.sequence + 1).to_be_bytes());
        hasher.update(previous.hash.0);
        Self(hasher)
    }

    fn start(&mut self, started: &Started) {
        self.number(started.id.order());
        self.number(started.id.tail());
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
        self.number(u64::from(metadata.intent.is_some()));
        let intent = metadata.intent.as_ref();
        self.word(intent.and_then(|intent| intent.operation_type));
        self.word(intent.and_then(|intent| intent.data_sensitivity));
        self.text(intent.and_then(|intent| intent.reason.as_deref()));
        self.text(metadata.tool_variant.map(policy::ToolVariant::as_str));
        self.text(metadata.effective_tier.map(policy::Tier::as_str));
        self.text(metadata.provenance.map(policy::Provenance::as_str));
        self.number(metadata.warnings.len() as u64);
        for warning in &metadata.warnings {
            self.text(Some(warning));
        }
        if let Some(facts) = metadata.facts {
            self.number(facts.pack());
        }
    }

    fn end(&mut self, ended: &Ended) {
        self.word(Some(ended.status));
        self.text(ended.error_code.as_deref());
        self.text(ended.error_message.as_deref());
        self.number(ended.duration_ms);
        self.number(ended.response_bytes);
        self.payload(ended.response.as_ref());
    }

    fn payload(&mut self, payload: Option<&SealedPayload>) {
        self.bytes(payload.map(|payload| payload.digest.0.as_slice()));
        self.number(u64::from(payload.is_some_and(|payload| payload.truncated)));
        self.number(u64::from(payload.is_some_and(|payload| payload.kept)));
    }

    fn word(&mut self, word: Option<impl Word>) {
        self.text(word.map(Word::as_str));
    }

    fn text(&mut self, text: Option<&str>) {
        self.bytes(text.map(str::as_bytes));
    }

    fn number(&mut self, number: u64) {
        self.bytes(Some(&number.to_be_bytes()));
    }

    fn bytes(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            None => self.0.update([0]),
            Some(bytes) => {
                // Texts are limited far below 4 GiB before they get here.
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                self.0.update([1]);
                self.0.update(length.to_be_bytes());
                self.0.update(bytes);
            }
        }
    }

    fn finish(self, previous: Link) -> Link {
        Link {
            sequence: previous.sequence + 1,
            hash: Hash(self.0.finalize().into()),
        }
    }
}

impl FromStr for Hash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(InvalidHash);
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16).ok_or(InvalidHash);
            let value = digit(pair[0])? << 4 | digit(pair[1])?;
            *byte = u8::try_from(value).map_err(|_| InvalidHash)?;
        }
        Ok(Self(hash))
    }
}

impl TryFrom<String> for Hash {
    type Error = InvalidHash;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In one piece: every call writes several, and formatting byte by byte was a quarter of
        // what its record cost.
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        formatter.pad(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests;
