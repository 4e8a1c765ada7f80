//! A response body that something lives and ends with.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// Dropping the body, be it at its end or because the client hung up, drops what is tied to it.
#[derive(Debug)]
pub(super) struct Tied<B, T> {
    body: B,
    _tied: T,
}

impl<B, T> Tied<B, T> {
    pub(super) fn new(body: B, tied: T) -> Self {
        Self { body, _tied: tied }
    }
}

impl<B: Body + Unpin, T: Unpin> Body for Tied<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
