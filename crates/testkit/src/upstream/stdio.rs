//! The scripted upstream as a program that is spoken to over stdin and stdout.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{broadcast, mpsc};
use tokio::task::AbortHandle;

use super::engine::{End, Engine, Line, Message};
use super::record::Record;
use super::script::{Script, Start};

/// Nothing a test starts outlives it for long, however badly the test goes.
pub(super) const LIFETIME: Duration = Duration::from_mins(5);

/// A script in a folder of the test, ready to be put into a config.
#[derive(Debug, Clone)]
pub struct StdioUpstream {
    program: PathBuf,
    script: PathBuf,
    record: PathBuf,
}

/// The requests under way, by the text of their ids.
type UnderWay = Arc<Mutex<HashMap<String, AbortHandle>>>;

impl StdioUpstream {
    /// Puts `script` into `folder` under `name`, to be run by `program`.
    pub fn place(program: &Path, folder: &Path, name: &str, script: &Script) -> Self {
        let upstream = Self {
            program: program.to_owned(),
            script: folder.join(format!("{name}.script.json")),
            record: folder.join(format!("{name}.record.jsonl")),
        };
        let text = serde_json::to_vec(script).expect("a script can be written");
        std::fs::write(&upstream.script, text).expect("the script can be written");
        upstream
    }

    /// The entry for `mcpServers`.
    pub fn config(&self) -> Value {
        json!({"command": self.program, "args": [self.script, self.record]})
    }

    /// The entry for `mcpServers`, with more members.
    pub fn config_with(&self, more: &Value) -> Value {
        let mut config = self.config();
        let members = config.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        config
    }

    pub fn record(&self) -> Record {
        Record::at(&self.record)
    }
}

/// Runs a script over stdin and stdout until stdin ends; returns the exit code.
pub async fn serve(script: &Path, record: &Path) -> anyhow::Result<i32> {
    serve_script(serde_json::from_slice(&std::fs::read(script)?)?, record).await
}

/// Like [`serve`], with a script that is in no file.
pub async fn serve_script(script: Script, record: &Path) -> anyhow::Result<i32> {
    let lifetime = script
        .lifetime_seconds
        .map_or(LIFETIME, Duration::from_secs);
    tokio::select! {
        code = run(Arc::new(Engine::new(script, record))) => code,
        () = tokio::time::sleep(lifetime) => Ok(124),
    }
}

async fn run(engine: Arc<Engine>) -> anyhow::Result<i32> {
    let Start {
        banner,
        stderr_mebibytes,
        exit_code,
        boot_ms,
        stderr_flood,
        ..
    } = &engine.script.start;
    let signals = signal(SignalKind::terminate())?;
    let mut stdout = tokio::io::stdout();
    for line in banner {
        stdout.write_all(format!("{line}\n").as_bytes()).await?;
    }
    stdout.flush().await?;
    for line in &engine.script.start.stderr {
        tokio::io::stderr()
            .write_all(format!("{line}\n").as_bytes())
            .await?;
    }
    flood_stderr(*stderr_mebibytes).await?;
    let grandchild = spawn_grandchild(&engine.script.start)?;
    engine.recorder.started(grandchild);
    if let Some(code) = exit_code {
        return Ok(*code);
    }
    if *stderr_flood {
        tokio::spawn(flood_stderr(usize::MAX >> 10));
    }
    tokio::time::sleep(Duration::from_millis(*boot_ms)).await;
    let (lines, to_write) = mpsc::channel(64);
    let (ends, mut end) = mpsc::channel(1);
    tokio::spawn(write(to_write, engine.announcements.subscribe()));
    tokio::select! {
        end = end.recv() => match end {
            Some(End::Exit(code)) => Ok(code),
            Some(End::Freeze) => freeze().await,
            Some(End::Crash) | None => std::process::abort(),
        },
        () = engine.storm() => Ok(0),
        read = read(&engine, lines, ends) => read.map(|()| 0),
        () = asked_to_stop(signals, engine.script.stubborn) => Ok(0),
    }
}

async fn read(
    engine: &Arc<Engine>,
    lines: mpsc::Sender<Line>,
    ends: mpsc::Sender<End>,
) -> anyhow::Result<()> {
    let under_way = UnderWay::default();
    let mut stdin = BufReader::new(tokio::io::stdin()).lines();
    while let Some(text) = stdin.next_line().await? {
        let Some(message) = engine.receive(&text) else {
            continue;
        };
        cancel(&under_way, &message);
        let id = message.id.as_ref().map(ToString::to_string);
        let (engine, lines, ends) = (engine.clone(), lines.clone(), ends.clone());
        let task = tokio::spawn(async move {
            if let Some(end) = engine.respond(&message, &lines).await {
                let _ = ends.send(end).await;
            }
        });
        if let Some(id) = id {
            let mut under_way = under_way.lock().expect("the requests under way");
            under_way.insert(id, task.abort_handle());
        }
    }
    if engine.script.stubborn {
        std::future::pending::<()>().await;
    }
    Ok(())
}

fn cancel(under_way: &UnderWay, message: &Message) {
    if message.method.as_deref() != Some("notifications/cancelled") {
        return;
    }
    let params = message.params.as_ref().map(ToString::to_string);
    let params: Value = serde_json::from_str(&params.unwrap_or_default()).unwrap_or_default();
    let mut under_way = under_way.lock().expect("the requests under way");
    if let Some(task) = under_way.remove(&params["requestId"].to_string()) {
        task.abort();
    }
}

async fn write(mut lines: mpsc::Receiver<Line>, mut announcements: broadcast::Receiver<String>) {
    let mut stdout = tokio::io::stdout();
    loop {
        let bytes = tokio::select! {
            line = lines.recv() => match line {
                Some(Line::Aside(text) | Line::Answer(text)) => format!("{text}\n").into_bytes(),
                Some(Line::Raw(bytes)) => bytes,
                Some(Line::Half(text)) => text.into_bytes(),
                None => return,
            },
            announcement = announcements.recv() => match announcement {
                Ok(text) => format!("{text}\n").into_bytes(),
                // More were announced than could be written.
                Err(_) => continue,
            },
        };
        if stdout.write_all(&bytes).await.is_err() || stdout.flush().await.is_err() {
            return;
        }
    }
}

async fn flood_stderr(mebibytes: usize) -> anyhow::Result<()> {
    let mut stderr = tokio::io::stderr();
    let line = format!("{}\n", "noise ".repeat(170));
    for _ in 0..mebibytes << 10 {
        stderr.write_all(line.as_bytes()).await?;
    }
    stderr.flush().await?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests are about processes that nobody supervises"
)]
fn spawn_grandchild(start: &Start) -> anyhow::Result<Option<u32>> {
    if !start.grandchild {
        return Ok(None);
    }
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command
        .arg("--wait")
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    if start.grandchild_leaves_group {
        command.arg("--leave-group");
    }
    if !start.grandchild_holds_stdout {
        command.stdout(Stdio::null());
    }
    let mut child = command.spawn()?;
    // It says when it no longer minds being asked to stop.
    let stderr = child.stderr.take().context("stderr is piped")?;
    std::io::BufReader::new(stderr).read_line(&mut String::new())?;
    Ok(Some(child.id()))
}

/// Stops the process as SIGSTOP does; it goes on when it gets SIGCONT.
async fn freeze() -> anyhow::Result<i32> {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
    std::future::pending().await
}

/// Waits for SIGTERM; for ever when it is to be ignored.
async fn asked_to_stop(mut signals: Signal, stubborn: bool) {
    while signals.recv().await.is_some() {
        if !stubborn {
            return;
        }
    }
}

/// What a grandchild does: nothing, whatever it is told short of SIGKILL.
pub async fn wait_for_ever(leave_group: bool) -> anyhow::Result<()> {
    let signals = signal(SignalKind::terminate())?;
    if leave_group {
        rustix::process::setsid()?;
    }
    let mut stderr = tokio::io::stderr();
    stderr.write_all(b"waiting\n").await?;
    stderr.flush().await?;
    tokio::select! {
        () = asked_to_stop(signals, true) => (),
        () = tokio::time::sleep(LIFETIME) => (),
    }
    Ok(())
}
