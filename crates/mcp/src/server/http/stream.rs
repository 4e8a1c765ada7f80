//! A stream of events as a bounded log: writers append, one reader at a time follows, and a client
//! that lost its connection goes on from the event it saw last.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::event_log::Log;
use super::reader::EventReader;
use super::readers::Readers;
use super::unread::{Holder, Share};
use crate::lock::lock;
use crate::server::outbound::Gone;
use crate::sse::encode_event;

/// The number of the stream whose messages belong to no request.
pub(super) const STANDALONE: u64 = 0;

/// See the module's description. Where it can be resumed, every event has the id
/// `<stream>-<position>`; the position is that of the event after it: the place to go on from.
#[derive(Debug)]
pub(in crate::server) struct EventStream {
    /// `None` for a stream that cannot be resumed; its events need no ids.
    number: Option<u64>,
    readers: Arc<Readers>,
    state: Mutex<Log>,
    /// What the state holds, as part of all that is held for clients.
    share: Share,
    this: Weak<Self>,
    /// Wakes writers that wait for their reader.
    room: Notify,
}

/// The place in a session's streams that an event id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) position: u64,
}

// === impl EventStream ===

impl EventStream {
    pub(super) fn new(number: u64, readers: Arc<Readers>) -> Arc<Self> {
        Self::with(Some(number), readers)
    }

    /// A stream for one reader only, which is over when that one goes.
    pub(super) fn non_resumable(readers: Arc<Readers>) -> Arc<Self> {
        Self::with(None, readers)
    }

    fn with(number: Option<u64>, readers: Arc<Readers>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            number,
            share: Share::new(Arc::clone(&readers.unread)),
            readers,
            state: Mutex::new(Log::new()),
            this: this.clone(),
            room: Notify::new(),
        })
    }

    pub(super) fn number(&self) -> u64 {
        self.number.unwrap_or_default()
    }

    pub(super) fn readers(&self) -> &Arc<Readers> {
        &self.readers
    }

    /// Takes the stream over from where the last reader stopped.
    pub(super) fn attach(self: &Arc<Self>) -> EventReader {
        let state = lock(&self.state);
        let cursor = state.cursor;
        self.attach_at(state, cursor)
    }

    /// Takes the stream over from `position` on; `None` if what came then was given up.
    pub(super) fn resume(self: &Arc<Self>, position: u64) -> Option<EventReader> {
        let state = lock(&self.state);
        (position >= state.lost).then(|| self.attach_at(state, position))
    }

    fn attach_at(self: &Arc<Self>, mut state: MutexGuard<'_, Log>, position: u64) -> EventReader {
        state.readers += 1;
        let reader = state.readers;
        if state.reader.replace(reader).is_none() {
            self.readers.enter();
        }
        let next = state.next();
        state.cursor = position.clamp(state.first, next);
        state.offset = 0;
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
    fn dismiss(&self, state: &mut Log) {
        if state.reader.take().is_some() {
            state.offset = 0;
            self.readers.leave();
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
            let slow_reader = {
                let mut state = lock(&self.state);
                if state.finished.is_some() {
                    return Err(Gone);
                }
                let Some(slow_reader) = state.slow_reader() else {
                    self.push(&mut state, message);
                    break;
                };
                slow_reader
            };
            if timeout(self.readers.stall, room).await.is_err() {
                self.detach(slow_reader);
            }
        }
        self.share.settle(&self.this);
        Ok(())
    }

    /// Appends a message at once. A reader that is too far behind loses the stream and has to come
    /// back for the rest.
    pub(in crate::server) fn offer(&self, message: &[u8]) -> Result<(), Gone> {
        let mut state = lock(&self.state);
        if state.finished.is_some() {
            return Err(Gone);
        }
        if state.slow_reader().is_some() {
            self.dismiss(&mut state);
        }
        self.push(&mut state, message);
        drop(state);
        self.share.settle(&self.this);
        Ok(())
    }

    /// Ends the stream after these messages. Only the first call counts.
    pub(in crate::server) fn finish(&self, messages: impl IntoIterator<Item = Vec<u8>>) {
        let mut state = lock(&self.state);
        if state.finished.is_some() {
            return;
        }
        for message in messages {
            self.push(&mut state, &message);
        }
        state.finished = Some(Instant::now());
        state.wake();
        drop(state);
        self.room.notify_waiters();
        self.share.settle(&self.this);
    }

    fn push(&self, state: &mut Log, message: &[u8]) {
        state.push(self.number, message);
        self.share.set(state.bytes);
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
            self.share.set(state.bytes);
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

    /// Whether the stream goes on, but its reader was dismissed and no other has taken over.
    pub(super) fn is_open_without_reader(&self) -> bool {
        let state = lock(&self.state);
        state.finished.is_none() && state.reader.is_none()
    }

    /// The event that tells a new reader where it stands before there is anything to say.
    pub(super) fn priming(&self) -> Bytes {
        let id = EventId {
            stream: self.number(),
            position: lock(&self.state).cursor,
        };
        encode_event(Some(&id.to_string()), b"")
    }
}

impl Holder for EventStream {
    fn bytes(&self) -> usize {
        self.share.bytes()
    }

    fn unread_since(&self) -> Instant {
        lock(&self.state).unread_since
    }

    fn give_up(&self) {
        let mut state = lock(&self.state);
        if !state.give_up_read() {
            state.give_up_unread();
            self.dismiss(&mut state);
            // An answer that comes now would be for a client that cannot know of it.
            if self.number != Some(STANDALONE) {
                state.finished.get_or_insert_with(Instant::now);
            }
        }
        self.share.set(state.bytes);
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
    use crate::server::http::event_log::{BACKLOG, KEPT_BYTES, KEPT_EVENTS, PIECE};
    use crate::server::http::unread::{READING, UnreadBudget};
    use std::future::poll_fn;
    use std::task::Waker;
    use std::time::Duration;

    use proptest::prelude::*;

    fn stream(number: u64) -> Arc<EventStream> {
        within(&UnreadBudget::new(usize::MAX), number)
    }

    fn within(unread: &Arc<UnreadBudget>, number: u64) -> Arc<EventStream> {
        let readers = Readers::new(Duration::from_millis(20), Arc::clone(unread));
        EventStream::new(number, readers)
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

    /// How long the messages are that can be read without waiting.
    fn drain_bytes(reader: &EventReader) -> usize {
        let mut context = Context::from_waker(Waker::noop());
        let mut bytes = 0;
        while let Poll::Ready(Some(event)) = reader.poll_event(&mut context) {
            let text = String::from_utf8(event.to_vec()).unwrap();
            bytes += text.trim_end().rsplit_once("data: ").unwrap().1.len();
        }
        bytes
    }

    fn offer(stream: &EventStream, number: u64) {
        stream.offer(number.to_string().as_bytes()).unwrap();
    }

    #[tokio::test]
    async fn an_event_names_the_place_to_go_on_from() {
        let stream = stream(7);
        let reader = stream.attach();
        stream.send(b"a").await.unwrap();
        stream.finish([b"b".to_vec()]);
        assert_eq!(next(&reader).await.unwrap(), "id: 7-1\ndata: a\n\n");
        let resumed = stream.resume(1).unwrap();
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
        let reader = stream.attach();
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
        assert_eq!(drain(&stream.attach()), (1..=65).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_holds_its_writer_up_only_for_so_long() {
        let stream = stream(1);
        let reader = stream.attach();
        assert!(stream.readers.is_present());
        for number in 0..=BACKLOG {
            stream.send(number.to_string().as_bytes()).await.unwrap();
        }
        assert!(!stream.readers.is_present());
        assert_eq!(next(&reader).await, None);
        drop(reader);
        let count = drain(&stream.attach()).len();
        assert_eq!(count as u64, BACKLOG + 1);
    }

    #[test]
    fn one_reader_after_another_is_one_audience() {
        let stream = stream(1);
        let first = stream.attach();
        let second = stream.attach();
        drop(first);
        assert!(stream.readers.is_present());
        drop(second);
        assert!(!stream.readers.is_present());
    }

    #[test]
    fn a_reader_that_is_offered_too_much_loses_the_stream_but_no_event() {
        let stream = stream(1);
        let reader = stream.attach();
        for number in 0..=BACKLOG {
            offer(&stream, number);
        }
        assert!(!stream.readers.is_present());
        assert_eq!(drain(&reader), Vec::<u64>::new());
        assert_eq!(
            drain(&stream.resume(0).unwrap()),
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
        let reader = stream.resume(0).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(event)) = reader.poll_event(&mut context) else {
            panic!("the newest event is always there");
        };
        assert!(event.starts_with(b"id: 1-6\n"));
    }

    #[test]
    fn a_large_event_is_handed_out_in_pieces() {
        let stream = stream(1);
        let reader = stream.attach();
        let message = vec![b'1'; 3 * PIECE];
        stream.offer(&message).unwrap();
        stream.finish([b"2".to_vec()]);
        let mut context = Context::from_waker(Waker::noop());
        let mut read = Vec::new();
        while let Poll::Ready(Some(piece)) = reader.poll_event(&mut context) {
            assert!(piece.len() <= PIECE);
            read.extend_from_slice(&piece);
        }
        let event = [
            b"id: 1-1\ndata: ",
            message.as_slice(),
            b"\n\nid: 1-2\ndata: 2\n\n",
        ];
        assert_eq!(read, event.concat());
        // One that was cut off in the middle of it gets it from its beginning.
        let resumed = stream.resume(0).unwrap();
        let Poll::Ready(Some(piece)) = resumed.poll_event(&mut context) else {
            panic!("there is something to read");
        };
        assert!(piece.starts_with(b"id: 1-1\n"));
    }

    #[tokio::test]
    async fn the_largest_that_is_not_read_goes_first_and_is_told() {
        let unread = UnreadBudget::new(3_200);
        let [small, large] = [1, 2].map(|number| within(&unread, number));
        small.finish([vec![b'1'; 500]]);
        large.finish([vec![b'2'; 2_000]]);
        tokio::time::sleep(READING).await;
        let read = within(&unread, 3);
        let reader = read.attach();
        read.offer(&vec![b'3'; 2_500]).unwrap();
        assert_eq!(drain_bytes(&reader), 2_500);
        // Only one was not read for a second and large enough.
        assert!(large.resume(0).is_none());
        assert!(small.resume(0).is_some());
        assert!(unread.held() < 3_500, "{}", unread.held());
        drop((small, large, read, reader));
        assert_eq!(unread.held(), 0);
    }

    #[tokio::test]
    async fn what_nobody_reads_goes_though_nothing_else_happens() {
        let unread = UnreadBudget::new(1_000);
        let streams = [1, 2, 3].map(|number| within(&unread, number));
        for stream in &streams {
            stream.finish([vec![b'1'; 700]]);
        }
        assert!(unread.held() > 2_000);
        let within_limit = async {
            while unread.held() > 1_000 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), within_limit)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn what_was_read_goes_before_what_was_not() {
        let unread = UnreadBudget::new(1_000);
        let stream = within(&unread, STANDALONE);
        let reader = stream.attach();
        stream.offer(&vec![b'1'; 600]).unwrap();
        assert_eq!(drain_bytes(&reader), 600);
        tokio::time::sleep(READING).await;
        stream.offer(&vec![b'2'; 600]).unwrap();
        // A reader that had nothing to read is not slow until it leaves this.
        assert!(unread.held() > 1_000);
        let given_up = async {
            while unread.held() > 1_000 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(READING * 20, given_up).await.unwrap();
        assert_eq!(drain_bytes(&reader), 600);
        assert!(stream.resume(0).is_none());
        assert!(stream.resume(1).is_some());
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
            let reader = stream.resume(position).unwrap();
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
                drain(&stream.resume(position).unwrap()),
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
