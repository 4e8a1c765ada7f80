//! The way into the writer: bounded in number and in bytes, so that a slow disk slows callers
//! down instead of filling the memory.

use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::id::ActivityId;
use crate::record::{Ended, Started};
use crate::retention::{PruneStep, RetentionPolicy};
use crate::store::{Durability, Entry, StoreError};

/// How many jobs fit; each costs one permit and one more per kilobyte it carries.
const PERMITS: u32 = 16 * 1024;
const BYTES_PER_PERMIT: usize = 1024;

pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

#[derive(Debug)]
pub(super) enum Job {
    Append(Append),
    /// Bring what is derived up to date.
    Flush(Answer<()>),
    Prune(RetentionPolicy, Timestamp, Answer<PruneStep>),
    /// Something was abandoned; see [`Queue::abandon`].
    Wake,
    Close(Answer<()>),
}

/// An entry on its way, with what is to be told to whom.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) entry: Entry,
    pub(super) durability: Durability,
    pub(super) answer: Option<Answer<()>>,
    /// Held until the entry is stored.
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub(super) struct Queue {
    sender: SyncSender<Job>,
    permits: Arc<Semaphore>,
    abandoned: Abandoned,
}

/// Records whose callers went away. There are never more of them than records that are open.
#[derive(Debug, Clone, Default)]
pub(super) struct Abandoned(Arc<Mutex<Vec<ActivityId>>>);

impl Queue {
    pub(super) fn new() -> (Self, Receiver<Job>, Abandoned) {
        // Appends are limited by their permits, so the channel has room to spare for the others.
        let (sender, receiver) = mpsc::sync_channel(PERMITS as usize + 1024);
        let abandoned = Abandoned::default();
        let permits = Arc::new(Semaphore::new(PERMITS as usize));
        (
            Self {
                sender,
                permits,
                abandoned: abandoned.clone(),
            },
            receiver,
            abandoned,
        )
    }

    /// Waits for room, then for as much as the durability asks for.
    pub(super) async fn append(
        &self,
        entry: Entry,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let permits = Arc::clone(&self.permits)
            .acquire_many_owned(cost(&entry))
            .await;
        let permit = permits.map_err(|_| StoreError::Closed)?;
        if durability == Durability::Batched {
            let append = Append {
                entry,
                durability,
                answer: None,
                _permit: Some(permit),
            };
            return self.send(Job::Append(append));
        }
        self.ask(|answer| {
            let answer = Some(answer);
            Job::Append(Append {
                entry,
                durability,
                answer,
                _permit: Some(permit),
            })
        })
        .await
    }

    pub(super) async fn ask<T>(&self, job: impl FnOnce(Answer<T>) -> Job) -> Result<T, StoreError> {
        let (answer, receiver) = oneshot::channel();
        self.send(job(answer))?;
        receiver.await.map_err(|_| StoreError::Closed)?
    }

    /// Never waits. The writer looks at it once it has emptied the channel, so that a start that
    /// is still queued comes first; should the channel have no room to wake it, it is awake.
    pub(super) fn abandon(&self, id: ActivityId) {
        self.abandoned
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(id);
        let _ = self.sender.try_send(Job::Wake);
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
        self.sender.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Unavailable(None),
            TrySendError::Disconnected(_) => StoreError::Closed,
        })
    }
}

impl Append {
    /// An entry that the writer itself makes.
    pub(super) fn internal(entry: Entry) -> Self {
        Self {
            entry,
            durability: Durability::Batched,
            answer: None,
            _permit: None,
        }
    }

    /// Keeps the entry for later and tells its caller that it is not stored yet.
    pub(super) fn keep(mut self, error: StoreError) -> Self {
        if let Some(answer) = self.answer.take() {
            let _ = answer.send(Err(error));
        }
        self
    }

    /// Tells the caller, if there is one who waits.
    pub(super) fn reply(self, result: Result<(), StoreError>) {
        if let Some(answer) = self.answer {
            // A caller who went away needs no answer.
            let _ = answer.send(result);
        }
    }
}

impl Abandoned {
    pub(super) fn is_empty(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    pub(super) fn take(&self) -> Vec<ActivityId> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn cost(entry: &Entry) -> u32 {
    let arguments = |started: &Started| text_length(started.arguments.as_ref());
    let response = |ended: &Ended| text_length(ended.response.as_ref());
    let bytes = match entry {
        Entry::Start(started) => arguments(started),
        Entry::End(_, ended) => response(ended),
        Entry::Whole(started, ended) => arguments(started) + response(ended),
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
