//! Who is there to read the streams of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::unread::UnreadBudget;

/// Shared by all streams of a session: a client is present as long as it reads any of them.
#[derive(Debug)]
pub(super) struct Readers {
    present: AtomicUsize,
    /// How long writers wait for a reader that takes nothing; then it loses the stream.
    pub(super) stall: Duration,
    /// What all streams hold counts against it.
    pub(super) unread: Arc<UnreadBudget>,
}

impl Readers {
    pub(super) fn new(stall: Duration, unread: Arc<UnreadBudget>) -> Arc<Self> {
        Arc::new(Self {
            present: AtomicUsize::new(0),
            stall,
            unread,
        })
    }

    pub(super) fn is_present(&self) -> bool {
        self.present.load(Ordering::Relaxed) > 0
    }

    pub(super) fn enter(&self) {
        self.present.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.present.fetch_sub(1, Ordering::Relaxed);
    }
}
