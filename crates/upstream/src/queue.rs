//! Who may call an upstream now: so many calls at once, so many more that wait for their turn, in
//! the order in which they came.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Bounds of the hint when to try again.
const SOONEST: u64 = 1;
const LATEST: u64 = 60;

#[derive(Debug)]
pub(crate) struct Queue {
    slots: Semaphore,
    most_running: usize,
    most_waiting: usize,
    waiting: AtomicUsize,
    /// How long a call takes, in milliseconds, averaged over the last few.
    pace: AtomicU64,
}

/// A call that waits. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Queue);

/// A call that may run. Dropping it gives the slot back.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    queue: &'a Queue,
    /// None while the call waits for its client and not for the server.
    permit: Option<SemaphorePermit<'a>>,
}

/// So many calls wait that there is no room for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full {
    pub running: usize,
    pub waiting: usize,
    pub retry_after: Duration,
}

// === impl Queue ===

impl Queue {
    pub(crate) fn new(most_running: usize, most_waiting: usize) -> Self {
        Self {
            slots: Semaphore::new(most_running),
            most_running,
            most_waiting,
            waiting: AtomicUsize::new(0),
            pace: AtomicU64::new(0),
        }
    }

    /// A slot, if there is one that no earlier call waits for.
    pub(crate) fn try_slot(&self) -> Option<Slot<'_>> {
        let permit = self.slots.try_acquire().ok()?;
        Some(Slot {
            queue: self,
            permit: Some(permit),
        })
    }

    /// A place in the queue, if there is room.
    pub(crate) fn enter(&self) -> Result<Waiting<'_>, Full> {
        let waiting = self.waiting.fetch_add(1, Ordering::AcqRel);
        let place = Waiting(self);
        if waiting < self.most_waiting {
            return Ok(place);
        }
        Err(Full {
            running: self.most_running,
            waiting,
            retry_after: self.retry_after(waiting),
        })
    }

    /// Notes how long a call took.
    pub(crate) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let before = self.pace.load(Ordering::Relaxed);
        let average = before.saturating_mul(7).saturating_add(time) / 8;
        self.pace.store(average, Ordering::Relaxed);
    }

    /// About when half of those who wait have had their turn.
    fn retry_after(&self, waiting: usize) -> Duration {
        let pace = self.pace.load(Ordering::Relaxed);
        let turns = u64::try_from(waiting.div_ceil(2 * self.most_running)).unwrap_or(u64::MAX);
        let seconds = pace.saturating_mul(turns).div_ceil(1_000);
        Duration::from_secs(seconds.clamp(SOONEST, LATEST))
    }
}

// === impl Waiting ===

impl<'a> Waiting<'a> {
    /// Waits for a slot, first come, first served.
    pub(crate) async fn slot(self) -> Option<Slot<'a>> {
        // Never closed.
        let permit = self.0.slots.acquire().await.ok()?;
        Some(Slot {
            queue: self.0,
            permit: Some(permit),
        })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

// === impl Slot ===

impl Slot<'_> {
    /// Gives the slot to others while the call waits for its client. Afterwards it takes a slot
    /// that is free, and does without where none is: the server is at work on the call anyway.
    pub(crate) fn park(&mut self, parked: bool) {
        self.permit = match (parked, self.permit.take()) {
            (true, _) => None,
            (false, Some(permit)) => Some(permit),
            (false, None) => self.queue.slots.try_acquire().ok(),
        };
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn calls_have_their_turn_in_order_and_one_too_many_is_refused() {
        let queue = Queue::new(1, 2);
        let running = queue.try_slot().unwrap();
        queue.took(Duration::from_secs(80));
        let mut first = Box::pin(queue.enter().unwrap().slot());
        let mut second = Box::pin(queue.enter().unwrap().slot());
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        let full = queue.enter().unwrap_err();
        assert_eq!((full.running, full.waiting), (1, 2));
        assert_eq!(full.retry_after, Duration::from_secs(10));
        drop(running);
        // A slot that comes free belongs to the one that waited longest.
        assert!(queue.try_slot().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        let first = first.await.unwrap();
        assert!(queue.enter().is_ok());
        drop(first);
        second.await.unwrap();
    }

    #[tokio::test]
    async fn one_that_gives_up_makes_room() {
        let queue = Queue::new(1, 1);
        let _running = queue.try_slot().unwrap();
        let mut waiting = Box::pin(queue.enter().unwrap().slot());
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(queue.enter().is_err());
        drop(waiting);
        assert!(queue.enter().is_ok());
    }

    #[test]
    fn a_parked_call_does_not_hold_a_slot() {
        let queue = Queue::new(1, 1);
        let mut parked = queue.try_slot().unwrap();
        parked.park(true);
        let other = queue.try_slot().unwrap();
        parked.park(false);
        drop(other);
        assert!(queue.try_slot().is_some());
        parked.park(false);
        assert!(queue.try_slot().is_none());
    }
}
