//! The hash chain that makes the log tamper-evident.
//!
//! The log is an append-only chain of *entries*. A record that runs for a while has two, one when
//! it starts and one when it ends; a record of a moment has one; deleting old records leaves one
//! more, a checkpoint. The hash of an entry is SHA-256 over this encoding:
//!
//! ```text
//! entry      = version:u8  kind:u8  sequence:u64  previous:32 bytes  body
//! body       = start                                     (kind 1, a start)
//!            | start end                                 (kind 2, an end; kind 3, both at once;
//!                                                         kind 5, an ended record carried on)
//!            | fields of the checkpoint                  (kind 4)
//! ```
//!
//! What a start, an end, a field and the version are is told in `encoding.rs`; integers are
//! big-endian.
//!
//! An end covers the whole record and not only its second half, so that a record whose start was
//! deleted by retention is still protected; a record that has not ended by then is started anew at
//! the end of the chain. A record that has ended and stays while those around it are removed is
//! carried to the end of the chain: it gets a new entry there, and its old one goes.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::encoding::{self, Encoder};
use crate::record::{Ended, Started};

/// How many bytes an entry has, mostly.
const USUAL_ENTRY: usize = 512;

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
    /// A record that ended before, and that retention kept when it cut the chain behind it.
    Carried,
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
        // In one piece: to feed the hash function field by field took it longer than to hash them.
        let mut body = Vec::with_capacity(USUAL_ENTRY);
        let mut encoder = Encoder(&mut body);
        encoder.start(started);
        if let Some(ended) = ended {
            encoder.end(ended);
        }
        self.extend_encoded(kind, encoding::version(started), [&body, &[]])
    }

    /// The place after this one, for a checkpoint.
    pub(crate) fn extend_checkpoint(self, checkpoint: &Checkpoint) -> Self {
        let mut body = Vec::new();
        let mut encoder = Encoder(&mut body);
        encoder.number(checkpoint.through.sequence);
        encoder.bytes(Some(&checkpoint.through.hash.0));
        encoder.number(checkpoint.removed_records);
        encoder.number(checkpoint.made_at.as_millisecond().cast_unsigned());
        self.extend_encoded(EntryKind::Checkpoint, encoding::VERSION, [&body, &[]])
    }

    /// The place after this one, for an entry whose start and end, or other body, are encoded.
    pub(crate) fn extend_encoded(self, kind: EntryKind, version: u8, body: [&[u8]; 2]) -> Self {
        let sequence = self.sequence + 1;
        let [first, second] = body;
        let hash = Sha256::new()
            .chain_update([version, kind.code()])
            .chain_update(sequence.to_be_bytes())
            .chain_update(self.hash.0)
            .chain_update(first)
            .chain_update(second)
            .finalize();
        Self {
            sequence,
            hash: Hash(hash.into()),
        }
    }
}

impl EntryKind {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Start => 1,
            Self::End => 2,
            Self::Whole => 3,
            Self::Checkpoint => 4,
            Self::Carried => 5,
        }
    }

    pub(crate) fn from_code(code: i64) -> Option<Self> {
        let kinds = [
            Self::Start,
            Self::End,
            Self::Whole,
            Self::Checkpoint,
            Self::Carried,
        ];
        kinds
            .into_iter()
            .find(|kind| i64::from(kind.code()) == code)
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
