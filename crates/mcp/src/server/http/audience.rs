//! Who is there to read the streams of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Shared by all streams of a session: a client is present as long as it reads any of them.
#[derive(Debug)]
pub(super) struct Audience {
    readers: AtomicUsize,
    /// How long writers wait for a reader that takes nothing; then it loses the stream.
    pub(super) stall: Duration,
}

impl Audience {
    pub(super) fn new(stall: Duration) -> Arc<Self> {
        Arc::new(Self {
            readers: AtomicUsize::new(0),
            stall,
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
