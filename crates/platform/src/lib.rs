//! What the operating system provides: child process groups and their end, processes that outlive
//! their parent, log files, and services that start at login.
//!
//! A child is started by a [`Watchdog`] as the leader of its own process group ([`ChildGroup`]). The
//! process that starts children ends their groups itself. When it dies, however it dies, the
//! watchdog process ends them.

mod child;
mod detached;
mod endings;
mod group;
mod launcher;
mod rotated_file;
pub mod service;
mod start_time;
mod watchdog;

use std::process::ExitCode;

pub use child::{ChildCommand, ChildGroup, Pipes, StartError};
pub use detached::{DetachedCommand, leave_session, program_path};
pub use endings::Endings;
pub use rotated_file::RotatedFile;
pub use watchdog::Watchdog;

/// Runs the launcher or the watchdog if the first argument names one of them.
///
/// A program that uses [`Watchdog::of_this_program`] must call this first in `main`: the launcher
/// must not interpret the environment, which is the child's, and the watchdog stays small only if
/// nothing else is initialized in its process.
pub fn run_internal_command() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next()?;
    if name == launcher::COMMAND {
        Some(launcher::run(arguments))
    } else if name == watchdog::COMMAND {
        Some(watchdog::run())
    } else {
        None
    }
}
