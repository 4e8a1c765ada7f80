//! A stream of events as a bounded log: writers append, one reader at a time follows, and a client
//! that lost its connection goes on from the event it saw last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::audience::Audience;
use super::reader::EventReader;
use crate::server::lock::lock;
use crate::server::outbound::Gone;
use crate::sse::encode_event;

/// How many events a reader may be behind before writers wait for it.
const BACKLOG: u64 = 64;
/// What is kept of one stream for a reader that comes back.
const KEPT_EVENTS: usize = 256;
const KEPT_BYTES: usize = 1024 * 1024;

/// See the module's description. Where it can be resumed, every event has the id
/// `<stream>-<position>`; the position is that of the event after it: the place to go on from.
#[derive(Debug)]
pub(in crate::server) struct EventStream {
    /// `None` for a stream that cannot be resumed; its events need no ids.
    number: Option<u64>,
    audience: Arc<Audience>,
    state: Mutex<State>,
    /// Wakes writers that wait for their reader.
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    log: VecDeque<Bytes>,
    /// The position of the first event that is still in the log.
    first: u64,
    bytes: usize,
    /// The position that the reader gets next, or that a new reader without a position starts at.
    cursor: u64,
    /// The reader that the stream belongs to. A later one takes it over.
    reader: Option<u64>,
    readers: u64,
    waker: Option<Waker>,
    finished: Option<Instant>,
}

/// The place in a session's streams that an event id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) position: u64,
}

// === impl EventStream ===

impl EventStream {
    pub(super) fn new(number: u64, audience: Arc<Audience>) -> Arc<Self> {
        Self::with(Some(number), audience)
    }

    /// A stream for one reader only, which is over when that one goes.
    pub(super) fn fleeting(audience: Arc<Audience>) -> Arc<Self> {
        Self::with(None, audience)
    }

    fn with(number: Option<u64>, audience: Arc<Audience>) -> Arc<Self> {
        Arc::new(Self {
            number,
            audience,
            state: Mutex::default(),
            room: Notify::new(),
        })
    }

    pub(super) fn number(&self) -> u64 {
        self.number.unwrap_or_default()
    }

    pub(super) fn audience(&self) -> &Arc<Audience> {
        &self.audience
    }

    /// Takes the stream over, from `position` on or from where the last reader stopped.
    pub(super) fn attach(self: &Arc<Self>, position: Option<u64>) -> EventReader {
        let mut state = lock(&self.state);
        state.readers += 1;
        let reader = state.readers;
        if state.reader.replace(reader).is_none() {
            self.audience.enter();
        }
        let next = state.next();
        state.cursor = position.unwrap_or(state.cursor).clamp(state.first, next);
        state.wake();
        drop(state);
        EventReader::new(Arc::clone(self), reader)
    }

    /// Lets a reader go, if the stream is still its own.
    pub(super) fn detach(&self, reader: u64) {
        let mut state = lock(&self.state);
        if state.reader == Some(reader) {
            self.dismiss(&mut state);
        }
    }

    /// Leaves the stream without a reader; the body of the one it had ends.
    fn dismiss(&self, state: &mut State) {
        if state.reader.take().is_some() {
            self.audience.leave();
            state.wake();
            self.room.notify_waiters();
        }
    }

    /// Appends a message; waits while the reader is too far behind. Without a reader it never
    /// waits, and the oldest events make way.
    pub(in crate::server) async fn send(&self, message: &[u8]) -> Result<(), Gone> {
        loop {
            // Before looking, so that room made in between is not missed.
            let room = self.room.notified();
            let laggard = {
                let mut state = lock(&self.state);
                if state.finished.is_some() {
                    return Err(Gone);
                }
                let Some(laggard) = state.laggard() else {
                    state.push(self.number, message);
                    return Ok(());
                };
                laggard
            };
            if timeout(self.audience.stall, room).await.is_err() {
                self.detach(laggard);
            }
        }
    }

    /// Appends a message at once. A reader that is too far behind loses the stream and has to come
    /// back for the rest.
    pub(in crate::server) fn offer(&self, message: &[u8]) -> Result<(), Gone> {
        let mut state = lock(&self.state);
        if state.finished.is_some() {
            return Err(Gone);
        }
        if state.laggard().is_some() {
            self.dismiss(&mut state);
        }
        state.push(self.number, message);
        Ok(())
    }

    /// Ends the stream after these messages. Only the first call counts.
    pub(in crate::server) fn finish(&self, messages: impl IntoIterator<Item = Vec<u8>>) {
        let mut state = lock(&self.state);
        if state.finished.is_some() {
            return;
        }
        for message in messages {
            state.push(self.number, &message);
        }
        state.finished = Some(Instant::now());
        state.wake();
        self.room.notify_waiters();
    }

    pub(super) fn finished_at(&self) -> Option<Instant> {
        lock(&self.state).finished
    }

    pub(super) fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    /// Ends the stream if nothing was ever sent on it; whether that is so. What comes later is
    /// refused to its sender instead of lost with a stream that no client will read.
    pub(super) fn finish_if_silent(&self) -> bool {
        let mut state = lock(&self.state);
        if state.next() > 0 {
            return false;
        }
        state.finished.get_or_insert_with(Instant::now);
        true
    }

    /// Whether nothing was ever sent.
    pub(super) fn is_silent(&self) -> bool {
        lock(&self.state).next() == 0
    }

    /// Ready as soon as there is anything to read, be it the end.
    pub(super) fn poll_opened(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.next() > 0 || state.finished.is_some() {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_event(&self, reader: u64, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = lock(&self.state);
        if state.reader != Some(reader) {
            return Poll::Ready(None);
        }
        if let Some(event) = state.take() {
            drop(state);
            self.room.notify_waiters();
            return Poll::Ready(Some(event));
        }
        if state.finished.is_some() {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// The event that tells a new reader where it stands before there is anything to say.
    pub(super) fn priming(&self, retry: Duration) -> Bytes {
        let id = EventId {
            stream: self.number(),
            position: lock(&self.state).cursor,
        };
        encode_event(Some(&id.to_string()), Some(retry), b"")
    }
}

// === impl State ===

impl State {
    /// The position that the next event will have.
    fn next(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// The reader, if it has too much before it to be given more.
    fn laggard(&mut self) -> Option<u64> {
        // After this the log is too large only if the reader has yet to get what makes it so.
        self.trim();
        let backlog = self.next() - self.cursor;
        let too_large = backlog > 0 && self.bytes > KEPT_BYTES;
        self.reader.filter(|_| backlog >= BACKLOG || too_large)
    }

    fn push(&mut self, stream: Option<u64>, message: &[u8]) {
        let position = self.next() + 1;
        let id = stream.map(|stream| EventId { stream, position }.to_string());
        let event = encode_event(id.as_deref(), None, message);
        self.bytes += event.len();
        self.log.push_back(event);
        self.trim();
        self.wake();
    }

    /// Forgets the oldest events, but none that a present reader has yet to get, and never the
    /// newest: that may be the answer.
    fn trim(&mut self) {
        while self.log.len() > 1
            && (self.log.len() > KEPT_EVENTS || self.bytes > KEPT_BYTES)
            && (self.reader.is_none() || self.first < self.cursor)
        {
            if let Some(event) = self.log.pop_front() {
                self.bytes -= event.len();
                self.first += 1;
            }
        }
        self.cursor = self.cursor.max(self.first);
    }

    fn take(&mut self) -> Option<Bytes> {
        let index = usize::try_from(self.cursor - self.first).ok()?;
        let event = self.log.get(index)?.clone();
        self.cursor += 1;
        Some(event)
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

// === impl EventId ===

impl EventId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, position) = text.trim().split_once('-')?;
        Some(Self {
            stream: stream.parse().ok()?,
            position: position.parse().ok()?,
        })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}-{}", self.stream, self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    use proptest::prelude::*;

    fn stream(number: u64) -> Arc<EventStream> {
        EventStream::new(number, Audience::new(Duration::from_millis(20)))
    }

    async fn next(reader: &EventReader) -> Option<String> {
        let event = poll_fn(|context| reader.poll_event(context)).await?;
        Some(String::from_utf8(event.to_vec()).unwrap())
    }

    /// What can be read without waiting: the numbers that the messages are.
    fn drain(reader: &EventReader) -> Vec<u64> {
        let mut context = Context::from_waker(Waker::noop());
        let mut numbers = Vec::new();
        while let Poll::Ready(Some(event)) = reader.poll_event(&mut context) {
            let text = String::from_utf8(event.to_vec()).unwrap();
            let (_, data) = text.trim_end().rsplit_once("data: ").unwrap();
            numbers.push(data.parse().unwrap());
        }
        numbers
    }

    fn offer(stream: &EventStream, number: u64) {
        stream.offer(number.to_string().as_bytes()).unwrap();
    }

    #[tokio::test]
    async fn an_event_names_the_place_to_go_on_from() {
        let stream = stream(7);
        let reader = stream.attach(None);
        stream.send(b"a").await.unwrap();
        stream.finish([b"b".to_vec()]);
        assert_eq!(next(&reader).await.unwrap(), "id: 7-1\ndata: a\n\n");
        let resumed = stream.attach(Some(1));
        assert_eq!(next(&reader).await, None);
        assert_eq!(next(&resumed).await.unwrap(), "id: 7-2\ndata: b\n\n");
        assert_eq!(next(&resumed).await, None);
        assert_eq!(stream.send(b"c").await, Err(Gone));
    }

    #[tokio::test]
    async fn a_silent_stream_ends_and_one_that_spoke_goes_on() {
        let silent = stream(1);
        assert!(silent.finish_if_silent());
        assert_eq!(silent.send(b"a question").await, Err(Gone));
        let spoken = stream(2);
        spoken.send(b"a question").await.unwrap();
        assert!(!spoken.finish_if_silent());
        spoken.send(b"another").await.unwrap();
    }

    #[tokio::test]
    async fn a_writer_waits_for_its_reader_and_not_for_one_that_left() {
        let stream = stream(1);
        let reader = stream.attach(None);
        for number in 0..BACKLOG {
            stream.send(number.to_string().as_bytes()).await.unwrap();
        }
        let mut blocked = Box::pin(stream.send(b"64"));
        assert!(futures_util::poll!(&mut blocked).is_pending());
        assert!(next(&reader).await.is_some());
        blocked.await.unwrap();
        let mut blocked = Box::pin(stream.send(b"65"));
        assert!(futures_util::poll!(&mut blocked).is_pending());
        drop(reader);
        blocked.await.unwrap();
        assert_eq!(drain(&stream.attach(None)), (1..=65).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_holds_its_writer_up_only_for_so_long() {
        let stream = stream(1);
        let reader = stream.attach(None);
        assert!(stream.audience.is_present());
        for number in 0..=BACKLOG {
            stream.send(number.to_string().as_bytes()).await.unwrap();
        }
        assert!(!stream.audience.is_present());
        assert_eq!(next(&reader).await, None);
        drop(reader);
        let count = drain(&stream.attach(None)).len();
        assert_eq!(count as u64, BACKLOG + 1);
    }

    #[test]
    fn one_reader_after_another_is_one_audience() {
        let stream = stream(1);
        let first = stream.attach(None);
        let second = stream.attach(None);
        drop(first);
        assert!(stream.audience.is_present());
        drop(second);
        assert!(!stream.audience.is_present());
    }

    #[test]
    fn a_reader_that_is_offered_too_much_loses_the_stream_but_no_event() {
        let stream = stream(1);
        let reader = stream.attach(None);
        for number in 0..=BACKLOG {
            offer(&stream, number);
        }
        assert!(!stream.audience.is_present());
        assert_eq!(drain(&reader), Vec::<u64>::new());
        assert_eq!(
            drain(&stream.attach(Some(0))),
            (0..=BACKLOG).collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_is_kept_is_bounded_by_bytes_and_always_has_the_newest() {
        let stream = stream(1);
        let large = vec![b'1'; KEPT_BYTES / 2];
        for _ in 0..5 {
            stream.offer(&large).unwrap();
        }
        assert!(stream.bytes() <= KEPT_BYTES);
        stream.finish([vec![b'2'; 2 * KEPT_BYTES]]);
        let reader = stream.attach(Some(0));
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(event)) = reader.poll_event(&mut context) else {
            panic!("the newest event is always there");
        };
        assert!(event.starts_with(b"id: 1-6\n"));
    }

    proptest! {
        /// Whatever readers come, go and resume: each gets the events from where it asked on,
        /// in order and without a gap, as far back as they are kept.
        #[test]
        fn resuming_gives_everything_after_the_position(
            before in 0..400_u64,
            position in 0..600_u64,
            after in 0..60_u64,
        ) {
            let stream = stream(1);
            for number in 0..before {
                offer(&stream, number);
            }
            let reader = stream.attach(Some(position));
            for number in before..before + after {
                offer(&stream, number);
            }
            let oldest = before.saturating_sub(KEPT_EVENTS as u64);
            let first = position.clamp(oldest, before);
            let behind = before - first;
            if behind + after <= BACKLOG {
                prop_assert_eq!(drain(&reader), (first..before + after).collect::<Vec<_>>());
            }
            let newest = (before + after).saturating_sub(KEPT_EVENTS as u64);
            prop_assert_eq!(
                drain(&stream.attach(Some(position))),
                (position.clamp(newest, before + after)..before + after).collect::<Vec<_>>()
            );
        }

        #[test]
        fn an_event_id_is_read_as_it_was_written(stream: u64, position: u64) {
            let id = EventId { stream, position };
            prop_assert_eq!(EventId::parse(&id.to_string()), Some(id));
        }
    }
}
