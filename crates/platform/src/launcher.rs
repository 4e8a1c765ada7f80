//! The launcher: a process that waits until the watchdog knows its group, then executes a command.
//!
//! Its gate is its stdin, the pipe that will be the command's: the parent writes one byte when the
//! watchdog has acknowledged the group, and nothing before. The launcher reads exactly that byte, so
//! that what follows is left for the command. It needs no descriptor of its own that the command
//! could inherit, and if the parent dies the pipe ends and the command is not executed.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The first argument that makes a program the launcher; the command line to execute follows.
pub(crate) const COMMAND: &str = "child-launcher";

/// The byte that opens the gate.
pub(crate) const GO: u8 = b'\n';

/// The exit code that shells use for a command that cannot be executed.
const CANNOT_RUN: u8 = 127;

/// Waits for the gate to open, then replaces this process by the command.
pub(crate) fn run(mut command_line: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(program) = command_line.next() else {
        return ExitCode::FAILURE;
    };
    // Not through `io::stdin()`, whose buffer would take bytes that are the command's.
    let mut byte = [0];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut byte));
    if read != Ok(1) || byte != [GO] {
        return ExitCode::FAILURE;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "it replaces this process and starts no other"
    )]
    let error = Command::new(&program).args(command_line).exec();
    // The parent collects stderr for the operator.
    let message = format!("cannot run {}: {error}\n", program.display());
    let _ = io::stderr().write_all(message.as_bytes());
    ExitCode::from(CANNOT_RUN)
}
