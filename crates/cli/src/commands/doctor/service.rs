//! The daemon, if it runs: its socket, its port, its log, and the clock they go by.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use config::{Config, Settings};
use daemon::DataDir;
use jiff::{SignedDuration, Timestamp};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::check::{Area, Report, quoted};
use crate::api::Api;
use crate::commands::parse;

/// How long the daemon may take to let somebody in.
const PATIENCE: Duration = Duration::from_secs(5);

/// Records of the near future are clocks that are set; of the far future, clocks that were wrong.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// This program did not exist before.
const EARLIEST: &str = "2025-06-01T00:00:00Z";

/// Says where the daemon listens, if one runs.
pub(super) async fn check(
    settings: &Settings,
    config: &Config,
    report: &mut Report,
) -> Option<SocketAddr> {
    let socket = DataDir::socket(&settings.data_dir(config));
    let running = UnixStream::connect(&socket).await.is_ok();
    check_socket(&socket, running, report);
    check_clock(report);
    if running {
        let address = check_running(settings, report).await;
        return Some(address.unwrap_or(config.listen));
    }
    check_free(config.listen, report).await;
    None
}

fn check_socket(socket: &Path, running: bool, report: &mut Report) {
    let found = std::fs::symlink_metadata(socket);
    match (running, found) {
        (false, Err(_)) => report.fine(Area::Socket, None, "no daemon is running"),
        (false, Ok(_)) => {
            let cause = format!("{} is there and nobody listens", socket.display());
            report.problem(
                Area::Socket,
                "SOCKET_STALE",
                None,
                cause,
                format!("rm {}", quoted(socket)),
            );
        }
        (true, found) => {
            let mode = found.map_or(0, |found| found.permissions().mode() & 0o777);
            if mode & 0o077 != 0 {
                let cause = format!("{} is open to others, mode {mode:o}", socket.display());
                report.problem(
                    Area::Socket,
                    "SOCKET_MODE",
                    None,
                    cause,
                    format!("chmod 600 {}", quoted(socket)),
                );
            } else {
                report.fine(Area::Socket, None, socket.display().to_string());
            }
        }
    }
}

/// A daemon that runs has to answer on both of its doors.
async fn check_running(settings: &Settings, report: &mut Report) -> Option<SocketAddr> {
    let status = async {
        let api = Api::daemon(settings).await?;
        parse(&api.get("/status").await?)
    };
    let status = match tokio::time::timeout(PATIENCE, status).await {
        Ok(answer) => answer.map_err(|failure| failure.why.unwrap_or(failure.what)),
        Err(_) => Err("the daemon takes connections and does not answer".to_owned()),
    };
    let status = match status {
        Ok(status) => status,
        Err(cause) => {
            report.problem(
                Area::Port,
                "DAEMON_UNRESPONSIVE",
                None,
                cause,
                "mcpproxy serve",
            );
            return None;
        }
    };
    let listen = status["listen"].as_str().unwrap_or_default();
    let reached = tokio::time::timeout(PATIENCE, TcpStream::connect(listen)).await;
    if let Ok(Ok(_)) = reached {
        let version = status["version"].as_str().unwrap_or_default();
        let pid = &status["pid"];
        let detail = format!("http://{listen}/mcp, process {pid}, version {version}");
        report.fine(Area::Port, None, detail);
    } else {
        let cause = format!("nothing answers on {listen} although the daemon runs");
        report.problem(
            Area::Port,
            "PORT_UNREACHABLE",
            None,
            cause,
            format!("curl -v http://{listen}/healthz"),
        );
    }
    listen.parse().ok()
}

/// Without a daemon, the port has to be free for one.
async fn check_free(listen: SocketAddr, report: &mut Report) {
    match TcpListener::bind(listen).await {
        Ok(_) => report.fine(Area::Port, None, format!("{listen} is free")),
        Err(error) => {
            let cause = format!("{listen} cannot be used: {error}");
            let mut other = listen;
            other.set_port(0);
            let free = TcpListener::bind(other).await;
            let free = free
                .and_then(|listener| listener.local_addr())
                .unwrap_or(other);
            report.problem(
                Area::Port,
                "PORT_IN_USE",
                None,
                cause,
                format!("mcpproxy serve --listen {free}"),
            );
        }
    }
}

fn check_clock(report: &mut Report) {
    let now = Timestamp::now();
    let wrong = EARLIEST
        .parse()
        .is_ok_and(|earliest: Timestamp| now < earliest);
    if wrong {
        let cause = format!("it is not {now}");
        report.problem(
            Area::Clock,
            "CLOCK_WRONG",
            None,
            cause,
            "sudo timedatectl set-ntp true",
        );
    } else {
        report.fine(
            Area::Clock,
            None,
            now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        );
    }
}

/// Whether the log is as it was written, and not from the future.
pub(super) async fn check_store(api: &Api, report: &mut Report) {
    let verify = async { parse(&api.get("/activity/verify").await?) };
    match verify.await {
        Ok(found) if found["valid"] == true => {
            let detail = format!("{} records hold", found["records"]);
            report.fine(Area::Store, None, detail);
        }
        Ok(found) => {
            let cause = match found["broken"]["id"].as_str() {
                Some(id) => format!("the chain of records breaks at {id}"),
                None => "the chain of records breaks".to_owned(),
            };
            report.problem(
                Area::Store,
                "STORE_TAMPERED",
                None,
                cause,
                "mcpproxy activity verify",
            );
        }
        Err(failure) => {
            let cause = failure.why.unwrap_or(failure.what);
            report.problem(
                Area::Store,
                "STORE_UNREADABLE",
                None,
                cause,
                "mcpproxy activity verify",
            );
        }
    }
    let newest = async { parse(&api.get("/activity?limit=1").await?) };
    if let Ok(page) = newest.await
        && let Some(Ok(newest)) = page["activities"][0]["timestamp"]
            .as_str()
            .map(str::parse::<Timestamp>)
        && newest.duration_since(Timestamp::now()) > TOLERANCE
    {
        let cause = format!("the newest record is of {newest}, which is yet to come");
        report.problem(
            Area::Clock,
            "CLOCK_BEHIND",
            None,
            cause,
            "sudo timedatectl set-ntp true",
        );
    }
}
