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
}

/// What became of a head that was noted elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotedHead {
    /// It is still the head.
    Current,
    /// It is in the chain, and the log has grown since.
    Behind { entries: u64 },
    /// It is not in the chain: the log was cut short or rewritten, or retention removed that part.
    Missing,
}

impl Verification {
    /// Whether nothing is wrong.
    pub fn holds(&self) -> bool {
        self.broken.is_none() && self.noted_head != Some(NotedHead::Missing)
    }
}

impl NotedHead {
    pub(crate) fn place(noted: Hash, found: Option<u64>, head: Link) -> Self {
        match found {
            _ if noted == head.hash => Self::Current,
            Some(sequence) => Self::Behind {
                entries: head.sequence.saturating_sub(sequence),
            },
            None => Self::Missing,
        }
    }
}
