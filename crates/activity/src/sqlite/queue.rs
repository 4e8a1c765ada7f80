//! The way into the writer: bounded in number and in bytes, so that a slow disk slows callers
//! down instead of filling the memory.
//!
//! Whoever hands something over wakes the writer only if that is needed: the first of a batch
//! does, and whoever waits for the answer. The others find it gathering.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::journal::Journal;
use crate::id::ActivityId;
use crate::record::{Ended, Started};
use crate::retention::{PruneStep, RetentionPolicy};
use crate::seal::LateResponse;
use crate::store::{Durability, Entry, StoreError, StoreFuture};

/// How many jobs fit; each costs one permit and one more per kilobyte it carries.
const PERMITS: u32 = 16 * 1024;
const BYTES_PER_PERMIT: usize = 1024;

/// How long entries nobody waits for may gather, so that they do not cost a commit each.
const GATHER: Duration = Duration::from_millis(20);

pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;
type Answered<T> = oneshot::Receiver<Result<T, StoreError>>;

/// What the writer is asked to do apart from storing entries.
#[derive(Debug)]
pub(super) enum Job {
    /// Answer when everything that was handed over before is stored, or failed to be.
    Store(Answer<()>),
    /// Bring what is derived up to date.
    Flush(Answer<()>),
    Prune(RetentionPolicy, Timestamp, Answer<PruneStep>),
    Close(Answer<()>),
}

/// An entry on its way, with what is to be told to whom.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) entry: Entry,
    pub(super) durability: Durability,
    /// Whoever waits, until they are told; the writer has the entry lent to a batch by then.
    answer: RefCell<Option<Answer<()>>>,
    /// Held until the entry is stored.
    _permit: Option<OwnedSemaphorePermit>,
}

/// The callers' end.
#[derive(Debug)]
pub(super) struct Queue {
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
}

/// The writer's end.
#[derive(Debug)]
pub(super) struct Inbox(Arc<Shared>, Arc<Semaphore>);

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// What was handed over and not taken yet. The journal is under the same lock, so that its order
/// is the one in which entries are stored.
#[derive(Debug)]
struct Waiting {
    work: Work,
    journal: Journal,
    /// When the oldest of it came.
    since: Option<Instant>,
    /// Whether somebody waits for the answer.
    urgent: bool,
    closed: bool,
}

/// What the writer takes at once.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) appends: VecDeque<Append>,
    pub(super) jobs: Vec<Job>,
    /// Records whose callers went away. There are never more of them than records that are open.
    pub(super) abandoned: Vec<ActivityId>,
}

/// What came of waiting for work.
pub(super) enum Taken {
    Work,
    Nothing,
    /// Nobody can hand over anything any more.
    Closed,
}

pub(super) fn queue(journal: Journal) -> (Queue, Inbox) {
    let waiting = Waiting {
        work: Work::default(),
        journal,
        since: None,
        urgent: false,
        closed: false,
    };
    let shared = Arc::new(Shared {
        waiting: Mutex::new(waiting),
        changed: Condvar::new(),
    });
    let permits = Arc::new(Semaphore::new(PERMITS as usize));
    let queue = Queue {
        shared: Arc::clone(&shared),
        permits: Arc::clone(&permits),
    };
    (queue, Inbox(shared, permits))
}

impl Queue {
    /// Waits for room, then for as much as the durability asks for.
    ///
    /// Mostly there is room, and nothing else to wait for: then the entry is handed over at once,
    /// and the future is only as large as its answer.
    pub(super) fn append(&self, entry: Entry, durability: Durability) -> StoreFuture<'_, ()> {
        match Arc::clone(&self.permits).try_acquire_many_owned(cost(&entry)) {
            Ok(permit) => {
                let handed_over = self.shared.hand_over(entry, durability, Some(permit));
                Box::pin(answered(handed_over))
            }
            Err(_) => Box::pin(self.append_when_there_is_room(entry, durability)),
        }
    }

    /// The same for an end that cannot be stored now: it must not wait for room that what could not be
    /// stored before takes up. There are never more of them than open records.
    pub(super) fn append_end(&self, entry: Entry) -> StoreFuture<'_, ()> {
        let permit = Arc::clone(&self.permits).try_acquire_many_owned(cost(&entry));
        let handed_over = self
            .shared
            .hand_over(entry, Durability::Durable, permit.ok());
        Box::pin(answered(handed_over))
    }

    async fn append_when_there_is_room(
        &self,
        entry: Entry,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let room = Arc::clone(&self.permits).acquire_many_owned(cost(&entry));
        let permit = room.await.map_err(|_| StoreError::Closed)?;
        answered(self.shared.hand_over(entry, durability, Some(permit))).await
    }

    pub(super) async fn ask<T>(&self, job: impl FnOnce(Answer<T>) -> Job) -> Result<T, StoreError> {
        let (answer, receiver) = oneshot::channel();
        self.shared.assign(job(answer))?;
        receiver.await.map_err(|_| StoreError::Closed)?
    }

    /// Never waits.
    pub(super) fn abandon(&self, id: ActivityId) {
        if let Ok(mut waiting) = self.shared.open() {
            waiting.work.abandoned.push(id);
            self.shared.announce(waiting);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

/// Without a writer nothing is done any more. Callers are told, however it ended.
impl Drop for Inbox {
    fn drop(&mut self) {
        drop(self.close());
        self.1.close();
    }
}

impl Inbox {
    /// Waits for work, and then for more of it unless somebody is waiting. `work` must be empty; its
    /// space is used for what comes next.
    pub(super) fn take(&self, patience: Duration, work: &mut Work) -> Taken {
        let asleep = |waiting: &mut Waiting| waiting.since.is_none() && !waiting.awake();
        let mut waiting = self.0.wait_while(self.0.lock(), patience, asleep);
        if let Some(since) = waiting.since {
            let rest = GATHER.saturating_sub(since.elapsed());
            waiting = self.0.wait_while(waiting, rest, |waiting| !waiting.awake());
        }
        if waiting.since.is_none() && !waiting.urgent {
            return if waiting.closed {
                Taken::Closed
            } else {
                Taken::Nothing
            };
        }
        waiting.since = None;
        waiting.urgent = false;
        waiting.journal.turn();
        std::mem::swap(&mut waiting.work, work);
        Taken::Work
    }

    /// Whether somebody waits for the writer.
    pub(super) fn is_pressing(&self) -> bool {
        self.0.lock().urgent
    }

    /// Everything that was taken is stored.
    pub(super) fn stored(&self) {
        self.0.lock().journal.clear_stored();
    }

    /// Everything is stored, and this process writes nothing more.
    pub(super) fn give_back(&self) {
        self.0.lock().journal.give_back();
    }

    /// From now on nothing can be handed over; returns what came last.
    pub(super) fn close(&self) -> Work {
        let mut waiting = self.0.lock();
        waiting.closed = true;
        waiting.journal.turn();
        std::mem::take(&mut waiting.work)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<MutexGuard<'_, Waiting>, StoreError> {
        let waiting = self.lock();
        if waiting.closed {
            return Err(StoreError::Closed);
        }
        Ok(waiting)
    }

    /// Puts an entry into the journal, if it needs no more than that, and into the queue. Returns
    /// what is left to wait for.
    fn hand_over(
        &self,
        entry: Entry,
        durability: Durability,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Option<Answered<()>>, StoreError> {
        let mut waiting = self.open()?;
        let waits = !waiting.journal_suffices(&entry, durability);
        let (answer, answered) = waits.then(oneshot::channel).unzip();
        waiting.urgent |= waits;
        waiting.work.appends.push_back(Append {
            entry,
            durability,
            answer: RefCell::new(answer),
            _permit: permit,
        });
        self.announce(waiting);
        Ok(answered)
    }

    fn assign(&self, job: Job) -> Result<(), StoreError> {
        let mut waiting = self.open()?;
        waiting.work.jobs.push(job);
        waiting.urgent = true;
        self.announce(waiting);
        Ok(())
    }

    /// Wakes the writer if it does not know yet that there is something.
    fn announce(&self, mut waiting: MutexGuard<'_, Waiting>) {
        let first = waiting.since.is_none();
        if first {
            waiting.since = Some(Instant::now());
        }
        let wake = first || waiting.awake();
        drop(waiting);
        if wake {
            self.changed.notify_one();
        }
    }

    fn wait_while<'a>(
        &self,
        waiting: MutexGuard<'a, Waiting>,
        patience: Duration,
        condition: impl FnMut(&mut Waiting) -> bool,
    ) -> MutexGuard<'a, Waiting> {
        self.changed
            .wait_timeout_while(waiting, patience, condition)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}

impl Waiting {
    /// Puts an entry into the journal as far as its durability asks for it. Whatever is not safe
    /// then has to wait for the writer.
    fn journal_suffices(&mut self, entry: &Entry, durability: Durability) -> bool {
        if durability == Durability::Durable {
            return false;
        }
        self.journal.note(entry);
        durability == Durability::Batched || self.journal.write().is_ok()
    }

    /// Whether the writer must not rest any longer.
    fn awake(&self) -> bool {
        self.urgent || self.closed
    }
}

impl Append {
    /// An entry that the writer itself makes.
    pub(super) fn internal(entry: Entry) -> Self {
        Self {
            entry,
            durability: Durability::Batched,
            answer: RefCell::new(None),
            _permit: None,
        }
    }

    /// Tells the caller, unless that was done; returns whether there was one who waited.
    pub(super) fn reply(&self, result: Result<(), StoreError>) -> bool {
        let answer = self.answer.take();
        let awaited = answer.is_some();
        if let Some(answer) = answer {
            // A caller who went away needs no answer.
            let _ = answer.send(result);
        }
        awaited
    }
}

/// Waits for the answer, if there will be one.
async fn answered(handed_over: Result<Option<Answered<()>>, StoreError>) -> Result<(), StoreError> {
    match handed_over? {
        Some(answered) => answered.await.map_err(|_| StoreError::Closed)?,
        None => Ok(()),
    }
}

fn cost(entry: &Entry) -> u32 {
    let start = |started: &Started| started.text_bytes() + text_length(started.arguments.as_ref());
    let end = |ended: &Ended| ended.text_bytes() + text_length(ended.response.as_ref());
    let bytes = match entry {
        Entry::Start(started) => start(started),
        Entry::End(_, ended, late) => end(ended) + late.as_ref().map_or(0, LateResponse::bytes),
        Entry::Whole(started, ended) => start(started) + end(ended),
    };
    let permits = 1 + bytes / BYTES_PER_PERMIT;
    // Whatever is larger than the whole queue waits until it is empty.
    u32::try_from(permits).unwrap_or(PERMITS).min(PERMITS)
}

fn text_length(payload: Option<&crate::payload::SealedPayload>) -> usize {
    payload
        .and_then(|payload| payload.text.as_ref())
        .map_or(0, |text| text.as_str().len())
}

#[cfg(test)]
mod tests {
    use super::super::files::Files;
    use super::*;
    use crate::record::Metadata;
    use crate::words::{RecordType, Source};

    fn started() -> Started {
        Started {
            id: ActivityId::from_halves(1, 1),
            record_type: RecordType::ToolCall,
            source: Source::Mcp,
            server_name: None,
            tool_name: None,
            session_id: None,
            client_name: None,
            request_id: None,
            request_bytes: 0,
            metadata: Metadata::default(),
            arguments: None,
        }
    }

    fn ended() -> Ended {
        Ended::interrupted()
    }

    fn pair(folder: &std::path::Path) -> (Queue, Inbox) {
        let files = Files::prepare(&folder.join("data")).unwrap();
        queue(Journal::open(&files).unwrap())
    }

    async fn in_time<T>(future: impl Future<Output = T>) -> T {
        let result = tokio::time::timeout(Duration::from_secs(20), future).await;
        result.unwrap_or_else(|_| panic!("it never came"))
    }

    #[tokio::test]
    async fn callers_are_told_when_the_writer_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (queue, inbox) = pair(folder.path());
        let entry = || Entry::Whole(Arc::new(started()), ended());
        let mut waiting = queue.append(entry(), Durability::Durable);
        let asked = queue.ask(Job::Flush);
        tokio::pin!(asked);
        assert!(futures_poll(&mut waiting).is_none() && futures_poll(&mut asked).is_none());
        let everything = Arc::clone(&queue.permits)
            .try_acquire_many_owned(PERMITS - 1)
            .unwrap();
        let no_room = queue.append(entry(), Durability::Batched);
        // As the end of a thread that panicked.
        drop(inbox);
        assert!(matches!(in_time(waiting).await, Err(StoreError::Closed)));
        assert!(matches!(in_time(asked).await, Err(StoreError::Closed)));
        assert!(matches!(in_time(no_room).await, Err(StoreError::Closed)));
        drop(everything);
        let late = queue.append(entry(), Durability::Written);
        assert!(matches!(in_time(late).await, Err(StoreError::Closed)));
    }

    /// Asks a future once whether it is ready.
    fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn the_end_of_a_record_does_not_wait_for_room_when_nothing_can_be_stored() {
        let folder = tempfile::tempdir().unwrap();
        let (queue, inbox) = pair(folder.path());
        let all = Arc::clone(&queue.permits)
            .try_acquire_many_owned(PERMITS)
            .unwrap();
        let end = queue.append_end(Entry::End(started().id, ended(), None));
        let mut work = Work::default();
        assert!(matches!(inbox.take(Duration::ZERO, &mut work), Taken::Work));
        let [append] = work.appends.make_contiguous() else {
            panic!("{work:?}");
        };
        append.reply(Err(StoreError::Full));
        assert!(matches!(in_time(end).await, Err(StoreError::Full)));
        drop(all);
    }

    #[test]
    fn all_texts_cost_room() {
        let mut large = ended();
        large.error_message = Some("x".repeat(10 * BYTES_PER_PERMIT).into());
        let end = |ended| cost(&Entry::End(started().id, ended, None));
        assert!(end(large) >= end(ended()) + 9);
        let mut large = started();
        large.client_name = Some("x".repeat(10 * BYTES_PER_PERMIT).into());
        assert!(cost(&Entry::Start(Arc::new(large))) > 10);
    }
}
