//! The client of a stdio server that it started itself. Several callers share the one pipe.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, oneshot};

/// Callers that wait for an answer, in the order of their requests: the echo upstream answers in
/// that order, so this client need not read the id of a message to know whose it is.
type Callers = Arc<BlockingMutex<VecDeque<oneshot::Sender<Bytes>>>>;

/// Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct StdioServer {
    stdin: Mutex<ChildStdin>,
    callers: Callers,
    _child: Child,
}

impl StdioServer {
    #[expect(
        clippy::disallowed_methods,
        reason = "what is measured must not share a process with the measurement"
    )]
    pub(crate) fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("echo-stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().context("no stdout")?;
        let callers = Callers::default();
        tokio::spawn(read(stdout, Arc::clone(&callers)));
        Ok(Self {
            stdin: Mutex::new(child.stdin.take().context("no stdin")?),
            callers,
            _child: child,
        })
    }

    pub(super) async fn post(&self, mut message: String) -> Result<Bytes> {
        message.push('\n');
        let (sender, receiver) = oneshot::channel();
        let mut stdin = self.stdin.lock().await;
        self.callers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(sender);
        stdin.write_all(message.as_bytes()).await?;
        drop(stdin);
        receiver.await.context("the server ended")
    }
}

async fn read(stdout: ChildStdout, callers: Callers) -> Result<()> {
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line).await? > 0 {
        line.pop();
        let caller = callers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        // A caller that is gone misses nothing.
        let _ = caller.context("an answer to nothing")?.send(line.into());
        line = Vec::new();
    }
    callers
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
    Ok(())
}
