//! The connections of one listener: what each is waiting for, and when it has waited too long.
//!
//! Connections note their progress; one sweep per listener compares it with the limits of the
//! config. No request needs a timer of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::Limits;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::seldom::Seldom;

/// A client that read something within this time is not dropped to free memory.
const READING: Duration = Duration::from_secs(1);
/// The whole of a body may take this many times as long as a pause in it.
const WHOLE_BODY: u32 = 10;
/// How often a listener without room looks for a connection that can be closed.
const ROOM_CHECK: Duration = Duration::from_millis(50);
/// A connection that has been idle for less is in use.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(250);
const SHORTEST_TICK: Duration = Duration::from_millis(10);
const LONGEST_TICK: Duration = Duration::from_secs(1);
/// How often clients that do not read are looked for while more is unread than allowed.
const EXCEEDED_TICK: Duration = Duration::from_millis(100);

/// All open connections of one listener.
#[derive(Debug)]
pub(super) struct Connections {
    /// What the listener is called in the log.
    name: &'static str,
    open: Mutex<HashMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    /// Bytes of answers that were given to connections and that no client has taken yet.
    unread: AtomicUsize,
    /// What `unread` may be before the sweep looks at it.
    unread_limit: AtomicUsize,
    /// Wakes the sweep: there is a first connection, or too much is unread.
    look: Notify,
    left: Notify,
    full: Seldom,
    overdue: Seldom,
}

/// One connection. It leaves [`Connections`] when the last handle of its task is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    progress: Mutex<Progress>,
    close: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
struct Progress {
    phase: Phase,
    /// When the phase began.
    begun: Instant,
    /// When the client last sent something in this phase.
    moved: Instant,
    /// Since when bytes wait for a client that does not read.
    stalled: Option<Instant>,
    unread: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Between two requests.
    Idle,
    /// The client is to send the head of a request.
    Head,
    /// The client is to send the body of a request.
    Body,
    /// The request is whole; an answer is being made or sent.
    Answer,
}

/// Why the sweep closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overdue {
    Idle,
    Head,
    Body,
    Reading,
}

/// Removes a connection from the list when its task ends.
#[derive(Debug)]
pub(super) struct Entry {
    connections: Arc<Connections>,
    number: u64,
    connection: Arc<Connection>,
}

// === impl Connections ===

impl Connections {
    pub(super) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            open: Mutex::default(),
            next: AtomicU64::new(0),
            unread: AtomicUsize::new(0),
            unread_limit: AtomicUsize::new(usize::MAX),
            look: Notify::new(),
            left: Notify::new(),
            full: Seldom::default(),
            overdue: Seldom::default(),
        })
    }

    /// Adds a connection that was just accepted. It ends with `all` at the latest.
    pub(super) fn add(self: &Arc<Self>, all: &CancellationToken) -> Entry {
        let connection = Arc::new(Connection {
            progress: Mutex::new(Progress::new(Instant::now())),
            close: all.child_token(),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open();
        open.insert(number, Arc::clone(&connection));
        if open.len() == 1 {
            self.look.notify_one();
        }
        drop(open);
        Entry {
            connections: Arc::clone(self),
            number,
            connection,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open().len()
    }

    /// Waits until there are fewer than `most`. Connections that wait for their client are closed
    /// to make room: idle ones first, then those whose request began longest ago.
    pub(super) async fn room(&self, most: usize) {
        loop {
            let left = self.left.notified();
            if self.len() < most {
                return;
            }
            if let Some(left_out) = self.full.now() {
                tracing::warn!(
                    listener = self.name,
                    connections = most,
                    left_out,
                    "all connections are in use; idle ones are closed, and new clients wait. If these \
                     clients are yours, raise `limits.connections`"
                );
            }
            self.close_one_waiting();
            let _ = timeout(ROOM_CHECK, left).await;
        }
    }

    /// Closes the connection that can best be spared; `false` if all are in use.
    pub(super) fn close_one_waiting(&self) -> bool {
        let open = self.open();
        let spared = open
            .values()
            .filter(|connection| !connection.close.is_cancelled())
            .map(|connection| (connection.progress(), connection))
            .filter(|(progress, _)| progress.phase != Phase::Answer && progress.stalled.is_none())
            // A client between two requests would find its next one cut off.
            .filter(|(progress, _)| progress.begun.elapsed() >= BETWEEN_REQUESTS)
            .min_by_key(|(progress, _)| (progress.phase != Phase::Idle, progress.begun));
        if let Some((_, connection)) = spared {
            connection.close.cancel();
        }
        spared.is_some()
    }

    /// Closes connections whose clients keep them waiting; runs until dropped. `limits` gives the
    /// config in force.
    pub(super) async fn watch(&self, limits: impl Fn() -> Limits) {
        loop {
            let look = self.look.notified();
            let current = limits();
            self.unread_limit
                .store(current.unread_bytes, Ordering::Relaxed);
            if self.len() == 0 {
                look.await;
            } else {
                let is_exceeded = self.unread.load(Ordering::Relaxed) > current.unread_bytes;
                let longest = if is_exceeded {
                    EXCEEDED_TICK
                } else {
                    LONGEST_TICK
                };
                let _ = timeout(tick(&current).min(longest), look).await;
            }
            self.close_overdue(&current, Instant::now());
        }
    }

    fn close_overdue(&self, limits: &Limits, now: Instant) {
        let mut closed = [0_usize; 4];
        let (mut stalled, mut unread) = (Vec::new(), 0);
        {
            let open = self.open();
            for connection in open.values() {
                let progress = connection.progress();
                if connection.close.is_cancelled() {
                    continue;
                }
                if let Some(overdue) = progress.overdue(limits, now) {
                    closed[overdue as usize] += 1;
                    connection.close.cancel();
                    continue;
                }
                unread += progress.unread;
                if let Some(since) = progress.stalled
                    && now.saturating_duration_since(since) >= READING
                {
                    stalled.push((since, progress.unread, Arc::clone(connection)));
                }
            }
        }
        closed[Overdue::Reading as usize] += spare_memory(stalled, unread, limits.unread_bytes);
        let [_, head, body, reading] = closed;
        if head + body + reading > 0
            && let Some(left_out) = self.overdue.now()
        {
            tracing::warn!(
                listener = self.name,
                head,
                body,
                reading,
                left_out,
                "closed connections whose clients were too slow with the head or the body of a request, \
                 or with reading an answer (limits.header_timeout, body_timeout, write_timeout)"
            );
        }
    }

    /// An answer has `bytes` more to send.
    fn queued(&self, bytes: usize) {
        let before = self.unread.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.unread_limit.load(Ordering::Relaxed) {
            self.look.notify_one();
        }
    }

    fn taken(&self, bytes: usize) {
        self.unread.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tick(limits: &Limits) -> Duration {
    let shortest = [
        limits.header_timeout,
        limits.body_timeout,
        limits.idle_timeout,
        limits.write_timeout,
    ];
    let shortest = shortest.iter().map(|time| time.get()).min();
    let quarter = shortest.unwrap_or(LONGEST_TICK) / 4;
    quarter.clamp(SHORTEST_TICK, LONGEST_TICK)
}

/// Closes those that have not read for longest until at most `most` of the `held` bytes are left.
fn spare_memory(
    mut stalled: Vec<(Instant, usize, Arc<Connection>)>,
    mut held: usize,
    most: usize,
) -> usize {
    stalled.sort_by_key(|(since, _, _)| *since);
    let mut closed = 0;
    for (_, unread, connection) in stalled {
        if held <= most {
            break;
        }
        connection.close.cancel();
        held -= unread;
        closed += 1;
    }
    closed
}

// === impl Connection ===

impl Connection {
    pub(super) async fn closed(&self) {
        self.close.cancelled().await;
    }

    /// The client sent bytes; the first ones after a pause begin a request.
    pub(super) fn read(&self) {
        let mut progress = self.lock();
        if progress.phase == Phase::Idle {
            progress.enter(Phase::Head);
        }
    }

    /// A request's head is there.
    pub(super) fn head_read(&self, has_body: bool) {
        let phase = if has_body { Phase::Body } else { Phase::Answer };
        self.lock().enter(phase);
    }

    /// A piece of the body is there.
    pub(super) fn body_moved(&self) {
        self.lock().moved = Instant::now();
    }

    /// The body is there, or is not wanted.
    pub(super) fn body_read(&self) {
        let mut progress = self.lock();
        if progress.phase == Phase::Body {
            progress.enter(Phase::Answer);
        }
    }

    /// The answer is made; what is left of it waits to be written.
    pub(super) fn answered(&self) {
        self.lock().enter(Phase::Idle);
    }

    fn progress(&self) -> Progress {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Entry ===

impl Entry {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// An answer has `bytes` more for the client.
    pub(super) fn queued(&self, bytes: usize) {
        self.connection.lock().unread += bytes;
        self.connections.queued(bytes);
    }

    /// The client took `bytes`.
    pub(super) fn written(&self, bytes: usize) {
        let mut progress = self.connection.lock();
        progress.stalled = None;
        let taken = bytes.min(progress.unread);
        progress.unread -= taken;
        drop(progress);
        self.connections.taken(taken);
    }

    /// Everything that was queued went out.
    pub(super) fn flushed(&self) {
        let mut progress = self.connection.lock();
        progress.stalled = None;
        let taken = std::mem::take(&mut progress.unread);
        drop(progress);
        self.connections.taken(taken);
    }

    /// The client does not take any more for now.
    pub(super) fn stalled(&self) {
        let mut progress = self.connection.lock();
        progress.stalled.get_or_insert_with(Instant::now);
    }

    /// Whether the client left something unread.
    pub(super) fn is_stalled(&self) -> bool {
        self.connection.progress().stalled.is_some()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open().remove(&self.number);
        self.flushed();
        self.connections.left.notify_waiters();
    }
}

// === impl Progress ===

impl Progress {
    /// A new connection owes us a request.
    fn new(now: Instant) -> Self {
        Self {
            phase: Phase::Head,
            begun: now,
            moved: now,
            stalled: None,
            unread: 0,
        }
    }

    fn enter(&mut self, phase: Phase) {
        let now = Instant::now();
        self.phase = phase;
        self.begun = now;
        self.moved = now;
    }

    fn overdue(&self, limits: &Limits, now: Instant) -> Option<Overdue> {
        let past = |since: Instant, limit: config::Time| {
            now.saturating_duration_since(since) >= limit.get()
        };
        if let Some(since) = self.stalled {
            return past(since, limits.write_timeout).then_some(Overdue::Reading);
        }
        match self.phase {
            Phase::Idle => past(self.begun, limits.idle_timeout).then_some(Overdue::Idle),
            Phase::Head => past(self.begun, limits.header_timeout).then_some(Overdue::Head),
            Phase::Body => {
                let whole = limits.body_timeout.get().saturating_mul(WHOLE_BODY);
                let overdue = past(self.moved, limits.body_timeout)
                    || now.saturating_duration_since(self.begun) >= whole;
                overdue.then_some(Overdue::Body)
            }
            Phase::Answer => None,
        }
    }
}
