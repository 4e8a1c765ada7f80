//! What walking the hash chain found.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::chain::{Checkpoint, Hash, Link};
use crate::id::ActivityId;

/// The answer to "is the log as it was written?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Verification {
    /// Records that hold, counted up to the first break.
    pub records: u64,
    /// Entries of the chain that hold, counted up to the first break.
    pub entries: u64,
    /// The end of the chain as far as it holds; worth noting elsewhere.
    pub head: Link,
    /// Where retention cut the beginning off, if it did.
    pub checkpoint: Option<Checkpoint>,
    /// The first thing that is wrong.
    pub broken: Option<Break>,
    /// Whether the sums of summary and usage, which the chain does not cover, agree with the
    /// records; nothing if the chain breaks.
    pub sums_agree: Option<bool>,
    /// Whether the index, from which filtered lists, exports and simulations are answered, agrees
    /// with the records; nothing if the chain breaks.
    #[serde(default)]
    pub index_agrees: Option<bool>,
    /// Records that stand for calls and changes which could not be recorded.
    #[serde(default)]
    pub gaps: u64,
    /// What became of the head that was noted elsewhere, if one was given.
    pub noted_head: Option<NotedHead>,
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Break {
    /// The record it concerns, if that is still known.
    #[schema(value_type = Option<String>)]
    pub id: Option<ActivityId>,
    /// The entry at which the chain breaks.
    pub sequence: u64,
    pub reason: BreakReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum BreakReason {
    #[error("one or more entries before this one are missing")]
    EntriesMissing,
    #[error("the last entries of the log are missing")]
    TailMissing,
    #[error("the record is missing")]
    RecordMissing,
    #[error("the record cannot be read")]
    RecordUnreadable,
    #[error("the record, or an entry before it, was changed")]
    HashMismatch,
    #[error("the arguments were changed, removed or added")]
    ArgumentsChanged,
    #[error("the response was changed, removed or added")]
    ResponseChanged,
    #[error("the record was ended outside the chain")]
    EndedOutsideChain,
    #[error("the record was added outside the chain")]
    NotInChain,
    #[error("arguments or a response were added outside the chain")]
    PayloadNotInChain,
    #[error("the checkpoint of an entry is missing")]
    CheckpointMissing,
    #[error("the checkpoint cannot be read")]
    CheckpointUnreadable,
    #[error("the checkpoint, or its entry, was changed")]
    CheckpointChanged,
    #[error("the checkpoint was added outside the chain")]
    CheckpointNotInChain,
}

/// What became of a head that was noted elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotedHead {
    /// It is still the head.
    Current,
    /// It is in the chain, and the log has grown since.
    Behind { entries: u64 },
    /// It is not among the entries that could be looked at, and not all could: retention removed
    /// the beginning, or the chain breaks. Whether it was ever in the log cannot be said.
    Unconfirmed,
    /// It is not in the chain, of which nothing is missing: the log was cut short or rewritten.
    Missing,
}

impl Verification {
    /// Whether nothing is wrong, and what was asked about is confirmed.
    pub fn holds(&self) -> bool {
        let confirmed = match self.noted_head {
            None | Some(NotedHead::Current | NotedHead::Behind { .. }) => true,
            Some(NotedHead::Unconfirmed | NotedHead::Missing) => false,
        };
        let derived = [self.sums_agree, self.index_agrees];
        self.broken.is_none() && !derived.contains(&Some(false)) && confirmed
    }
}

impl NotedHead {
    /// `seen_whole` is whether the walk saw everything that was ever in the log.
    pub(crate) fn place(noted: Hash, found: Option<u64>, head: Link, seen_whole: bool) -> Self {
        match found {
            _ if noted == head.hash => Self::Current,
            Some(sequence) => Self::Behind {
                entries: head.sequence.saturating_sub(sequence),
            },
            None if seen_whole => Self::Missing,
            None => Self::Unconfirmed,
        }
    }
}
