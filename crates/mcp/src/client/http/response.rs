//! A response whose body is read from its connection as it comes.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{CONTENT_TYPE, HeaderMap};
use http::{StatusCode, response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use url::Url;

use super::pool::{Connection, Pool};
use crate::client::TransportError;

/// How long the rest of a response may take that is only read to use the connection again.
const LATE_END: Duration = Duration::from_secs(1);

/// After a piece of a body this large, other tasks get their turn: the socket of a server that sends
/// without end is always ready, and one thread serves all calls.
const LARGE_PIECE: usize = 16 * 1024;

/// The media type of a body, without its parameters.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    EventStream,
    Json,
    Other(String),
}

#[derive(Debug)]
pub(in crate::client) struct Response {
    head: response::Parts,
    body: Incoming,
    /// None once the body has ended and the connection is back in the pool.
    connection: Option<Connection>,
    pool: Arc<Pool>,
    /// Where redirects have led.
    pub(super) redirected: Option<Box<Url>>,
}

impl Response {
    pub(super) fn new(
        response: http::Response<Incoming>,
        connection: Connection,
        pool: &Arc<Pool>,
    ) -> Self {
        let (head, body) = response.into_parts();
        let mut response = Self {
            head,
            body,
            connection: Some(connection),
            pool: Arc::clone(pool),
            redirected: None,
        };
        if response.body.is_end_stream() {
            response.release();
        }
        response
    }

    pub(in crate::client) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// What the body is said to be. A body of no type is JSON.
    pub(super) fn content(&self) -> Content {
        let value = self.headers().get(CONTENT_TYPE);
        let Some(value) = value.and_then(|value| value.to_str().ok()) else {
            return Content::Json;
        };
        let essence = value.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("text/event-stream") {
            Content::EventStream
        } else if essence.eq_ignore_ascii_case("application/json") {
            Content::Json
        } else {
            Content::Other(essence.to_ascii_lowercase())
        }
    }

    /// The length of the rest of the body, if it is known.
    pub(super) fn remaining(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next piece of the body, or `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, TransportError> {
        loop {
            match poll_fn(|context| self.poll_frame(context)).await {
                None => return Ok(None),
                Some(Err(error)) => return Err(TransportError::Broken(error)),
                Some(Ok(frame)) => {
                    // Trailers mean nothing here.
                    if let Ok(data) = frame.into_data() {
                        if data.len() >= LARGE_PIECE {
                            tokio::task::yield_now().await;
                        }
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Reads on to the end, where servers send it soon: only then can the connection be used again.
    pub(super) fn finish(mut self) {
        if self.connection.is_none() {
            return;
        }
        let mut finishing = Box::pin(async move { while let Ok(Some(_)) = self.chunk().await {} });
        if finishing.as_mut().now_or_never().is_none() {
            tokio::spawn(tokio::time::timeout(LATE_END, finishing));
        }
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_pending()
            && let Some(connection) = &mut self.connection
        {
            connection.drive(context);
            frame = Pin::new(&mut self.body).poll_frame(context);
        }
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.release();
        }
        frame
    }

    /// Gives the connection back, if the server keeps it open.
    fn release(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            if !connection.is_ready() {
                connection.drive(&mut Context::from_waker(Waker::noop()));
            }
            if connection.is_ready() {
                self.pool.put(connection);
            }
        }
    }
}
