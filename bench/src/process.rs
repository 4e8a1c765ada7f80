//! A process of the measurement: started with a home of its own, known by the address it prints,
//! and ended with the measurement.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::load::Endpoint;
use crate::session::MCP;

/// How long a process may take to print its address, and again to end.
const PATIENCE: Duration = Duration::from_mins(1);

/// Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) address: SocketAddr,
    child: Child,
    /// Kept open: our own subcommands end when it closes, and a pipe nobody reads breaks writers.
    _pipes: (Option<ChildStdin>, BufReader<ChildStdout>),
}

impl Process {
    #[expect(
        clippy::disallowed_methods,
        reason = "what is measured must not share a process with the measurement"
    )]
    pub(crate) async fn start(program: &Path, arguments: &[&str], home: &Path) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{name} {}", arguments.first().copied().unwrap_or_default());
        let log = home.join(format!("{name}.log"));
        let mut child = Command::new(program)
            .args(arguments)
            // Nothing of this machine's settings: no proxies, no config, no log level.
            .env_clear()
            .env("HOME", home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let id = child.id().context("the process ended at once")?;
        let mut stdout = BufReader::new(child.stdout.take().context("no stdout")?);
        let address = match timeout(PATIENCE, printed_address(&mut stdout)).await {
            Ok(Ok(address)) => address,
            Ok(Err(error)) => return Err(error.context(said(&name, log))),
            Err(_) => bail!(said(&name, log)),
        };
        Ok(Self {
            id,
            address,
            _pipes: (child.stdin.take(), stdout),
            child,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}{MCP}", self.address)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::Http {
            address: self.address,
            path: MCP.to_owned(),
        }
    }

    /// Asks the process to end and waits for it; one that does not is killed.
    pub(crate) async fn stop(mut self) -> Result<()> {
        if let Some(id) = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
        {
            // It is our child and not waited for yet, so the id is still its own.
            kill_process(id, Signal::TERM)?;
        }
        if timeout(PATIENCE, self.child.wait()).await.is_err() {
            self.child.kill().await?;
        }
        Ok(())
    }
}

async fn printed_address(
    stdout: &mut (impl AsyncRead + Unpin + Send + AsyncBufReadExt),
) -> Result<SocketAddr> {
    let mut line = String::new();
    while stdout.read_line(&mut line).await? > 0 {
        let after = line.split_once("listens on http://");
        if let Some((address, _)) = after.and_then(|(_, rest)| rest.split_once('/')) {
            return Ok(address.parse()?);
        }
        line.clear();
    }
    bail!("it ended without printing an address")
}

fn said(name: &str, log: PathBuf) -> String {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    format!("`{name}` did not get ready; it said:\n{log}")
}
