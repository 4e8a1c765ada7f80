//! A stream of events in an HTTP response, and the place in it to resume from.

use std::sync::Arc;
use std::time::Duration;

use super::response::Response;
use super::wire::Wire;
use crate::client::RequestError;
use crate::sse::{Event, EventParser};

/// How long to wait before a stream is taken up again, unless the server says.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);

/// Bounds for what a server may ask for: not so often that it is a burden, not so rarely that the
/// stream is as good as dead.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);
const LONGEST_RETRY: Duration = Duration::from_mins(5);

/// How often in a row a stream is taken up again without a single event coming of it.
const FRUITLESS_ATTEMPTS: u32 = 30;

#[derive(Debug)]
pub(super) struct EventStream {
    wire: Arc<Wire>,
    response: Response,
    parser: EventParser,
}

/// How far a stream has been read.
#[derive(Debug, Default)]
pub(super) struct Position {
    last_event_id: Option<String>,
    retry: Option<Duration>,
    fruitless: u32,
}

impl EventStream {
    pub(super) fn new(wire: &Arc<Wire>, response: Response) -> Self {
        Self {
            wire: Arc::clone(wire),
            response,
            parser: EventParser::new(wire.body_limit),
        }
    }

    /// The next event, or `None` at the end of the stream. After one that is over the limit there
    /// is none.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, RequestError> {
        loop {
            if let Some(event) = self.parser.next_event() {
                return Ok(Some(event?));
            }
            // Its end may never come.
            if let Some(too_large) = self.parser.overflow() {
                return Err(too_large.into());
            }
            match self.response.chunk().await? {
                Some(chunk) => {
                    self.wire.incoming.hear();
                    self.parser.push(&chunk);
                }
                None => return Ok(None),
            }
        }
    }

    pub(super) fn finish(self) {
        self.response.finish();
    }
}

impl Position {
    pub(super) fn advance(&mut self, event: &Event) {
        self.fruitless = 0;
        if let Some(id) = &event.id {
            self.last_event_id = (!id.is_empty()).then(|| id.clone());
        }
        if let Some(retry) = event.retry {
            self.retry = Some(retry.clamp(SHORTEST_RETRY, LONGEST_RETRY));
        }
    }

    /// Whether it makes sense to take up the stream once more; counts as an attempt.
    pub(super) fn try_again(&mut self) -> bool {
        self.fruitless += 1;
        self.last_event_id.is_some() && self.fruitless <= FRUITLESS_ATTEMPTS
    }

    pub(super) fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    pub(super) fn retry(&self) -> Duration {
        self.retry.unwrap_or(DEFAULT_RETRY)
    }
}
