//! One session: its connection, its streams, and when it was last used.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::lock::lock;
use crate::server::exchange::Exchange;
use crate::server::http::HttpOptions;
use crate::server::http::readers::Readers;
use crate::server::http::stream::{EventId, EventStream, STANDALONE};
use crate::server::route::Route;
use crate::server::service::Connection;
use crate::server::{Outbound, SessionId};

/// What a session keeps of streams that have ended, for clients that lost the connection just
/// before: so many, so large in all, for so long.
const KEPT_STREAMS: usize = 16;
const KEPT_BYTES: usize = 8 * 1024 * 1024;
const KEPT_FOR: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Arc<Connection>,
    exchange: Arc<Exchange>,
    readers: Arc<Readers>,
    standalone: Arc<EventStream>,
    /// The streams of requests that are answered by events, in the order they began.
    streams: Mutex<BTreeMap<u64, Arc<EventStream>>>,
    next_stream: AtomicU64,
    /// Whether its client ever made a request after `initialize`.
    used: AtomicBool,
    begun: Instant,
    /// Milliseconds after `begun`.
    last_used: AtomicU64,
}

/// How willingly a session is given up for a new one; the least is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionRank {
    pub(super) busy: bool,
    present: bool,
    /// Sessions that were only opened go first, so that opening many costs none in use.
    used: bool,
    last_used: Instant,
}

/// The parts of a session that its connection needs before there is one.
pub(super) struct SessionParts {
    standalone: Arc<EventStream>,
    exchange: Arc<Exchange>,
}

impl SessionParts {
    pub(super) fn new(options: &HttpOptions) -> Self {
        let readers = Readers::new(options.stall, Arc::clone(&options.unread));
        Self {
            standalone: EventStream::new(STANDALONE, readers),
            exchange: Exchange::new(options.max_calls),
        }
    }

    pub(super) fn outbound(&self) -> Outbound {
        let route = Route::Stream(Arc::clone(&self.standalone));
        Outbound::of_session(route, Arc::clone(&self.exchange))
    }
}

impl Session {
    pub(super) fn new(connection: Connection, beginnings: SessionParts) -> Self {
        let SessionParts {
            standalone,
            exchange,
        } = beginnings;
        Self {
            connection: Arc::new(connection),
            exchange,
            readers: Arc::clone(standalone.readers()),
            standalone,
            streams: Mutex::default(),
            next_stream: AtomicU64::new(STANDALONE + 1),
            used: AtomicBool::new(false),
            begun: Instant::now(),
            last_used: AtomicU64::new(0),
        }
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.connection.session
    }

    pub(super) fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    pub(super) fn standalone(&self) -> &Arc<EventStream> {
        &self.standalone
    }

    /// A stream for one request, not yet known to those who resume.
    pub(super) fn new_stream(&self) -> Arc<EventStream> {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        EventStream::new(number, Arc::clone(&self.readers))
    }

    /// Makes a stream resumable. From now on its client knows its event ids.
    pub(super) fn publish(&self, stream: Arc<EventStream>) {
        let mut streams = lock(&self.streams);
        streams.insert(stream.number(), stream);
        forget_old(&mut streams);
    }

    /// The stream that an event belongs to.
    pub(super) fn stream_of(&self, event: EventId) -> Option<Arc<EventStream>> {
        if event.stream == STANDALONE {
            return Some(Arc::clone(&self.standalone));
        }
        lock(&self.streams).get(&event.stream).cloned()
    }

    pub(super) fn mark_used(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    pub(super) fn touch(&self) {
        let elapsed = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(elapsed, Ordering::Relaxed);
    }

    pub(super) fn eviction_rank(&self) -> EvictionRank {
        EvictionRank {
            busy: self.exchange().is_busy(),
            present: self.readers.is_present(),
            used: self.used.load(Ordering::Relaxed),
            last_used: self.begun + Duration::from_millis(self.last_used.load(Ordering::Relaxed)),
        }
    }

    /// Whether the client has been away for so long. It is not while it reads a stream or waits
    /// for an answer; a call whose client has gone does not keep the session.
    pub(super) fn is_idle(&self, limit: Duration) -> bool {
        let eviction_rank = self.eviction_rank();
        if eviction_rank.present {
            self.touch();
            return false;
        }
        eviction_rank.last_used.elapsed() >= limit
    }

    pub(super) fn forget_old_streams(&self) {
        forget_old(&mut lock(&self.streams));
    }

    /// Cancels what runs and ends every stream. The caller tells the service.
    pub(super) fn end(&self) {
        self.exchange().end();
        self.standalone.finish([]);
        for stream in std::mem::take(&mut *lock(&self.streams)).into_values() {
            stream.finish([]);
        }
    }
}

/// Drops finished streams, oldest first, until the rest is within bounds.
fn forget_old(streams: &mut BTreeMap<u64, Arc<EventStream>>) {
    let finished: Vec<_> = streams
        .values()
        .filter_map(|stream| Some((stream.number(), stream.finished_at()?, stream.bytes())))
        .collect();
    let mut count = finished.len();
    let mut bytes: usize = finished.iter().map(|(_, _, bytes)| bytes).sum();
    for (number, finished_at, size) in finished {
        let too_much = count > KEPT_STREAMS || (bytes > KEPT_BYTES && count > 1);
        if too_much || finished_at.elapsed() >= KEPT_FOR {
            streams.remove(&number);
            count -= 1;
            bytes -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::http::unread::UnreadBudget;

    fn running(number: u64) -> Arc<EventStream> {
        let unread = UnreadBudget::new(usize::MAX);
        EventStream::new(number, Readers::new(Duration::ZERO, unread))
    }

    fn finished(number: u64, bytes: usize) -> Arc<EventStream> {
        let stream = running(number);
        stream.finish([vec![b'x'; bytes]]);
        stream
    }

    fn kept(streams: impl IntoIterator<Item = Arc<EventStream>>) -> Vec<u64> {
        let mut streams = streams
            .into_iter()
            .map(|stream| (stream.number(), stream))
            .collect();
        forget_old(&mut streams);
        streams.into_keys().collect()
    }

    #[test]
    fn only_so_many_finished_streams_are_kept_and_every_running_one() {
        let running = (1..=30).map(running);
        let done = (31..=60).map(|number| finished(number, 10));
        let expected: Vec<u64> = (1..=30).chain(45..=60).collect();
        assert_eq!(kept(running.chain(done)), expected);
    }

    #[test]
    fn large_streams_make_way_for_later_ones_but_the_last_stays() {
        let half = KEPT_BYTES / 2;
        assert_eq!(kept((1..=4).map(|number| finished(number, half))), [4]);
        assert_eq!(kept([finished(1, 2 * KEPT_BYTES)]), [1]);
        assert_eq!(
            kept((1..=4).map(|number| finished(number, half / 2))),
            [2, 3, 4]
        );
    }
}
