//! The handle that the rest of the product holds: it redacts, cuts and numbers what it is told
//! before a store sees it, and makes sure that whatever starts also ends.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::chain::{Hash, Link};
use crate::clock;
use crate::event::Follow;
use crate::export::{Export, ExportRequest};
use crate::filter::Filter;
use crate::gap::{self, Gap, Missed, OpenGap};
use crate::id::{ActivityId, IdSource};
use crate::page::{Cursor, ListRequest, Page};
use crate::record::{End, Ended, Record, Start, Started};
use crate::retention::{PruneStep, Pruned, RetentionPolicy};
use crate::stats::{GroupBy, Period, Summary, Usage};
use crate::store::{ActivityStore, Durability, Entry, Health, StoreError};
use crate::verify::Verification;
use redact::Redactor;

/// A clock that is this far behind the identifiers was set back.
const CLOCK_STEP: SignedDuration = SignedDuration::from_secs(1);

/// The activity log. Cheap to clone.
#[derive(Clone)]
pub struct Activity {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn ActivityStore>,
    ids: IdSource,
    clock: Clock,
    settings: ArcSwap<Settings>,
    gap: OpenGap,
}

/// What can change while the log is open.
#[derive(Debug)]
pub struct Settings {
    pub redactor: Redactor,
    /// Bytes of the arguments of a call, or of what a change says, that are kept.
    pub max_argument_bytes: usize,
    pub max_response_bytes: usize,
    pub payloads: Payloads,
}

/// Whether arguments and responses of calls are kept, or only their fingerprints and sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payloads {
    #[default]
    Full,
    None,
}

/// Where the time comes from; tests and measurements bring their own.
pub type Clock = fn() -> Timestamp;

/// A record that has started. It ends once: by [`finish`](Self::finish), or as cancelled when it
/// is dropped, as happens to a call whose client went away.
#[must_use = "dropping it ends the record as cancelled"]
pub struct OpenRecord {
    id: ActivityId,
    inner: Arc<Inner>,
    open: bool,
}

impl Activity {
    pub fn new(store: Arc<dyn ActivityStore>, settings: Settings) -> Self {
        Self::with_clock(store, settings, clock::now)
    }

    pub fn with_clock(store: Arc<dyn ActivityStore>, settings: Settings, clock: Clock) -> Self {
        let settings = ArcSwap::from_pointee(settings);
        Self {
            inner: Arc::new(Inner {
                store,
                ids: IdSource::default(),
                clock,
                settings,
                gap: OpenGap::default(),
            }),
        }
    }

    /// Applies to everything recorded from now on.
    pub fn reconfigure(&self, settings: Settings) {
        self.inner.settings.store(Arc::new(settings));
    }

    /// Records that something starts. With [`Durability::Durable`] it may be carried out as soon
    /// as this returns; an error means that it is not recorded.
    pub async fn begin(
        &self,
        start: Start<'_>,
        durability: Durability,
    ) -> Result<OpenRecord, StoreError> {
        let started = Arc::new(self.inner.started(start));
        let mut record = OpenRecord {
            id: started.id,
            inner: Arc::clone(&self.inner),
            open: true,
        };
        let result = self
            .inner
            .store
            .append(Entry::Start(started), durability)
            .await;
        if let Err(error) = result {
            record.open = false;
            return Err(error);
        }
        self.record_gap().await;
        Ok(record)
    }

    /// Records something that is over already: a refusal, a change.
    pub async fn record(
        &self,
        start: Start<'_>,
        end: End<'_>,
        durability: Durability,
    ) -> Result<ActivityId, StoreError> {
        let started = Arc::new(self.inner.started(start));
        let id = started.id;
        let ended = self.inner.ended(end);
        self.inner
            .store
            .append(Entry::Whole(started, ended), durability)
            .await?;
        self.record_gap().await;
        Ok(id)
    }

    /// Counts something that could not be recorded. The count is recorded as soon as anything can be.
    pub fn missed(&self, missed: Missed) {
        self.inner.gap.add(missed, (self.inner.clock)());
    }

    /// What was not recorded so far, if its record is still to come.
    pub fn gap(&self) -> Option<Gap> {
        self.inner.gap.get()
    }

    /// Records the gap that has just ended, if there is one.
    async fn record_gap(&self) {
        let Some(gap) = self.inner.gap.take() else {
            return;
        };
        let (arguments, message) = gap.texts();
        let (start, end) = gap::record(&arguments, &message);
        let entry = Entry::Whole(Arc::new(self.inner.started(start)), self.inner.ended(end));
        let recorded = self.inner.store.append(entry, Durability::Written).await;
        if recorded.is_err() {
            self.inner.gap.put_back(gap);
        }
    }

    pub async fn page(&self, request: ListRequest) -> Result<Page, StoreError> {
        self.inner.store.page(request).await
    }

    /// Up to `limit` records without their payloads, the newest first; for walking over all of
    /// them.
    pub async fn scan(
        &self,
        filter: Filter,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        self.inner.store.scan(filter, after, limit, false).await
    }

    pub async fn get(&self, id: ActivityId) -> Result<Option<Record>, StoreError> {
        self.inner.store.get(id).await
    }

    pub async fn summary(&self, period: Period, by: GroupBy) -> Result<Summary, StoreError> {
        self.inner
            .store
            .summary(period, by, (self.inner.clock)())
            .await
    }

    pub async fn usage(&self, period: Period) -> Result<Usage, StoreError> {
        self.inner.store.usage(period, (self.inner.clock)()).await
    }

    /// Starts an export; nothing is read before the first chunk is asked for.
    pub fn export(&self, request: ExportRequest) -> Export {
        Export::new(Arc::clone(&self.inner.store), request)
    }

    pub async fn verify(&self, noted_head: Option<Hash>) -> Result<Verification, StoreError> {
        self.inner.store.verify(noted_head).await
    }

    pub async fn head(&self) -> Result<Link, StoreError> {
        self.inner.store.head().await
    }

    /// From now on the log stays within the limits of the policy while it grows, a tenth more apart;
    /// what is too old is removed by [`prune`](Self::prune).
    pub fn limit(&self, policy: RetentionPolicy) {
        self.inner.store.limit(policy);
    }

    /// Removes what the policy does not keep, in slices between which calls go on.
    pub async fn prune(&self, policy: RetentionPolicy) -> Result<Pruned, StoreError> {
        self.record_gap().await;
        let mut pruned = Pruned::default();
        loop {
            match self
                .inner
                .store
                .prune_step(policy, (self.inner.clock)())
                .await?
            {
                PruneStep::Removed(records) => pruned.records += records,
                PruneStep::Released(bytes) => pruned.released_bytes += bytes,
                PruneStep::Done => return Ok(pruned),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Events from now on, or from after the entry with that sequence.
    pub fn follow(&self, after: Option<u64>) -> Follow {
        Follow::new(Arc::clone(&self.inner.store), after)
    }

    pub fn health(&self) -> Health {
        self.inner.store.health()
    }

    /// Stores what is queued. Records that are still open end as interrupted at the next start.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.record_gap().await;
        self.inner.store.close().await
    }
}

impl OpenRecord {
    pub fn id(&self) -> ActivityId {
        self.id
    }

    /// Records the end. Should the store be full, it keeps the end and writes it later; the error
    /// only tells that it is not stored yet.
    pub async fn finish(mut self, end: End<'_>, durability: Durability) -> Result<(), StoreError> {
        let settings = self.inner.settings.load_full();
        let (ended, late) = settings.ended_with_late_response(end);
        let result = self
            .inner
            .store
            .append(Entry::End(self.id, ended, late), durability)
            .await;
        self.open = false;
        result
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        if self.open {
            self.inner.store.abandon(self.id);
        }
    }
}

impl Inner {
    fn started(&self, start: Start<'_>) -> Started {
        let now = (self.clock)();
        let id = self.ids.next(now);
        let mut started = self.settings.load().started(id, start);
        if id.timestamp().duration_since(now) > CLOCK_STEP {
            let warning = format!("CLOCK_SET_BACK: the clock showed {now:.3}");
            started.metadata.warnings.push(warning);
        }
        started
    }

    fn ended(&self, end: End<'_>) -> Ended {
        self.settings.load().ended(end)
    }
}

impl fmt::Debug for Activity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Activity")
            .field("store", &self.inner.store)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OpenRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenRecord")
            .field("id", &self.id)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}
