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

/// A comment, which clients skip; it shows either side that the other is still there.
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

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
            return Poll::Ready(event.map(|event| Ok(Frame::data(event))));
        }
        if this.keep_alive.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let next = Instant::now() + this.interval;
        this.keep_alive.as_mut().reset(next);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(KEEP_ALIVE)))))
    }
}
