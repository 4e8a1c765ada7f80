//! What an event stream keeps: the events that its reader has yet to get, and some before them for
//! a client that lost its connection.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use tokio::time::Instant;

use super::stream::EventId;
use crate::sse::encode_event;

/// How many events a reader may be behind before writers wait for it.
pub(super) const BACKLOG: u64 = 64;
/// What is kept of one stream for a reader that comes back.
pub(super) const KEPT_EVENTS: usize = 256;
pub(super) const KEPT_BYTES: usize = 1024 * 1024;
/// Larger events are handed out in copies of this size, so that a connection that has yet to write
/// one does not keep the whole.
pub(super) const PIECE: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Log {
    pub(super) events: VecDeque<Bytes>,
    /// The position of the first event that is still in the log.
    pub(super) first: u64,
    pub(super) bytes: usize,
    /// The position that the reader gets next, or that a new reader without a position starts at.
    pub(super) cursor: u64,
    /// How much of the event at the cursor the reader has got.
    pub(super) offset: usize,
    /// When the reader last took something, or there was first something to take.
    pub(super) unread_since: Instant,
    /// Up to this position events were given up because too much was held for all clients.
    pub(super) lost: u64,
    /// The reader that the stream belongs to. A later one takes it over.
    pub(super) reader: Option<u64>,
    pub(super) readers: u64,
    pub(super) waker: Option<Waker>,
    pub(super) finished: Option<Instant>,
}

// === impl Log ===

impl Log {
    pub(super) fn new() -> Self {
        Self {
            events: VecDeque::new(),
            first: 0,
            bytes: 0,
            cursor: 0,
            offset: 0,
            unread_since: Instant::now(),
            lost: 0,
            reader: None,
            readers: 0,
            waker: None,
            finished: None,
        }
    }

    /// The position that the next event will have.
    pub(super) fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The reader, if it has too much before it to be given more.
    pub(super) fn slow_reader(&mut self) -> Option<u64> {
        // After this the log is too large only if the reader has yet to get what makes it so.
        self.trim();
        let backlog = self.next() - self.cursor;
        let too_large = backlog > 0 && self.bytes > KEPT_BYTES;
        self.reader.filter(|_| backlog >= BACKLOG || too_large)
    }

    pub(super) fn push(&mut self, stream: Option<u64>, message: &[u8]) {
        let position = self.next() + 1;
        let id = stream.map(|stream| EventId { stream, position }.to_string());
        let event = encode_event(id.as_deref(), message);
        if self.cursor == self.next() {
            self.unread_since = Instant::now();
        }
        self.bytes += event.len();
        self.events.push_back(event);
        self.trim();
        self.wake();
    }

    /// Forgets the oldest events, but none that a present reader has yet to get, and never the
    /// newest: that may be the answer.
    pub(super) fn trim(&mut self) {
        while self.events.len() > 1
            && (self.events.len() > KEPT_EVENTS || self.bytes > KEPT_BYTES)
            && (self.reader.is_none() || self.first < self.cursor)
        {
            self.forget_first();
        }
        self.cursor = self.cursor.max(self.first);
    }

    pub(super) fn forget_first(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.bytes -= event.len();
            self.first += 1;
        }
    }

    /// Forgets the events that a reader has got, so that none can be resumed from before them;
    /// whether there were any.
    pub(super) fn give_up_read(&mut self) -> bool {
        let before = self.first;
        while self.first < self.cursor {
            self.forget_first();
        }
        self.lost = self.first;
        self.first > before
    }

    pub(super) fn give_up_unread(&mut self) {
        self.first = self.next();
        self.cursor = self.first;
        self.lost = self.first;
        self.events = VecDeque::new();
        self.bytes = 0;
    }

    /// The next event, or a piece of it if it is large.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        let index = usize::try_from(self.cursor - self.first).ok()?;
        let event = self.events.get(index)?;
        let end = event.len().min(self.offset + PIECE);
        let piece = if event.len() <= PIECE {
            event.clone()
        } else {
            Bytes::copy_from_slice(&event[self.offset..end])
        };
        if end == event.len() {
            self.cursor += 1;
            self.offset = 0;
        } else {
            self.offset = end;
        }
        self.unread_since = Instant::now();
        Some(piece)
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
