//! Two pipes, one message a line: one task reads, one writes, and calls meet their answers in a
//! table.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, BufWriter};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::greeted::Duplex;
use super::in_flight::{Cancel, cancellation};
use super::incoming::Incoming;
use super::pending::{Answer, Closed, Pending};
use super::preamble::Preamble;
use super::sorter::{Reply, Sorter};
use super::{CloseReason, RequestError};
use crate::lines::{Line, LineReader, LineWriter};

/// Messages that wait for the writer. A server that reads slowly makes its callers wait here.
const QUEUE: usize = 64;

/// How long a failed write waits for the reader to find out more: a program that ends at once
/// often says why on the way.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long closing waits for what is still queued.
const FLUSH: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Link {
    ids: AtomicU64,
    queue: mpsc::Sender<Vec<u8>>,
    pending: Arc<Pending>,
    /// Asks the writer to finish, and tells that it has.
    finish: CancellationToken,
    finished: CancellationToken,
}

struct Reader {
    sorter: Sorter<mpsc::Sender<Vec<u8>>>,
    preamble: Preamble,
}

// === impl Link ===

impl Link {
    pub(super) fn start<R, W>(
        reader: R,
        writer: W,
        line_limit: usize,
        incoming: Arc<Incoming>,
    ) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (queue, outgoing) = mpsc::channel(QUEUE);
        let pending = Arc::new(Pending::new(Closed::default()));
        let link = Self {
            ids: AtomicU64::new(1),
            queue: queue.clone(),
            pending: Arc::clone(&pending),
            finish: CancellationToken::new(),
            finished: CancellationToken::new(),
        };
        let gone = incoming.gone().clone();
        tokio::spawn({
            let (gone, pending) = (gone.clone(), Arc::clone(&pending));
            let (finish, finished) = (link.finish.clone(), link.finished.clone().drop_guard());
            async move {
                let writing = gone.run_until_cancelled(write(writer, outgoing, finish));
                if let Some(Err(error)) = writing.await {
                    let _ = tokio::time::timeout(LAST_WORDS, pending.closed().wait()).await;
                    pending.close(CloseReason::Write(error));
                }
                drop(finished);
            }
        });
        tokio::spawn(async move {
            let mut reading = Reader {
                sorter: Sorter {
                    pending: Arc::clone(&pending),
                    incoming,
                    reply: queue,
                },
                preamble: Preamble::default(),
            };
            let lines = LineReader::ending_at_the_limit(reader, line_limit);
            if let Some(reason) = gone.run_until_cancelled(reading.run(lines)).await {
                pending.close(reason);
            }
        });
        link
    }

    /// Stops waiting for an answer, without a word to the server.
    pub(super) fn forget(&self, id: u64) {
        self.pending.forget(id);
    }

    pub(super) fn closed(&self) -> &Closed {
        self.pending.closed()
    }

    /// Fails every call, and says no more to the server.
    pub(super) fn abandon(&self, reason: CloseReason) {
        self.pending.close(reason);
        self.finish.cancel();
    }

    /// Ends the server's input, which is how it is asked to exit. What it still writes is read.
    pub(super) async fn close(&self) {
        self.pending.close(CloseReason::Requested);
        self.finish.cancel();
        let _ = tokio::time::timeout(FLUSH, self.finished.cancelled()).await;
    }

    async fn room(&self) -> Result<mpsc::Permit<'_, Vec<u8>>, RequestError> {
        tokio::select! {
            biased;
            reason = self.pending.closed().wait() => Err(RequestError::NotSent(Arc::clone(reason))),
            room = self.queue.reserve() => room.map_err(|_| RequestError::NotSent(self.why())),
        }
    }

    /// Why the connection is gone.
    fn why(&self) -> Arc<CloseReason> {
        match self.pending.closed().get() {
            Some(reason) => Arc::clone(reason),
            // The tasks were stopped because the last client went away.
            None => Arc::new(CloseReason::Requested),
        }
    }
}

impl Duplex for Link {
    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    async fn call(&self, id: u64, message: Vec<u8>) -> Answer {
        // Room in the queue first: whatever is registered has then been sent.
        let room = self.room().await?;
        let waiting = self.pending.register(id)?;
        room.send(message);
        waiting
            .await
            .unwrap_or_else(|_| Err(RequestError::Closed(self.why())))
    }

    async fn send(&self, message: Vec<u8>) -> Result<(), RequestError> {
        self.room().await?.send(message);
        Ok(())
    }
}

impl Cancel for Link {
    /// Gives up a call, and tells the server unless it never heard of it.
    fn cancel(&self, id: u64, reason: &str) {
        if !self.pending.forget(id) {
            return;
        }
        let Err(mpsc::error::TrySendError::Full(message)) =
            self.queue.try_send(cancellation(id, reason))
        else {
            return;
        };
        let queue = self.queue.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { queue.send(message).await });
        }
    }
}

impl Reply for mpsc::Sender<Vec<u8>> {
    async fn reply(self, message: Vec<u8>) {
        // Fails only when the connection is gone, and with it the server that asked.
        let _ = self.send(message).await;
    }
}

/// Writes what is queued, several messages with one flush, until the connection is to be closed.
async fn write<W: AsyncWrite + Unpin>(
    writer: W,
    mut queue: mpsc::Receiver<Vec<u8>>,
    finish: CancellationToken,
) -> io::Result<()> {
    let mut writer = LineWriter::new(BufWriter::with_capacity(64 * 1024, writer));
    loop {
        let first = tokio::select! {
            biased;
            message = queue.recv() => message,
            () = finish.cancelled() => None,
        };
        let Some(first) = first else {
            return writer.shutdown().await;
        };
        writer.write(first).await?;
        while let Ok(next) = queue.try_recv() {
            writer.write(next).await?;
        }
        writer.flush().await?;
    }
}

// === impl Reader ===

impl Reader {
    async fn run<R: AsyncRead + Unpin>(&mut self, mut lines: LineReader<R>) -> CloseReason {
        loop {
            match lines.next().await {
                Ok(Some(Line::Oversized { .. })) => {
                    let limit = lines.limit();
                    return CloseReason::Oversized { limit };
                }
                Ok(Some(Line::Text(text))) => {
                    self.sorter.incoming.hear();
                    if !self.text(text) {
                        return CloseReason::NotMcp {
                            output: self.preamble.take_output(),
                        };
                    }
                }
                Ok(None) => {
                    return CloseReason::Ended {
                        output: self.preamble.take_output(),
                    };
                }
                Err(error) => return CloseReason::Read(error),
            }
        }
    }

    /// Takes a line. Whether it makes sense to read on.
    fn text(&mut self, text: &[u8]) -> bool {
        if !self.sorter.frame(text) {
            return self.preamble.skip(text);
        }
        self.preamble.end();
        true
    }
}
