//! `mcpproxy logs [-f]`: what the daemon wrote about itself, also when it does not run any more.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::Settings;
use platform::RotatedFile;
use serde_json::Value;

use crate::api::Api;
use crate::args::LogsArgs;
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};

/// The pause between two looks at a file that is followed.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) async fn run(args: &LogsArgs, settings: &Settings, printer: &Printer) -> Outcome {
    let path = Api::daemon_log(settings);
    let mut text = read(&RotatedFile::previous(&path))?;
    let mut followed = Followed::begin(path);
    text.push_str(&followed.news()?);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(usize::from(args.lines));
    print(&lines[from..], printer);
    if lines.is_empty() {
        printer.note("no daemon has written anything yet");
    }
    if args.follow {
        tokio::select! {
            outcome = followed.follow(printer) => outcome?,
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    Ok(Exit::Ok)
}

fn print(lines: &[&str], printer: &Printer) {
    for line in lines {
        match printer.format {
            Format::Table => printer.text(&format!("{}\n", escape::line(line))),
            _ => printer.text(&format!(
                "{}\n",
                escape::json(&Value::from(*line).to_string())
            )),
        }
    }
}

/// A file that is read as it grows, and from its beginning when another takes its place.
struct Followed {
    path: PathBuf,
    inode: Option<u64>,
    read: u64,
}

impl Followed {
    fn begin(path: PathBuf) -> Self {
        Self {
            path,
            inode: None,
            read: 0,
        }
    }

    async fn follow(&mut self, printer: &Printer) -> Result<(), Failure> {
        let mut rest = String::new();
        while printer.is_heard() {
            rest.push_str(&self.news()?);
            // A line that is not whole yet waits for its end.
            if let Some(end) = rest.rfind('\n') {
                let whole: String = rest.drain(..=end).collect();
                print(&whole.lines().collect::<Vec<_>>(), printer);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    fn news(&mut self) -> Result<String, Failure> {
        let mut read = || -> io::Result<String> {
            let mut file = File::open(&self.path)?;
            let found = file.metadata()?;
            if self.inode != Some(found.ino()) || found.len() < self.read {
                (self.inode, self.read) = (Some(found.ino()), 0);
            }
            file.seek(SeekFrom::Start(self.read))?;
            let mut bytes = Vec::new();
            self.read += file.read_to_end(&mut bytes)? as u64;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        if_there(read()).map_err(|error| unreadable(&self.path, &error))
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if_there(text).map_err(|error| unreadable(path, &error))
}

fn if_there(text: io::Result<String>) -> io::Result<String> {
    match text {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::from_error(
        Exit::Failed,
        format!("{} cannot be read", path.display()),
        error,
    )
    .advice("make it readable, or choose the data directory with --data-dir")
}
