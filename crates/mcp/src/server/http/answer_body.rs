//! The body of a large plain answer: handed out in pieces, and counted until it is read.

use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::event_log::PIECE;
use super::unread::{Holder, Share, UnreadBudget};
use crate::server::lock::lock;

/// Its client gets no more of it; the connection ends.
#[derive(Debug, thiserror::Error)]
#[error("the answer was given up: too much is held for clients that do not read")]
pub(super) struct GivenUp;

#[derive(Debug)]
pub(super) struct AnswerBody(Arc<Answer>);

#[derive(Debug)]
struct Answer {
    share: Share,
    rest: Mutex<Rest>,
}

#[derive(Debug)]
struct Rest {
    message: Vec<u8>,
    offset: usize,
    last_read: Instant,
    given_up: bool,
}

impl AnswerBody {
    pub(super) fn new(message: Vec<u8>, budget: &Arc<UnreadBudget>) -> Self {
        let share = Share::new(Arc::clone(budget));
        share.set(message.len());
        let answer = Arc::new(Answer {
            share,
            rest: Mutex::new(Rest {
                message,
                offset: 0,
                last_read: Instant::now(),
                given_up: false,
            }),
        });
        let holder: Weak<Answer> = Arc::downgrade(&answer);
        answer.share.settle(&holder);
        Self(answer)
    }
}

impl Holder for Answer {
    fn bytes(&self) -> usize {
        self.share.bytes()
    }

    fn last_read(&self) -> Instant {
        lock(&self.rest).last_read
    }

    fn give_up(&self) {
        let mut rest = lock(&self.rest);
        rest.given_up = true;
        rest.message = Vec::new();
        self.share.set(0);
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = GivenUp;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GivenUp>>> {
        let mut rest = lock(&self.0.rest);
        if rest.given_up {
            return Poll::Ready(Some(Err(GivenUp)));
        }
        let piece = rest.message.get(rest.offset..).unwrap_or_default();
        if piece.is_empty() {
            return Poll::Ready(None);
        }
        // A copy, so that what the connection has yet to write does not keep the whole.
        let piece = Bytes::copy_from_slice(&piece[..piece.len().min(PIECE)]);
        rest.offset += piece.len();
        rest.last_read = Instant::now();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        let rest = lock(&self.0.rest);
        !rest.given_up && rest.offset == rest.message.len()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = lock(&self.0.rest);
        SizeHint::with_exact(rest.message.len().saturating_sub(rest.offset) as u64)
    }
}
