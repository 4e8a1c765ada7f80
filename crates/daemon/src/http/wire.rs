//! The stream and the bodies of one connection, which note every progress the client makes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::connections::Entry;

/// A stream that can be given up together with what the system still has to send on it.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    fn reset(&self) {}
}

/// The bytes of one connection.
#[derive(Debug)]
pub(super) struct WatchedStream<S: Stream> {
    stream: S,
    entry: Arc<Entry>,
}

/// The body of a request as it arrives.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    entry: Arc<Entry>,
}

/// The body of an answer as it is taken over by the connection.
#[derive(Debug)]
pub(super) struct ResponseBody {
    body: Body,
    entry: Arc<Entry>,
}

// === impl Stream ===

impl Stream for TcpStream {
    fn reset(&self) {
        // Without this the system would keep what the client did not read, for minutes.
        if let Err(error) = self.set_zero_linger() {
            tracing::debug!(%error, "SO_LINGER not set");
        }
    }
}

impl Stream for UnixStream {}

// === impl WatchedStream ===

impl<S: Stream> WatchedStream<S> {
    pub(super) fn new(stream: S, entry: Arc<Entry>) -> Self {
        Self { stream, entry }
    }

    /// Notes whether the client took something.
    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => self.entry.written(*bytes),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.entry.stalled(),
        }
        written
    }
}

impl<S: Stream> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.entry.connection().read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        // The connection flushes the stream when it has nothing left to write.
        self.entry.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: Stream> Drop for WatchedStream<S> {
    fn drop(&mut self) {
        if self.entry.is_stalled() {
            self.stream.reset();
        }
    }
}

// === impl RequestBody ===

impl RequestBody {
    pub(super) fn new(body: Incoming, entry: Arc<Entry>) -> Self {
        entry.connection().head_read(!body.is_end_stream());
        Self { body, entry }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_some() && !self.body.is_end_stream() {
            self.entry.connection().body_moved();
        } else {
            self.entry.connection().body_read();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.entry.connection().body_read();
    }
}

// === impl ResponseBody ===

impl ResponseBody {
    pub(super) fn new(body: Body, entry: Arc<Entry>) -> Self {
        Self { body, entry }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok());
        if let Some(data) = data.and_then(Frame::data_ref) {
            self.entry.queued(data.len());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.entry.connection().answered();
    }
}
