//! Who is there to read the streams of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::unread::UnreadBudget;

/// Shared by all streams of a session: a client is present as long as it reads any of them.
#[derive(Debug)]
pub(super) struct Audience {
    readers: AtomicUsize,
    /// How long writers wait for a reader that takes nothing; then it loses the stream.
    pub(super) stall: Duration,
    /// What all streams hold counts against it.
    pub(super) unread: Arc<UnreadBudget>,
}

impl Audience {
    pub(super) fn new(stall: Duration, unread: Arc<UnreadBudget>) -> Arc<Self> {
        Arc::new(Self {
            readers: AtomicUsize::new(0),
            stall,
            unread,
        })
    }

    pub(super) fn is_present(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    pub(super) fn enter(&self) {
        self.readers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
