//! The one daemon of a data directory: found, started in the background where there is none, and
//! ended.
//!
//! Commands and `mcpproxy stdio` use it, so that all of them share its upstreams and its log. Two
//! that start one at the same time end up with one: the daemon that gets the lock of the data
//! directory stays, the other gives way to it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{CommandLine, Settings};
use daemon::{DataDir, StartedBy};
use platform::service::{Definition, Service};
use platform::{DetachedCommand, RotatedFile};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::time::{Instant, sleep, timeout};

use crate::api::Api;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

/// How long a daemon may take to start, or to make room for another.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// How long a daemon that another command starts has until a further one is tried.
const AGAIN: Duration = Duration::from_millis(250);

/// How long a start goes on without a word to the user.
const SILENCE: Duration = Duration::from_secs(1);

/// How long `shutdown_grace` and what follows it take at most, where that is not longer.
const ENDING: Duration = Duration::from_secs(10);

/// The name of the service, and of its file.
const SERVICE: &str = "mcpproxy";

/// A daemon that answers.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Running {
    pub(crate) version: String,
    pub(crate) pid: u32,
    /// Not known of a daemon from before there were several ways to start one.
    pub(crate) started_by: Option<StartedBy>,
}

/// What is behind a socket.
#[derive(Debug)]
enum Found {
    NoDaemon,
    /// A daemon that ends, and begins nothing any more.
    Stopping,
    Running(Running),
}

/// How a start went, as the new daemon tells on its stdout.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartReport {
    Ready,
    /// Another daemon has the data directory, which is as good.
    Taken,
    Failed {
        exit: u8,
        what: String,
        why: Option<String>,
        advice: Option<String>,
    },
}

/// Finds the daemon of these settings, or starts one. One of an older version is replaced.
pub(crate) async fn ensure(settings: &Settings, data_dir: &Path) -> Result<(), Failure> {
    let socket = DataDir::socket(data_dir);
    let begun = Instant::now();
    let mut start: Option<Start> = None;
    let mut told = false;
    loop {
        match look(&socket).await? {
            Found::Running(daemon) if daemon.gives_way_to_this_version() => {
                let (old, new) = (&daemon.version, env!("CARGO_PKG_VERSION"));
                Printer::warning(&format!(
                    "the daemon is mcpproxy {old}; it ends, and {new} takes its place"
                ));
                stop(&socket).await?;
            }
            Found::Running(_) => return Ok(()),
            Found::Stopping => {}
            Found::NoDaemon => match &mut start {
                None => start = Some(Start::begin(settings, data_dir).await?),
                Some(begun) => match begun.outcome().await? {
                    Started::Waiting => {}
                    Started::Elsewhere => {
                        sleep(AGAIN).await;
                        start = None;
                    }
                },
            },
        }
        if begun.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            let log = DataDir::log(data_dir);
            return Err(Failure::new(
                Exit::Unreachable,
                format!("the daemon is not ready after {seconds} s"),
            )
            .advice(format!("see what it does in {}", log.display())));
        }
        if begun.elapsed() > SILENCE && !told {
            told = true;
            Printer::progress_note("the daemon is starting…");
        }
        sleep(PAUSE).await;
    }
}

/// Asks who is behind a socket. One that takes connections and says nothing is a failure.
async fn look(socket: &Path) -> Result<Found, Failure> {
    if UnixStream::connect(socket).await.is_err() {
        return Ok(Found::NoDaemon);
    }
    match running(socket).await {
        Ok(daemon) => Ok(Found::Running(daemon)),
        Err(failure) if failure.code.as_deref() == Some("STOPPING") => Ok(Found::Stopping),
        // It may have gone between the two.
        Err(failure) if UnixStream::connect(socket).await.is_ok() => Err(failure),
        Err(_) => Ok(Found::NoDaemon),
    }
}

/// The daemon behind a socket.
pub(crate) async fn running(socket: &Path) -> Result<Running, Failure> {
    let api = Api::at(socket).await?;
    super::commands::parse_as(&api.get("/status").await?)
}

/// Ends the daemon behind a socket, and waits until it has gone. Calls that are under way have
/// their grace. Says which daemon it was; `None` if there was none.
pub(crate) async fn stop(socket: &Path) -> Result<Option<Running>, Failure> {
    let daemon = match look(socket).await? {
        Found::NoDaemon => return Ok(None),
        Found::Stopping => None,
        Found::Running(daemon) => {
            let api = Api::at(socket).await?;
            // It may have begun to end meanwhile, or have ended.
            match api.post("/stop", &Value::Null).await {
                Err(failure) if failure.exit == Exit::NotFound => return Err(too_old(&daemon)),
                _ => Some(daemon),
            }
        }
    };
    let data_dir = socket.parent().unwrap_or(Path::new("/"));
    let pid = daemon.as_ref().map(|daemon| daemon.pid);
    let gone = async {
        while UnixStream::connect(socket).await.is_ok() || DataDir::is_in_use(data_dir) {
            // Another client may have started the next one already.
            if running(socket)
                .await
                .is_ok_and(|next| Some(next.pid) != pid)
            {
                return;
            }
            sleep(PAUSE).await;
        }
    };
    if timeout(PATIENCE, gone).await.is_err() {
        let seconds = PATIENCE.as_secs();
        return Err(Failure::new(
            Exit::Failed,
            format!("the daemon has not ended after {seconds} s"),
        )
        .advice("`mcpproxy doctor` says which process it is and how to replace it"));
    }
    Ok(daemon)
}

/// A daemon of a version that cannot be asked to end.
fn too_old(daemon: &Running) -> Failure {
    let Running { version, pid, .. } = daemon;
    Failure::new(
        Exit::Failed,
        format!("the daemon is mcpproxy {version}, which cannot be asked to end"),
    )
    .advice(format!("end it with `kill {pid}`"))
}

/// The service of this user that runs the daemon of these settings, if it is installed.
pub(crate) fn installed_service(settings: &Settings, data_dir: &Path) -> Option<Service> {
    let service = Service::of_user(SERVICE, std::env::home_dir().as_deref()).ok()?;
    let definition = service_definition(settings, data_dir)?;
    service.runs(&definition).then_some(service)
}

/// The service of this user, installed or not.
pub(crate) fn service() -> Result<Service, Failure> {
    Service::of_user(SERVICE, std::env::home_dir().as_deref()).map_err(|error| {
        Failure::from_error(Exit::Failed, "there is no place for the service", &error)
            .advice("set HOME")
    })
}

/// What the service runs: the daemon of exactly these settings. `None` if a path of theirs is not
/// UTF-8.
pub(crate) fn service_definition(settings: &Settings, data_dir: &Path) -> Option<Definition> {
    let path = |path: &Path| path.to_str().map(str::to_owned);
    let mut arguments = vec![
        "--config".to_owned(),
        path(settings.config_file())?,
        "--data-dir".to_owned(),
        path(data_dir)?,
    ];
    if let Some(listen) = settings.command_line().listen {
        arguments.extend(["--listen".to_owned(), listen.to_string()]);
    }
    arguments.extend(["serve".to_owned(), "--service".to_owned()]);
    // Servers are programs that are looked for in it, and a service manager has a short one.
    let search_path = std::env::var("PATH").ok();
    Some(Definition {
        description: "mcpproxy, one proxy in front of all your MCP servers".to_owned(),
        program: platform::program_path().ok()?,
        arguments,
        environment: search_path
            .map(|path| ("PATH".to_owned(), path))
            .into_iter()
            .collect(),
        stop_seconds: 2 * ENDING.as_secs(),
    })
}

// === impl Running ===

impl Running {
    /// Whether this program is newer, and the daemon is not one that a user runs in a terminal.
    fn gives_way_to_this_version(&self) -> bool {
        let replaceable = match &self.started_by {
            Some(StartedBy::Command { .. } | StartedBy::Service) => true,
            Some(StartedBy::Terminal) | None => false,
        };
        replaceable && numbers(&self.version) < numbers(env!("CARGO_PKG_VERSION"))
    }
}

/// The numbers of a version, to compare.
fn numbers(version: &str) -> Vec<u64> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    let parts = release.split('.');
    parts.map(|part| part.parse().unwrap_or_default()).collect()
}

/// A daemon that is being started.
enum Start {
    /// By the service manager.
    Service,
    Process {
        child: Box<Child>,
        log: PathBuf,
    },
}

/// What became of a start that did not fail.
enum Started {
    Waiting,
    /// Another daemon was quicker. If that one ends before it answers, one is started again.
    Elsewhere,
}

// === impl Start ===

impl Start {
    async fn begin(settings: &Settings, data_dir: &Path) -> Result<Self, Failure> {
        if let Some(service) = installed_service(settings, data_dir) {
            match service.start().await {
                Ok(()) => return Ok(Self::Service),
                // Without a service manager, as in a container, the service is only a file.
                Err(error) => tracing::warn!(%error, "the service cannot be started"),
            }
        }
        let prepared = DataDir::prepare(data_dir).map_err(|error| {
            Failure::from_error(Exit::Failed, "the data directory cannot be used", &error)
                .advice(error.advice())
        })?;
        let log = DataDir::log(prepared.path());
        let start = || {
            DetachedCommand {
                program: platform::program_path()?,
                arguments: arguments(settings, data_dir),
                // The current directory might be removed or unmounted.
                working_dir: std::env::home_dir().unwrap_or("/".into()),
                stderr: RotatedFile::open_to_append(&log)?,
            }
            .start()
        };
        let child = start().map_err(|error| {
            Failure::from_error(Exit::Failed, "the daemon cannot be started", &error)
                .advice("start it with `mcpproxy serve`")
        })?;
        let child = Box::new(child);
        Ok(Self::Process { child, log })
    }

    /// Waits for the first word of the new daemon.
    async fn outcome(&mut self) -> Result<Started, Failure> {
        let Self::Process { child, log } = self else {
            return Ok(Started::Waiting);
        };
        let Some(stdout) = child.stdout.take() else {
            return Ok(Started::Waiting);
        };
        let mut line = String::new();
        let mut stdout = BufReader::new(stdout);
        if timeout(PATIENCE, stdout.read_line(&mut line))
            .await
            .is_err()
        {
            return Ok(Started::Waiting);
        }
        match serde_json::from_str(&line) {
            Ok(StartReport::Ready) => Ok(Started::Waiting),
            Ok(StartReport::Taken) => Ok(Started::Elsewhere),
            Ok(StartReport::Failed {
                exit,
                what,
                why,
                advice,
            }) => Err(Failure {
                why,
                advice,
                ..Failure::new(Exit::from_code(exit), what)
            }),
            Err(_) => {
                let status = child.wait().await;
                let status = status.map_or_else(|error| error.to_string(), |it| it.to_string());
                let why = format!("it ended with {status} before it was ready");
                Err(Failure::new(Exit::Failed, "the daemon cannot start")
                    .why(why)
                    .advice(format!("see the end of {}", log.display())))
            }
        }
    }
}

/// The arguments with which this program is the daemon that was asked for.
fn arguments(settings: &Settings, data_dir: &Path) -> Vec<OsString> {
    let CommandLine { listen, .. } = settings.command_line();
    let mut arguments: Vec<OsString> = vec![
        "--config".into(),
        settings.config_file().into(),
        "--data-dir".into(),
        data_dir.into(),
    ];
    if let Some(listen) = listen {
        arguments.extend(["--listen".into(), listen.to_string().into()]);
    }
    let (command, pid) = (crate::args::command_name(), std::process::id());
    arguments.extend([
        "serve".into(),
        "--started-by".into(),
        format!("{command}:{pid}").into(),
    ]);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(numbers("0.9.1") < numbers("0.10.0"));
        assert!(numbers("1.0.0-rc.1") >= numbers("1.0.0"));
        assert!(numbers("1.0") < numbers("1.0.1"));
    }
}
