//! The process between the daemon and a stdio upstream, so that none is orphaned.
//!
//! `mcpproxy guard -- COMMAND…` runs the command in its own process group with stdin, stdout and
//! stderr handed through. When the daemon dies, however it dies, the kernel sends the guardian a
//! SIGTERM; it then ends the whole group. A parent-death signal on the command alone would not do:
//! `npx` and its like start the real server as a grandchild, which no such signal reaches.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, kill_process_group};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long the group gets between SIGTERM and SIGKILL once the daemon is gone.
const GRACE: Duration = Duration::from_secs(2);

/// What a shell says of a command that cannot be run.
const CANNOT_RUN: u8 = 127;

/// Runs the command to its end and returns the exit code to end with.
///
/// Must be called before any thread is started, in a process that leads its own group.
pub fn run(command: &str, arguments: &[String], daemon: u32) -> io::Result<u8> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCHLD])?;
    die_with(daemon)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the supervisor's own process"
    )]
    let spawned = std::process::Command::new(command).args(arguments).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            // stderr is the upstream's log, where the operator will look.
            let _ = io::Write::write_all(
                &mut io::stderr(),
                format!("mcpproxy: cannot run {command}: {error}\n").as_bytes(),
            );
            return Ok(CANNOT_RUN);
        }
    };
    for signal in signals.forever() {
        if signal == SIGCHLD {
            if let Some(status) = child.try_wait()? {
                end_group(Signal::TERM);
                return Ok(exit_code(status));
            }
        } else {
            return Ok(end_within_grace(&mut child));
        }
    }
    Ok(0)
}

/// Asks the kernel to tell us when the daemon dies, and checks that it has not died already.
#[cfg(target_os = "linux")]
fn die_with(daemon: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    let parent = rustix::process::getppid().map(Pid::as_raw_nonzero);
    if parent.and_then(|pid| u32::try_from(pid.get()).ok()) != Some(daemon) {
        return Err(io::Error::other("the daemon is gone"));
    }
    Ok(())
}

/// Elsewhere the closed stdin is the upstream's only sign that the daemon died.
#[cfg(not(target_os = "linux"))]
fn die_with(_daemon: u32) -> io::Result<()> {
    Ok(())
}

fn end_within_grace(child: &mut Child) -> u8 {
    end_group(Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        if let Ok(Some(status)) = child.try_wait() {
            // What is left of the group has had its SIGTERM; nobody is there to wait for it.
            end_group(Signal::KILL);
            return exit_code(status);
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    end_group(Signal::KILL);
    CANNOT_RUN
}

/// Signals every process of our group. SIGKILL ends this process too, which is the point.
fn end_group(signal: Signal) {
    // The group is gone when nothing is left in it, which is as good as ended.
    let _ = kill_process_group(getpgrp(), signal);
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
