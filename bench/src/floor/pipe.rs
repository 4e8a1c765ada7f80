//! An upstream of the floor over two pipes.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use super::{Answer, encode_call};

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Box<RawValue>>>>>;

pub(super) struct Pipe {
    ids: AtomicU64,
    queue: mpsc::Sender<Vec<u8>>,
    waiting: Waiting,
    /// Ended with the pipe; it also ends by itself when its stdin does.
    _child: Child,
}

impl Pipe {
    #[expect(
        clippy::disallowed_methods,
        reason = "the floor has no supervisor; its child ends with its stdin"
    )]
    pub(super) fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("echo-stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().context("no stdin")?;
        let stdout = child.stdout.take().context("no stdout")?;
        let (queue, outgoing) = mpsc::channel(64);
        let waiting = Waiting::default();
        tokio::spawn(write(stdin, outgoing));
        tokio::spawn(read(stdout, Arc::clone(&waiting)));
        Ok(Self {
            ids: AtomicU64::new(1),
            queue,
            waiting,
            _child: child,
        })
    }

    pub(super) async fn call(&self, tool: &str, arguments: &RawValue) -> Result<Box<RawValue>> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let mut message = encode_call(id, tool, arguments);
        message.push(b'\n');
        let (sender, receiver) = oneshot::channel();
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, sender);
        self.queue.send(message).await?;
        Ok(receiver.await?)
    }
}

async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Vec<u8>>) -> Result<()> {
    while let Some(message) = queue.recv().await {
        stdin.write_all(&message).await?;
    }
    Ok(())
}

async fn read(stdout: ChildStdout, waiting: Waiting) -> Result<()> {
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line).await? > 0 {
        let answer: Answer<'_> = serde_json::from_slice(&line)?;
        let call = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&answer.id);
        if let Some(call) = call {
            // A caller that is gone misses nothing.
            let _ = call.send(answer.result.to_owned());
        }
        line.clear();
    }
    Ok(())
}
