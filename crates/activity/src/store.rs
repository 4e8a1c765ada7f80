//! What a place that keeps records must be able to do. Nothing above this line knows which
//! database is below it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::broadcast;

use crate::chain::{Hash, Link};
use crate::event::{Event, Replay};
use crate::filter::Filter;
use crate::id::ActivityId;
use crate::page::{Cursor, ListRequest, Page};
use crate::record::{Ended, Record, Started};
use crate::retention::{PruneStep, RetentionPolicy};
use crate::seal::LateResponse;
use crate::stats::{GroupBy, Period, Summary, Usage};
use crate::verify::Verification;

pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps records in a hash chain and answers questions about them.
///
/// Entries are appended in the order in which they were handed over. A store that has run full
/// refuses new records at once, keeps the ends of those it has, and writes them when it can.
pub trait ActivityStore: Send + Sync + fmt::Debug {
    /// Returns when the entry is as safe as asked for.
    fn append(&self, entry: Entry, durability: Durability) -> StoreFuture<'_, ()>;

    /// Ends a record as cancelled if it is still open once everything queued before is stored.
    /// Never waits, so that it can be called while something is dropped.
    fn abandon(&self, id: ActivityId);

    fn page(&self, request: ListRequest) -> StoreFuture<'_, Page>;

    fn get(&self, id: ActivityId) -> StoreFuture<'_, Option<Record>>;

    /// Up to `limit` records, newest first, without counting; for walking over all of them.
    fn scan(
        &self,
        filter: Filter,
        after: Option<Cursor>,
        limit: u32,
        include_bodies: bool,
    ) -> StoreFuture<'_, Vec<Record>>;

    fn summary(&self, period: Period, by: GroupBy, now: Timestamp) -> StoreFuture<'_, Summary>;

    fn usage(&self, period: Period, now: Timestamp) -> StoreFuture<'_, Usage>;

    /// Walks the whole chain. With a head that was noted elsewhere, also tells whether the log
    /// still contains it.
    fn verify(&self, noted_head: Option<Hash>) -> StoreFuture<'_, Verification>;

    /// The end of the chain.
    fn head(&self) -> StoreFuture<'_, Link>;

    /// One short slice of forgetting; to be called until it says it is done.
    fn prune_step(&self, policy: RetentionPolicy, now: Timestamp) -> StoreFuture<'_, PruneStep>;

    /// Keeps the log within the limits on number and size while it grows, a tenth more apart. Age is
    /// left to [`prune_step`](Self::prune_step).
    fn limit(&self, policy: RetentionPolicy);

    /// Events of entries that are stored, from now on. A store that another process writes is not
    /// told of them; it has to be asked for a replay now and then.
    fn subscribe(&self) -> Option<broadcast::Receiver<Event>>;

    /// Events of entries after the given one, oldest first.
    fn replay(&self, after: u64, limit: u32) -> StoreFuture<'_, Replay>;

    fn health(&self) -> Health;

    /// Stores everything that is queued and stops.
    fn close(&self) -> StoreFuture<'_, ()>;
}

/// One step of a record's life.
#[derive(Debug, Clone)]
pub enum Entry {
    Start(Arc<Started>),
    /// With a response that the store has to seal, if it is large.
    End(ActivityId, Ended, Option<LateResponse>),
    /// Something that has no duration worth two entries.
    Whole(Arc<Started>, Ended),
}

impl Entry {
    /// The record that it is about.
    pub(crate) fn id(&self) -> ActivityId {
        match self {
            Self::Start(started) | Self::Whole(started, _) => started.id,
            Self::End(id, ..) => *id,
        }
    }

    /// Seals what is not sealed yet. Whether there was anything to do.
    pub(crate) fn seal(&mut self) -> bool {
        let Self::End(_, ended, late) = self else {
            return false;
        };
        let Some(response) = late.take() else {
            return false;
        };
        ended.response = Some(response.seal());
        true
    }
}

/// How safe an entry must be before the caller goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Queued: it is stored with the next batch, a few milliseconds from now.
    Batched,
    /// Stored: it survives the death of the process.
    Written,
    /// On the disk: it survives the loss of power.
    Durable,
}

/// Whether new records can be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Good,
    Full,
    Unavailable,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    #[error("the activity log has no space left")]
    Full,
    #[error("the activity log cannot be used")]
    Unavailable(#[source] Option<Arc<dyn Error + Send + Sync>>),
    #[error("the activity log is damaged")]
    Corrupt(#[source] Arc<dyn Error + Send + Sync>),
    #[error("record {0} has ended already or never started")]
    NotPending(ActivityId),
    #[error("record {0} exists already")]
    Exists(ActivityId),
    #[error("the activity log was opened for reading only")]
    ReadOnly,
    /// Another process did something that only a new opening shows.
    #[error("the activity log has to be opened anew to be read whole")]
    Stale,
    #[error("the activity log is closed")]
    Closed,
}
