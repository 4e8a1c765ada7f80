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

/// How long the daemon may take to let somebody in.
const PATIENCE: Duration = Duration::from_secs(5);

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
        check_free(config.listen, report).await;
        return Service::Absent;
    };
    check_socket(&socket, report);
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    match check_running(settings, pid, report).await {
        Some(listen) => Service::Answers {
            listen: listen.parse().ok(),
            restart: restart(pid),
        },
        None => Service::Silent,
    }
}

/// The command that replaces a daemon that answers: it may finish its calls.
fn restart(pid: Option<i32>) -> String {
    match pid {
        Some(pid) => {
            format!("kill {pid}; while kill -0 {pid} 2>/dev/null; do sleep 1; done; mcpproxy serve")
        }
        None => "mcpproxy serve".to_owned(),
    }
}

/// The command that replaces a daemon that hangs. It is deaf to anything gentler, and loses nothing
/// that is recorded.
fn replace(pid: Option<i32>) -> String {
    match pid {
        Some(pid) => format!("kill -9 {pid}; mcpproxy serve"),
        None => "mcpproxy serve".to_owned(),
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
            let fix = replace(pid);
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

/// Without a daemon, the port has to be free for one.
async fn check_free(listen: SocketAddr, report: &mut Report) {
    match TcpListener::bind(listen).await {
        Ok(_) => report.fine(Area::Port, None, format!("{listen} is free")),
        Err(error) => {
            let holder = daemon::held_by(daemon::Holder::of(listen).as_ref());
            let cause = format!("{listen} cannot be used{holder}: {error}");
            let mut other = listen;
            other.set_port(0);
            let free = TcpListener::bind(other).await;
            let free = free
                .and_then(|listener| listener.local_addr())
                .unwrap_or(other);
            report.problem(
                Area::Port,
                Code::PortInUse,
                None,
                cause,
                format!("mcpproxy serve --listen {free}"),
            );
        }
    }
}
