//! One budget for what is held for clients that are slow to read, or do not come back to.
//!
//! Streams and answers register what they hold. Above the limit the largest of those that no
//! client has read from lately are given up, until what is left is within it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::lock::lock;

/// A client that has read within this time is not slow, and loses nothing.
pub(super) const READING: Duration = Duration::from_secs(1);
/// How often the budget is looked at while it is exceeded.
const PAUSE: Duration = Duration::from_millis(250);

/// Bounds what all servers that share it hold for their clients.
#[derive(Debug)]
pub struct UnreadBudget {
    limit: usize,
    held: AtomicUsize,
    holders: Mutex<HashMap<u64, Weak<dyn Holder>>>,
    next: AtomicU64,
    /// Whether the budget is being looked at.
    checking: AtomicBool,
}

/// Something that keeps data for one client.
pub(super) trait Holder: fmt::Debug + Send + Sync {
    /// How much it holds.
    fn bytes(&self) -> usize;

    /// When its client last read from it, or could first do so.
    fn unread_since(&self) -> Instant;

    /// Gives up the oldest data, what the client has read already before what it has not.
    fn give_up(&self);
}

/// What one holder accounts for.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<UnreadBudget>,
    bytes: AtomicUsize,
    number: OnceLock<u64>,
}

// === impl UnreadBudget ===

impl UnreadBudget {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            held: AtomicUsize::new(0),
            holders: Mutex::default(),
            next: AtomicU64::new(0),
            checking: AtomicBool::new(false),
        })
    }

    /// How many bytes are held now.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn is_exceeded(&self) -> bool {
        self.held() > self.limit
    }

    fn check(self: &Arc<Self>) {
        if !self.is_exceeded() || self.checking.swap(true, Ordering::AcqRel) {
            return;
        }
        self.give_up_most();
        let runtime = Handle::try_current();
        match runtime {
            // Readers that are not slow yet may become so without anything else happening.
            Ok(runtime) if self.is_exceeded() => {
                let budget = Arc::downgrade(self);
                runtime.spawn(keep_checking(budget));
            }
            _ => self.checking.store(false, Ordering::Release),
        }
    }

    /// Has the largest holders whose clients do not read give up, until the rest is within limit.
    fn give_up_most(&self) {
        let holders: Vec<_> = lock(&self.holders)
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        let mut slow: Vec<_> = holders
            .iter()
            .filter(|holder| holder.unread_since().elapsed() >= READING)
            .collect();
        slow.sort_by_cached_key(|holder| std::cmp::Reverse(holder.bytes()));
        for holder in slow {
            while self.is_exceeded() && holder.bytes() > 0 {
                let before = holder.bytes();
                holder.give_up();
                let freed = before - holder.bytes().min(before);
                tracing::debug!(freed, "gave up what a client did not read");
                if freed == 0 {
                    break;
                }
            }
        }
    }
}

async fn keep_checking(budget: Weak<UnreadBudget>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(budget) = budget.upgrade() else {
            return;
        };
        budget.give_up_most();
        if !budget.is_exceeded() {
            budget.checking.store(false, Ordering::Release);
            return;
        }
    }
}

// === impl Share ===

impl Share {
    pub(super) fn new(budget: Arc<UnreadBudget>) -> Self {
        Self {
            budget,
            bytes: AtomicUsize::new(0),
            number: OnceLock::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Accounts for this much from now on. Callers serialise it by the lock on what they hold.
    pub(super) fn set(&self, bytes: usize) {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        let held = &self.budget.held;
        if bytes > before {
            held.fetch_add(bytes - before, Ordering::Relaxed);
        } else {
            held.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }

    /// Makes the holder known and the budget hold. Not to be called with a holder's lock held.
    pub(super) fn settle<H: Holder + 'static>(&self, holder: &Weak<H>) {
        if self.bytes() == 0 {
            return;
        }
        self.number.get_or_init(|| {
            let number = self.budget.next.fetch_add(1, Ordering::Relaxed);
            let holder: Weak<dyn Holder> = holder.clone();
            lock(&self.budget.holders).insert(number, holder);
            number
        });
        self.budget.check();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
        if let Some(number) = self.number.get() {
            lock(&self.budget.holders).remove(number);
        }
    }
}
