//! What may be removed, as a pure function.
//!
//! Agents and upstreams decide how many reads, refusals and changed definitions there are. Half of
//! the log is therefore reserved for *protected* records: calls that may have changed something, and
//! what the operator did. Up to that share, only age removes them.

use std::time::Duration;

use jiff::Timestamp;
use policy::{Code, ToolVariant};
use serde::{Deserialize, Serialize};

use crate::record::{Ended, Started};
use crate::words::{RecordType, Source, Status};

/// How late a record may be removed that is too old and has younger ones before it in the chain.
/// To reach it, those must be carried to the end of the chain, which is not worth it every time.
const AGE_TOLERANCE: Duration = Duration::from_hours(24);

/// Records are kept while all three hold; what is not given does not limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    pub max_age: Option<Duration>,
    pub max_count: Option<u64>,
    pub max_bytes: Option<u64>,
}

/// What the decision needs to know about one record that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub timestamp: Timestamp,
    /// What it takes up in the store.
    pub bytes: u64,
    pub protected: bool,
}

/// A number of records, and what they take up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    pub records: u64,
    pub bytes: u64,
}

/// What the store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holdings {
    pub all: Share,
    /// The protected ones among them.
    pub protected: Share,
    /// The time of the oldest record.
    pub oldest: Option<Timestamp>,
}

/// What becomes of a record at the beginning of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Remove,
    /// It stays, and is entered again at the end of the chain, so that the entries before and after
    /// it can go.
    Carry,
}

/// What one slice of pruning did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneStep {
    /// Removed so many records; there may be more.
    Removed(u64),
    /// Gave so many bytes back to the disk; there may be more.
    Released(u64),
    /// Nothing is left to do.
    Done,
}

/// What pruning did in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    pub records: u64,
    pub released_bytes: u64,
}

/// Whether a record belongs to the reserved share of the log.
///
/// These are calls of the write and destructive lanes that may have reached their upstream, what
/// the operator changed and approved, and what the daemon says about itself. A refusal never is.
pub(crate) fn is_protected(started: &Started, ended: &Ended) -> bool {
    if ended.status == Status::Blocked {
        return false;
    }
    match started.record_type {
        RecordType::ToolCall => {
            let changes = matches!(
                started.metadata.tool_variant,
                Some(ToolVariant::Write | ToolVariant::Destructive)
            );
            changes && ended.error_code.as_deref() != Some(Code::ServerUnavailable.as_str())
        }
        RecordType::ConfigChange | RecordType::System => true,
        // What an upstream did to its own tools comes over MCP.
        RecordType::QuarantineChange => started.source != Source::Mcp,
        RecordType::PolicyDecision | RecordType::ServerChange => false,
    }
}

impl RetentionPolicy {
    /// What becomes of the first of the candidates, which are in the order of the chain. The others
    /// stay where they are.
    ///
    /// It can be asked again with the next candidates: a large log is pruned slice by slice. A record
    /// from the future, after the clock was set back, has no age.
    pub fn fates(&self, held: Holdings, candidates: &[Candidate], now: Timestamp) -> Vec<Fate> {
        let Holdings {
            mut all,
            mut protected,
            oldest,
        } = held;
        let overdue = self
            .max_age
            .zip(oldest)
            .is_some_and(|(most, oldest)| age(oldest, now) > most.saturating_add(AGE_TOLERANCE));
        let mut fates = Vec::new();
        for candidate in candidates {
            let Excess { count, bytes } = self.exceeded_by(all);
            let reserve = self.reserve().exceeded_by(protected);
            let due = if candidate.protected {
                (count && reserve.count) || (bytes && reserve.bytes)
            } else {
                count || bytes
            };
            let aged = self
                .max_age
                .is_some_and(|most| age(candidate.timestamp, now) > most);
            if due || aged {
                all.subtract(candidate.bytes);
                if candidate.protected {
                    protected.subtract(candidate.bytes);
                }
                fates.push(Fate::Remove);
            } else if count || bytes || overdue {
                fates.push(Fate::Carry);
            } else {
                break;
            }
        }
        fates
    }

    /// Whether the log has outgrown its limits so far that it must be pruned at once.
    pub(crate) fn is_outgrown_by(&self, held: Share) -> bool {
        let tenth_more = |most: u64| most.saturating_add(most / 10);
        let policy = Self {
            max_age: None,
            max_count: self.max_count.map(tenth_more),
            max_bytes: self.max_bytes.map(tenth_more),
        };
        policy.is_exceeded_by(held)
    }

    pub(crate) fn is_exceeded_by(&self, held: Share) -> bool {
        let Excess { count, bytes } = self.exceeded_by(held);
        count || bytes
    }

    /// The limits that only protected records can use up.
    fn reserve(&self) -> Self {
        Self {
            max_age: None,
            max_count: self.max_count.map(|most| most / 2),
            max_bytes: self.max_bytes.map(|most| most / 2),
        }
    }

    fn exceeded_by(&self, held: Share) -> Excess {
        Excess {
            count: self.max_count.is_some_and(|most| held.records > most),
            bytes: self.max_bytes.is_some_and(|most| held.bytes > most),
        }
    }
}

/// Which limits are exceeded.
struct Excess {
    count: bool,
    bytes: bool,
}

impl Share {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.records += 1;
        self.bytes += bytes;
    }

    fn subtract(&mut self, bytes: u64) {
        self.records = self.records.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

fn age(timestamp: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(timestamp)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests;
