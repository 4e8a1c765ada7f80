//! Newline-framed JSON-RPC over any pair of pipes: one client, of either era.

mod lines;
mod modern;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::lines::Lines;
use super::modern::Parking;
use super::service::Service;
use crate::asked_call;
use crate::lines::{Line, LineReader, LineWriter};

/// Messages that may wait for a client that does not read.
const WRITE_QUEUE: usize = 64;

#[derive(Debug, Clone)]
pub struct LineOptions {
    /// The longest message that is accepted.
    pub line_limit: usize,
    /// Requests that may be unanswered; a further one is refused.
    pub max_calls: usize,
    /// How long calls may go on after the client closed its end.
    pub grace: Duration,
    /// Goes into [`Connection::extensions`](super::Connection::extensions).
    pub extensions: http::Extensions,
    /// The calls of a modern client that wait for its input.
    pub parking: Parking,
    /// How many bytes a client may say about itself: its capabilities and its info.
    pub session_bytes: usize,
}

/// Why serving ended before the client closed its end.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    #[error("reading from the client failed")]
    Read(#[source] io::Error),
    #[error("writing to the client failed")]
    Write(#[source] io::Error),
}

/// Serves one client until it closes its end, then lets the calls that run finish.
///
/// Nothing but JSON-RPC is written. Dropping the future ends the session at once.
pub async fn serve_lines<S, R, W>(
    service: Arc<S>,
    reader: R,
    writer: W,
    options: LineOptions,
) -> Result<(), LinesError>
where
    S: Service,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (pipe, queue) = mpsc::channel(WRITE_QUEUE);
    let done = CancellationToken::new();
    let mut writing =
        AbortOnDropHandle::new(tokio::spawn(write_lines(queue, writer, done.clone())));
    let mut lines = LineReader::new(reader, options.line_limit);
    let mut server = Lines::new(service, pipe, &options);
    loop {
        let line = tokio::select! {
            line = lines.next() => line.map_err(LinesError::Read)?,
            written = &mut writing => return finished(written),
        };
        match line {
            None => break,
            Some(Line::Text(text)) => server.line(text).await,
            Some(Line::Oversized { bytes, head, tail }) => {
                let id = asked_call(head, tail);
                server.oversized(id, bytes, options.line_limit).await;
            }
        }
    }
    server.finish_calls(options.grace).await;
    drop(server);
    done.cancel();
    match timeout(options.grace, &mut writing).await {
        Ok(written) => finished(written),
        // The client closed one end and stopped reading from the other.
        Err(_) => Ok(()),
    }
}

/// Writes what is queued until told that no more will come.
async fn write_lines<W: AsyncWrite + Unpin>(
    mut queue: mpsc::Receiver<Vec<u8>>,
    writer: W,
    done: CancellationToken,
) -> io::Result<()> {
    let mut writer = LineWriter::new(writer);
    loop {
        let message = tokio::select! {
            biased;
            message = queue.recv() => message,
            () = done.cancelled(), if !queue.is_closed() => {
                // A service may keep its handle to the client; it must not keep the pipe open.
                queue.close();
                continue;
            }
        };
        let Some(message) = message else {
            break;
        };
        writer.write(message).await?;
        while let Ok(message) = queue.try_recv() {
            writer.write(message).await?;
        }
        writer.flush().await?;
    }
    writer.shutdown().await
}

fn finished(written: Result<io::Result<()>, JoinError>) -> Result<(), LinesError> {
    written
        .unwrap_or_else(|join| Err(io::Error::other(join)))
        .map_err(LinesError::Write)
}

// === impl LineOptions ===

impl Default for LineOptions {
    fn default() -> Self {
        Self {
            line_limit: 4 * 1024 * 1024,
            max_calls: 64,
            grace: Duration::from_secs(5),
            extensions: http::Extensions::new(),
            parking: Parking::default(),
            session_bytes: 64 * 1024,
        }
    }
}
