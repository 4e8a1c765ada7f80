//! The body of an SSE response: follows an event stream and keeps the connection alive meanwhile.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep};

use super::stream::EventStream;
use crate::sse::encode_retry;

/// A comment line, which clients skip; it shows either side that the other is still there. Without a
/// blank line: some clients (httpx-sse 0.4) dispatch an empty event for each blank line that comes
/// after an event with an id.
const KEEP_ALIVE: &[u8] = b":\n";

/// The one reader of an event stream. Dropping it leaves the stream to a client that resumes it.
#[derive(Debug)]
pub(super) struct EventReader {
    stream: Arc<EventStream>,
    reader: u64,
}

#[derive(Debug)]
pub(super) struct EventBody {
    reader: EventReader,
    priming: Option<Bytes>,
    /// What the client is told before the stream is closed early: when to resume it.
    retry: Option<Duration>,
    /// Whether the last frame ended within an event.
    mid_event: bool,
    interval: Duration,
    keep_alive: Pin<Box<Sleep>>,
}

// === impl EventReader ===

impl EventReader {
    pub(super) fn new(stream: Arc<EventStream>, reader: u64) -> Self {
        Self { stream, reader }
    }

    pub(super) fn stream(&self) -> &Arc<EventStream> {
        &self.stream
    }

    pub(super) fn poll_event(&self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.stream.poll_event(self.reader, context)
    }

    /// Waits until there is anything to read.
    pub(super) async fn opened(&self) {
        poll_fn(|context| self.stream.poll_opened(context)).await;
    }

    pub(super) fn into_body(self, priming: Option<Bytes>, interval: Duration) -> EventBody {
        EventBody {
            reader: self,
            priming,
            retry: None,
            mid_event: false,
            interval,
            keep_alive: Box::pin(sleep(interval)),
        }
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        self.stream.detach(self.reader);
    }
}

// === impl EventBody ===

impl EventBody {
    /// Has the client told when to resume, if the server closes the stream before its end.
    ///
    /// Not at the beginning of the stream: Java SDK clients fail on a `retry` field.
    pub(super) fn retry_after(mut self, retry: Duration) -> Self {
        self.retry = Some(retry);
        self
    }

    fn last_frame(&mut self) -> Option<Bytes> {
        let retry = self.retry.take()?;
        let resumable = !self.mid_event && self.reader.stream.is_open_without_reader();
        resumable.then(|| encode_retry(retry))
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if let Some(priming) = this.priming.take() {
            return Poll::Ready(Some(Ok(Frame::data(priming))));
        }
        if let Poll::Ready(event) = this.reader.poll_event(context) {
            if let Some(event) = &event {
                this.mid_event = !event.ends_with(b"\n\n");
            }
            let frame = event.or_else(|| this.last_frame());
            return Poll::Ready(frame.map(|frame| Ok(Frame::data(frame))));
        }
        if this.keep_alive.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let next = Instant::now() + this.interval;
        this.keep_alive.as_mut().reset(next);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(KEEP_ALIVE)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::http::event_log::{BACKLOG, PIECE};
    use crate::server::http::readers::Readers;
    use crate::server::http::unread::UnreadBudget;
    use std::task::Waker;

    fn stream() -> Arc<EventStream> {
        let unread = UnreadBudget::new(usize::MAX);
        EventStream::new(1, Readers::new(Duration::ZERO, unread))
    }

    fn body(stream: &Arc<EventStream>) -> EventBody {
        let body = stream.attach().into_body(None, Duration::from_mins(1));
        body.retry_after(Duration::from_secs(1))
    }

    /// The text that the body gives before it ends or waits.
    fn read(body: &mut EventBody) -> String {
        let mut context = Context::from_waker(Waker::noop());
        let mut text = String::new();
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut *body).poll_frame(&mut context) {
            text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
        }
        text
    }

    #[tokio::test]
    async fn a_stream_that_is_closed_early_says_when_to_resume_it() {
        let stream = stream();
        let mut body = body(&stream);
        stream.offer(b"a").unwrap();
        assert_eq!(read(&mut body), "id: 1-1\ndata: a\n\n");
        for _ in 0..=BACKLOG {
            stream.offer(b"b").unwrap();
        }
        assert_eq!(read(&mut body), "retry: 1000\n\n");
    }

    #[tokio::test]
    async fn a_stream_that_ends_or_is_taken_over_says_nothing() {
        let finished = stream();
        let mut reading = body(&finished);
        finished.finish([b"a".to_vec()]);
        assert_eq!(read(&mut reading), "id: 1-1\ndata: a\n\n");
        let taken_over = stream();
        let mut first = body(&taken_over);
        let _second = body(&taken_over);
        assert_eq!(read(&mut first), "");
    }

    #[tokio::test]
    async fn an_event_that_was_cut_off_stays_cut_off() {
        let stream = stream();
        let mut body = body(&stream);
        stream.offer(&vec![b'a'; 2 * PIECE]).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
        for _ in 0..=BACKLOG {
            stream.offer(b"b").unwrap();
        }
        assert_eq!(read(&mut body), "");
    }
}
