//! The daemon, if it runs: its socket and its port.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use config::{Config, Settings};
use daemon::DataDir;
use tokio::net::{TcpListener, UnixStream};

use super::check::{Area, Report, quoted};
use super::code::Code;
use crate::api::{self, Api};
use crate::commands::parse;
use crate::exit::Failure;
use crate::shell::program_at;

/// How long the daemon may take to let somebody in.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many ports behind one that is taken are tried.
const NEIGHBOURS: usize = 100;

/// What became of the look for a daemon.
#[derive(Debug)]
pub(super) enum Service {
    Absent,
    /// It has the socket and does not answer there.
    Silent,
    Answers {
        /// Where it listens, if it says so.
        listen: Option<SocketAddr>,
        /// The command that puts another one in its place.
        restart: String,
    },
}

pub(super) async fn check(settings: &Settings, config: &Config, report: &mut Report) -> Service {
    let socket = DataDir::socket(&settings.data_dir(config));
    let Ok(stream) = UnixStream::connect(&socket).await else {
        check_leftover(&socket, report);
        check_free(settings, config.listen, report).await;
        return Service::Absent;
    };
    check_socket(&socket, report);
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    match check_running(settings, pid, report).await {
        Some(listen) => Service::Answers {
            listen: listen.parse().ok(),
            restart: report.command("restart"),
        },
        None => Service::Silent,
    }
}

/// The command that replaces a daemon that hangs. It is deaf to anything gentler, and loses nothing
/// that is recorded.
fn replace(pid: Option<i32>, report: &Report) -> String {
    let serve = report.command("serve");
    match pid {
        Some(pid) => format!("kill -9 {pid}; {serve}"),
        None => serve,
    }
}

/// Without a daemon there should be no socket either.
fn check_leftover(socket: &Path, report: &mut Report) {
    if std::fs::symlink_metadata(socket).is_err() {
        report.fine(Area::Socket, None, "no daemon is running");
        return;
    }
    let cause = format!("{} is there and nobody listens", socket.display());
    let fix = format!("rm {}", quoted(socket));
    report.problem(Area::Socket, Code::SocketStale, None, cause, fix);
}

fn check_socket(socket: &Path, report: &mut Report) {
    let found = std::fs::metadata(socket);
    let mode = found.map_or(0, |found| found.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let cause = format!("{} is open to others, mode {mode:o}", socket.display());
        let fix = format!("chmod 600 {}", quoted(socket));
        report.problem(Area::Socket, Code::SocketMode, None, cause, fix);
    } else {
        report.fine(Area::Socket, None, socket.display().to_string());
    }
}

/// A daemon that runs has to answer on both of its endpoints. Says where it listens, if it answers.
async fn check_running(
    settings: &Settings,
    pid: Option<i32>,
    report: &mut Report,
) -> Option<String> {
    let status = async {
        let api = Api::daemon(settings).await?;
        parse(&api.get("/status").await?)
    };
    let status = match tokio::time::timeout(PATIENCE, status).await {
        Ok(answer) => answer.map_err(Failure::one_line),
        Err(_) => Err("the daemon takes connections and does not answer".to_owned()),
    };
    let status = match status {
        Ok(status) => status,
        Err(cause) => {
            let fix = replace(pid, report);
            report.problem(Area::Port, Code::DaemonUnresponsive, None, cause, fix);
            return None;
        }
    };
    let listen = status["listen"].as_str().unwrap_or_default();
    let reached = tokio::time::timeout(PATIENCE, api::is_healthy(listen)).await;
    if let Ok(true) = reached {
        let version = status["version"].as_str().unwrap_or_default();
        let pid = &status["pid"];
        let detail = format!("http://{listen}/mcp, process {pid}, version {version}");
        report.fine(Area::Port, None, detail);
    } else {
        let cause = format!("the daemon does not answer on {listen} although it runs");
        let fix = format!("curl -v http://{listen}/healthz");
        report.problem(Area::Port, Code::PortUnreachable, None, cause, fix);
    }
    Some(listen.to_owned())
}

/// The next port that is free: one that a person can remember, and that is the same tomorrow.
async fn free_beside(taken: SocketAddr) -> SocketAddr {
    let mut other = taken;
    for port in (taken.port().saturating_add(1)..=u16::MAX).take(NEIGHBOURS) {
        other.set_port(port);
        if TcpListener::bind(other).await.is_ok() {
            return other;
        }
    }
    other.set_port(0);
    let free = TcpListener::bind(other).await;
    free.and_then(|listener| listener.local_addr())
        .unwrap_or(other)
}

/// Without a daemon, the port has to be free for one.
async fn check_free(settings: &Settings, listen: SocketAddr, report: &mut Report) {
    match TcpListener::bind(listen).await {
        Ok(_) => report.fine(Area::Port, None, format!("{listen} is free")),
        Err(error) => {
            let holder = daemon::held_by(daemon::Holder::of(listen).as_ref());
            let cause = format!("{listen} cannot be used{holder}: {error}");
            let program = program_at(settings, None);
            let fix = format!("{program} serve --listen {}", free_beside(listen).await);
            report.problem(Area::Port, Code::PortInUse, None, cause, fix);
        }
    }
}
