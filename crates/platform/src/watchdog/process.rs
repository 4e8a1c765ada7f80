//! The watchdog process. It is small: one thread, no runtime, a list of groups.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::message::Message;
use crate::group::Group;

/// How long groups get between SIGTERM and SIGKILL once the parent is gone.
const GRACE: Duration = Duration::from_secs(2);

/// How often groups are checked that were asked to end.
const POLL: Duration = Duration::from_millis(20);

/// Watches over the groups that stdin tells of, and ends them when stdin ends.
pub(crate) fn run() -> ExitCode {
    take_name();
    let mut groups = Vec::new();
    let outcome = follow(&mut groups);
    // However it ended, there is no parent any more to end the groups.
    end(groups);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Gives the process a name of its own, so that `pkill -9` with the parent's name, which is that of
/// the same program, leaves the watchdog to end the children.
#[cfg(target_os = "linux")]
fn take_name() {
    // Only a name; the watchdog works without it.
    let _ = std::fs::write("/proc/self/comm", super::COMMAND);
}

#[cfg(not(target_os = "linux"))]
fn take_name() {}

/// Keeps `groups` as the parent says, until the parent is gone.
fn follow(groups: &mut Vec<Group>) -> io::Result<()> {
    let mut messages = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut acknowledgements = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut bytes = [0; Message::BYTES];
    loop {
        match messages.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        match Message::from_bytes(bytes) {
            Some(Message::Watch(group)) => {
                groups.push(group);
                // Fails if the parent is gone, which the next read notices.
                let _ = acknowledgements.write_all(&group.to_bytes());
            }
            Some(Message::Forget(group)) => groups.retain(|other| *other != group),
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Ends all groups at the same time.
fn end(mut groups: Vec<Group>) {
    for group in &groups {
        group.signal(Signal::TERM);
    }
    let deadline = Instant::now() + GRACE;
    groups.retain(|group| group.is_alive());
    while !groups.is_empty() && Instant::now() < deadline {
        std::thread::park_timeout(POLL);
        groups.retain(|group| group.is_alive());
    }
    for group in groups {
        group.signal(Signal::KILL);
    }
}
