//! The one thread that writes. It takes whatever is queued, stores it as one transaction, and
//! tells everybody who waited: under load many calls share one commit.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use tokio::sync::broadcast;

use super::batch::{Batch, Open};
use super::derived::{self, Derived};
use super::index::{self, Drafts};
use super::names::Names;
use super::open::Prepared;
use super::prune;
use super::queue::{Answer, Append, Inbox, Job, Taken, Work};
use super::time_keeper::TimeKeeper;
use super::write;
use crate::chain::Link;
use crate::event::Event;
use crate::id::ActivityId;
use crate::record::Ended;
use crate::retention::RetentionPolicy;
use crate::store::{Durability, Entry, Health, StoreError};
use crate::words::Status;

const LARGEST_BATCH: usize = 1024;

/// How many records may wait to be summed up while somebody waits for the writer.
const MOST_WAITING: usize = 4 * derived::SLICE;

/// How many blocks of records may wait to be indexed meanwhile.
const MOST_DRAFTS: usize = 4;

/// How long what is derived may lag behind when nothing else happens.
const SETTLE: Duration = Duration::from_millis(500);

/// How often a store that cannot write tries again.
const RETRY: Duration = Duration::from_millis(500);

/// How long the writer sleeps when it has nothing at all to do.
const IDLE: Duration = Duration::from_mins(1);

pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) head: Link,
    pub(super) names: Names,
    pub(super) waiting: VecDeque<Derived>,
    pub(super) drafts: Drafts,
    /// How large the file may become, if it is limited.
    pub(super) most_pages: Option<i64>,
    pub(super) time: TimeKeeper,
    /// What the log must stay within while it grows.
    limits: Arc<Mutex<RetentionPolicy>>,
    /// Whether it has outgrown them and is being brought back.
    is_outgrown: bool,
    /// How many records were carried since one was removed.
    pub(super) carried: u64,
    open: Open,
    /// What was taken from the inbox and not done yet. Empty between times, but for its space.
    work: Work,
    /// What could not be stored and must not be lost: ends, and starts nobody waits for.
    backlog: VecDeque<Append>,
    /// What commits are to survive now, if that was said yet.
    synchronized: Option<bool>,
    /// When storing failed last.
    failed_at: Option<Instant>,
    inbox: Inbox,
    events: broadcast::Sender<Event>,
    health: Arc<SharedHealth>,
    /// Held for as long as this process may write.
    _lock: File,
}

/// Why a batch is not stored, and how many of its first entries are.
struct Failed {
    stored: usize,
    error: StoreError,
}

/// The state of the store, readable without asking the writer.
#[derive(Debug, Default)]
pub(super) struct SharedHealth(AtomicU8);

/// Gives the core to other threads now and then. A batch takes milliseconds, and a scheduler that
/// lets the writer use up its time slice makes calls wait as long.
fn yield_to_calls(done: usize) {
    const ENTRIES: usize = 16;
    if done % ENTRIES == ENTRIES - 1 {
        std::thread::yield_now();
    }
}

impl Writer {
    pub(super) fn new(
        prepared: Prepared,
        inbox: Inbox,
        events: broadcast::Sender<Event>,
        health: Arc<SharedHealth>,
        limits: Arc<Mutex<RetentionPolicy>>,
        lock: File,
    ) -> Self {
        Self {
            connection: prepared.connection,
            head: prepared.head,
            names: prepared.names,
            waiting: VecDeque::new(),
            drafts: prepared.drafts,
            most_pages: prepared.most_pages,
            time: prepared.time,
            limits,
            is_outgrown: false,
            carried: 0,
            open: Open::default(),
            work: Work::default(),
            backlog: VecDeque::new(),
            synchronized: None,
            failed_at: None,
            inbox,
            events,
            health,
            _lock: lock,
        }
    }

    /// Runs until it is told to close or nobody can hand over anything any more.
    pub(super) fn run(mut self) {
        loop {
            match self.inbox.take(self.patience(), &mut self.work) {
                Taken::Nothing => self.idle(),
                Taken::Closed => return self.wind_up(),
                Taken::Work => {
                    if let Some(answer) = self.do_work() {
                        self.wind_up();
                        let _ = answer.send(Ok(()));
                        return;
                    }
                }
            }
        }
    }

    fn patience(&self) -> Duration {
        if !self.backlog.is_empty() || self.health.get() != Health::Good {
            RETRY
        } else if self.waiting.is_empty() && !self.is_outgrown {
            IDLE
        } else {
            SETTLE
        }
    }

    fn do_work(&mut self) -> Option<Answer<()>> {
        let came = self.work.appends.len();
        self.store();
        self.keep_within_limits(came);
        let mut close = None;
        for job in std::mem::take(&mut self.work.jobs) {
            match job {
                Job::Store(answer) => {
                    let _ = answer.send(Ok(()));
                }
                Job::Flush(answer) => {
                    let _ = answer.send(self.flush());
                }
                Job::Prune(policy, now, answer) => {
                    let _ = answer.send(prune::step(self, policy, now));
                }
                Job::Close(answer) => close = Some(answer),
            }
        }
        self.catch_up();
        self.give_another_chance();
        close
    }

    /// Brings a log that has outgrown its limits back, by twice as much as came in: callers share the
    /// cost, and none waits for all of it.
    fn keep_within_limits(&mut self, came: usize) {
        let policy = RetentionPolicy {
            max_age: None,
            ..*self.limits.lock().unwrap_or_else(PoisonError::into_inner)
        };
        let mut left = 2 * came + prune::SLICE;
        while left > 0 {
            match prune::trim(self, policy, self.is_outgrown) {
                Ok(outgrown) => self.is_outgrown = outgrown,
                Err(error) => {
                    tracing::warn!(%error, "the activity log could not be kept within its limits");
                    return;
                }
            }
            if !self.is_outgrown {
                return;
            }
            left = left.saturating_sub(prune::SLICE);
        }
    }

    /// What waits must not outgrow what comes in; callers that keep the queue full wait for it.
    fn catch_up(&mut self) {
        while self.waiting.len() >= derived::SLICE || self.drafts.full() > 0 {
            let bearable = self.waiting.len() < MOST_WAITING && self.drafts.full() < MOST_DRAFTS;
            if bearable && self.inbox.is_pressing() || !self.derive_some_or_log() {
                return;
            }
        }
    }

    /// Stores the entries that were taken, those that failed before first, and the ends of what was
    /// abandoned last: their starts may be among the entries.
    fn store(&mut self) {
        let mut appends = std::mem::take(&mut self.work.appends);
        if !self.backlog.is_empty() {
            self.backlog.append(&mut appends);
            std::mem::swap(&mut self.backlog, &mut appends);
        }
        appends.extend(self.work.abandoned.drain(..).map(abandoned_end));
        self.append_all(&mut appends);
        if appends.is_empty() {
            self.inbox.stored();
            self.work.appends = appends;
        } else {
            self.backlog = appends;
        }
    }

    /// Nothing came for a while: time for what can wait, or to try again.
    fn idle(&mut self) {
        self.store();
        self.work.appends.shrink_to(LARGEST_BATCH);
        self.give_another_chance();
        if !self.waiting.is_empty() {
            self.derive_some_or_log();
        }
        if self.is_outgrown {
            self.keep_within_limits(LARGEST_BATCH);
        }
    }

    /// With nothing left to try with, whether there is space again is found out by the next
    /// record.
    fn give_another_chance(&mut self) {
        let long_ago = self.failed_at.is_none_or(|at| at.elapsed() >= RETRY);
        if self.backlog.is_empty() && long_ago {
            self.health.set(Health::Good);
        }
    }

    fn wind_up(mut self) {
        self.work = self.inbox.close();
        self.store();
        if let Err(error) = self.flush() {
            tracing::warn!(%error, "sums and search of the activity log are brought up to date at the next start");
        }
        // The readers that are still open cannot do this, and a file that is whole without its
        // write-ahead log is easier to copy.
        let emptied = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = emptied {
            tracing::warn!(%error, "the activity log's write-ahead log was not emptied");
        }
        if self.backlog.is_empty() {
            self.inbox.give_back();
        } else {
            tracing::error!(
                entries = self.backlog.len(),
                "the activity log's last entries are stored at the next start"
            );
        }
    }

    /// Stores in order as much as can be stored, in batches, and leaves what must be kept.
    fn append_all(&mut self, appends: &mut VecDeque<Append>) {
        for append in appends.iter_mut() {
            if append.entry.seal() {
                std::thread::yield_now();
            }
        }
        let mut largest = LARGEST_BATCH;
        while !appends.is_empty() {
            let size = largest.min(appends.len());
            let result = self.append_batch(&appends.make_contiguous()[..size]);
            let stored = result
                .as_ref()
                .map_or_else(|failed| failed.stored, |()| size);
            appends.drain(..stored);
            if let Err(Failed { error, stored }) = result {
                // Where a large batch does not fit any more, a smaller one may.
                largest = (size - stored) / 2;
                if largest == 0 || !matches!(error, StoreError::Full) {
                    return self.postpone(&error, appends);
                }
            }
        }
    }

    /// Stores a batch, and tells those who wait for it.
    fn append_batch(&mut self, appends: &[Append]) -> Result<(), Failed> {
        let mut batch = Batch::new(self.head);
        let mut refused = Vec::new();
        for (done, append) in appends.iter().enumerate() {
            if let Err(error) = batch.stage(&self.open, &append.entry) {
                refused.push((append, error));
            }
            yield_to_calls(done);
        }
        if !batch.is_empty() {
            let durable = appends
                .iter()
                .any(|append| append.durability == Durability::Durable);
            match self.commit(&batch, durable) {
                Ok(derived) => self.committed(&batch, derived),
                Err(error) => {
                    self.names.forget();
                    if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) {
                        return self.store_one_by_one(&error, appends);
                    }
                    return Err(Failed::at_once(error));
                }
            }
        }
        for (append, error) in refused {
            append.reply(Err(error));
        }
        for append in appends {
            append.reply(Ok(()));
        }
        self.follow_up(&batch);
        Ok(())
    }

    fn commit(&mut self, batch: &Batch<'_>, durable: bool) -> rusqlite::Result<Vec<Derived>> {
        self.synchronize(durable)?;
        let transaction = begin(&mut self.connection)?;
        let derived = write::write(&transaction, &mut self.names, batch)?;
        transaction.commit()?;
        Ok(derived)
    }

    /// Whether commits are to survive the loss of power, not only the death of the process; see
    /// `Durability`.
    fn synchronize(&mut self, durable: bool) -> rusqlite::Result<()> {
        if self.synchronized != Some(durable) {
            let synchronous = if durable { "FULL" } else { "NORMAL" };
            self.connection
                .pragma_update(None, "synchronous", synchronous)?;
            self.synchronized = Some(durable);
        }
        Ok(())
    }

    fn committed(&mut self, batch: &Batch<'_>, derived: Vec<Derived>) {
        self.head = batch.head;
        batch.settle(&mut self.open);
        self.waiting.extend(derived);
        self.health.set(Health::Good);
    }

    /// What those who wait for their entries need not wait for.
    fn follow_up(&mut self, batch: &Batch<'_>) {
        if self.events.receiver_count() > 0 {
            for event in batch.events() {
                // Everybody may have left meanwhile.
                let _ = self.events.send(event);
            }
        }
        for (done, (sequence, started, ended)) in batch.ended().into_iter().enumerate() {
            self.drafts.add(sequence, started, ended);
            yield_to_calls(done);
        }
    }

    /// Keeps what must not be lost, and refuses what somebody waits for and can do without.
    fn postpone(&mut self, error: &StoreError, appends: &mut VecDeque<Append>) {
        self.failed_at = Some(Instant::now());
        let health = if matches!(error, StoreError::Full) {
            Health::Full
        } else {
            Health::Unavailable
        };
        if self.health.get() != health {
            tracing::error!(%error, "the activity log cannot store records for now");
        }
        self.health.set(health);
        appends.retain(|append| {
            let awaited = append.reply(Err(error.clone()));
            !awaited || matches!(append.entry, Entry::End(..))
        });
    }

    /// An identifier was given twice, after the clock was set back. Only that record is refused.
    fn store_one_by_one(
        &mut self,
        error: &rusqlite::Error,
        appends: &[Append],
    ) -> Result<(), Failed> {
        if let [append] = appends {
            let id = append.entry.id();
            tracing::error!(%id, %error, "a record of the activity log was refused");
            append.reply(Err(StoreError::Exists(id)));
            return Ok(());
        }
        for (stored, append) in appends.chunks(1).enumerate() {
            self.append_batch(append)
                .map_err(|failed| Failed { stored, ..failed })?;
        }
        Ok(())
    }

    /// Brings the sums up to date.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        while !self.waiting.is_empty() {
            self.flush_slice()?;
        }
        Ok(())
    }

    pub(super) fn flush_slice(&mut self) -> rusqlite::Result<()> {
        // It can be derived again, so it need not wait for the disk.
        self.synchronize(false)?;
        let transaction = begin(&mut self.connection)?;
        let written = derived::write_slice(&transaction, &self.waiting)?;
        transaction.commit()?;
        self.waiting.drain(..written);
        Ok(())
    }

    /// Writes everything that is drafted, also what does not fill a block.
    pub(super) fn write_all_blocks(&mut self) -> Result<(), StoreError> {
        self.drafts.close();
        while self.drafts.full() > 0 {
            self.write_block()?;
        }
        Ok(())
    }

    fn write_block(&mut self) -> rusqlite::Result<()> {
        self.synchronize(false)?;
        let transaction = begin(&mut self.connection)?;
        index::write_next(&transaction, &self.drafts)?;
        transaction.commit()?;
        self.drafts.written();
        Ok(())
    }

    /// Whether a block or a slice of sums was written.
    fn derive_some_or_log(&mut self) -> bool {
        let written = if self.drafts.full() > 0 {
            self.write_block()
        } else {
            self.flush_slice()
        };
        match written {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "sums and search of the activity log lag behind");
                false
            }
        }
    }
}

/// A writer that panicked must not look well.
impl Drop for Writer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.health.set(Health::Unavailable);
            tracing::error!(
                "the activity log's writer failed; nothing is recorded until a restart"
            );
        }
    }
}

impl Failed {
    fn at_once(error: rusqlite::Error) -> Self {
        Self {
            stored: 0,
            error: error.into(),
        }
    }
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// The end of a record whose caller went away, if it is still open.
fn abandoned_end(id: ActivityId) -> Append {
    let ran = crate::clock::now().as_millisecond() - id.timestamp().as_millisecond();
    let ended = Ended {
        status: Status::Cancelled,
        duration_ms: u64::try_from(ran).unwrap_or(0),
        error_message: Some("the caller went away before this ended".into()),
        ..Ended::interrupted()
    };
    Append::internal(Entry::End(id, ended, None))
}

impl SharedHealth {
    pub(super) fn get(&self) -> Health {
        match self.0.load(Ordering::Relaxed) {
            0 => Health::Good,
            1 => Health::Full,
            _ => Health::Unavailable,
        }
    }

    fn set(&self, health: Health) {
        let code = match health {
            Health::Good => 0,
            Health::Full => 1,
            Health::Unavailable => 2,
        };
        self.0.store(code, Ordering::Relaxed);
    }

    /// The error for whoever wants to add a record now.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        match self.get() {
            Health::Good => None,
            Health::Full => Some(StoreError::Full),
            Health::Unavailable => Some(StoreError::Unavailable(None)),
        }
    }
}
