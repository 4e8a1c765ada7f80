//! Where this process writes about itself: stderr, and the daemon a file as well.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use platform::RotatedFile;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::args::Command;

/// Bytes of the daemon's log file; as many are kept of what was before.
const FILE_LIMIT: u64 = 5 * 1024 * 1024;

/// The daemon's log file, once it is known where it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogFile(Arc<Mutex<Option<RotatedFile>>>);

/// One event on its way into the file.
pub(crate) struct LogWriter<'a>(MutexGuard<'a, Option<RotatedFile>>);

/// Begins to log. A daemon tells what happens; a command speaks only when asked to.
pub(crate) fn start(command: &Command) -> LogFile {
    let file = LogFile::default();
    let default = match command {
        Command::Serve(_) => "info",
        Command::Stdio | Command::DemoServer { .. } => "warn",
        _ => "off",
    };
    let filter =
        EnvFilter::try_from_env("MCPPROXY_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    // The stderr of a daemon in the background is the file itself.
    let in_background = matches!(command, Command::Serve(args) if args.started_by.is_some());
    let to_stderr = (!in_background).then(|| {
        layer()
            .with_writer(io::stderr)
            .with_target(false)
            .with_ansi(io::stderr().is_terminal())
    });
    let to_file = matches!(command, Command::Serve(_)).then(|| {
        let layer = layer().with_writer(file.clone()).with_target(false);
        layer.with_ansi(false).boxed()
    });
    tracing_subscriber::registry()
        .with(filter)
        .with(to_stderr)
        .with(to_file)
        .init();
    file
}

impl LogFile {
    /// From now on, events are written to this file, too.
    pub(crate) fn open(&self, path: PathBuf) -> io::Result<()> {
        let file = RotatedFile::open(path, FILE_LIMIT)?;
        *self.lock() = Some(file);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<RotatedFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = LogWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LogWriter(self.lock())
    }
}

impl Write for LogWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = self.0.as_mut() {
            file.append(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
