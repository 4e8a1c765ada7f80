//! Timeouts of calls that share one timer.
//!
//! Nearly every call is answered long before its deadline. A timer of the runtime costs each of them
//! two system calls, because one that ends earlier than all others wakes the runtime's driver. Here a
//! single ticker runs while calls wait, and each call only looks at the clock when it ticks.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How late a timeout can be noticed.
const TICK: Duration = Duration::from_millis(50);

/// Shorter timeouts than this get a timer of their own, because a tick would be late for them.
const SHORTEST: Duration = Duration::from_millis(500);

/// See the module's description. Cheap to clone; clones share the ticker.
#[derive(Debug, Clone, Default)]
pub(crate) struct CoarseTimer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    ticked: Notify,
    waiting: AtomicUsize,
    /// Whether a call began to wait since the last tick.
    used: AtomicBool,
    /// Whether the ticker runs.
    ticking: AtomicBool,
}

/// Counts a waiting call until it is dropped.
struct Waiting<'a>(&'a Shared);

impl CoarseTimer {
    /// Waits for `duration`, or up to a tick longer.
    pub(crate) async fn sleep(&self, duration: Duration) {
        match Instant::now().checked_add(duration) {
            Some(deadline) => self.sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the deadline, or up to a tick longer.
    pub(crate) async fn sleep_until(&self, deadline: Instant) {
        let now = Instant::now();
        if deadline < now + SHORTEST {
            return tokio::time::sleep_until(deadline).await;
        }
        let shared = &*self.0;
        let _waiting = Waiting::new(shared);
        self.start_ticking();
        loop {
            let ticked = shared.ticked.notified();
            if Instant::now() >= deadline {
                return;
            }
            ticked.await;
        }
    }

    /// Runs `work` until its end or the deadline; `None` if the deadline came first.
    pub(crate) async fn timeout_at<T>(
        &self,
        deadline: Instant,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            outcome = work => Some(outcome),
            () = self.sleep_until(deadline) => None,
        }
    }

    fn start_ticking(&self) {
        let shared = &self.0;
        shared.used.store(true, Ordering::Relaxed);
        if !shared.ticking.swap(true, Ordering::SeqCst) {
            tokio::spawn(tick(Arc::clone(shared)));
        }
    }
}

/// Ticks until nothing waits, and nothing did since the last tick.
async fn tick(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(TICK).await;
        shared.ticked.notify_waiters();
        if shared.used.swap(false, Ordering::Relaxed) || shared.is_needed() {
            continue;
        }
        // A swap, because a plain store could become visible only after `waiting` is read: a call that
        // begins to wait in between would then find the ticker running, and it would be gone.
        shared.ticking.swap(false, Ordering::SeqCst);
        // A call may have begun to wait just before; then one of the two, and only one, keeps ticking.
        if !shared.is_needed() || shared.ticking.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}

impl Shared {
    fn is_needed(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }
}

impl<'a> Waiting<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.waiting.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_noticed_within_a_tick() {
        let timer = CoarseTimer::default();
        for milliseconds in [0, 1, 499, 500, 501, 1_000, 120_000] {
            let wanted = Duration::from_millis(milliseconds);
            let began = Instant::now();
            timer.sleep_until(began + wanted).await;
            let took = began.elapsed();
            assert!(took >= wanted && took <= wanted + 2 * TICK, "{took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_ticker_rests_when_nothing_waits_and_starts_again() {
        let timer = CoarseTimer::default();
        for _ in 0..3 {
            let deadline = Instant::now() + Duration::from_mins(1);
            let answered = timer.timeout_at(deadline, tokio::time::sleep(TICK / 2));
            assert!(answered.await.is_some());
            while timer.0.ticking.load(Ordering::Acquire) {
                tokio::time::sleep(TICK).await;
            }
            let deadline = Instant::now() + Duration::from_secs(1);
            let late = timer.timeout_at(deadline, std::future::pending::<()>());
            assert!(late.await.is_none());
        }
    }
}
