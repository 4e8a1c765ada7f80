//! `mcpproxy activity export`: streamed, so that a large log takes no memory.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use http_body_util::BodyExt;

use crate::api::{Api, lost};
use crate::args::ActivityFilter;
use crate::commands::parse;
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};

/// What to export.
pub(super) struct What<'a> {
    pub filter: &'a ActivityFilter,
    pub format: &'a str,
    pub include_bodies: bool,
    pub limit: Option<u64>,
}

/// A terminal, to which lines go with everything visible that would act on it or hide.
struct Harmless<W> {
    inner: W,
    /// What came of a line that has not ended.
    line: Vec<u8>,
    escape: fn(&str) -> String,
}

/// The format by `--format` or, where that is not given, by `-o`.
pub(super) fn format<'a>(given: Option<&'a str>, printer: &Printer) -> Result<&'a str, Failure> {
    let by_output = match printer.asked.unwrap_or(printer.format) {
        Format::Json => Some("json"),
        Format::Jsonl => Some("jsonl"),
        Format::Table | Format::Yaml => None,
    };
    let is_asked = printer.asked.is_some();
    match (given, by_output) {
        // What the environment prefers for all commands is no order to this one.
        (Some(format), _) if !is_asked => Ok(format),
        (Some(format), Some(same)) if format == same => Ok(format),
        (Some(format), _) => Err(Failure::new(
            Exit::Usage,
            format!("--format {format} and -o contradict each other"),
        )
        .why("both say how the records are written")
        .advice("give one of them")),
        (None, Some(format)) => Ok(format),
        (None, None) if !is_asked => Ok("json"),
        (None, None) => Err(
            Failure::new(Exit::Usage, "an export has no such form as -o asks for")
                .why("records are exported as json, jsonl or csv")
                .advice("use -o json, -o jsonl or --format csv; `mcpproxy activity list` has tables and YAML"),
        ),
    }
}

pub(super) async fn run(
    api: &Api,
    what: &What<'_>,
    file: Option<&Path>,
    printer: &Printer,
) -> Outcome {
    let file = file.filter(|file| *file != Path::new("-"));
    let parameters = [
        ("format", Some(what.format.to_owned())),
        ("include_bodies", Some(what.include_bodies.to_string())),
        ("limit", what.limit.map(|limit| limit.to_string())),
    ];
    let path = format!("/activity/export{}", super::query(what.filter, parameters));
    let mut body = api.stream(&path).await?;
    let (target, terminal): (Box<dyn Write + Send>, bool) = match file {
        Some(file) => {
            let opened = create(file).map_err(|error| unwritable(file, &error))?;
            let terminal = opened.is_terminal();
            (Box::new(opened), terminal)
        }
        None => (Box::new(io::stdout()), printer.is_terminal()),
    };
    let mut target: Box<dyn Write + Send> = if terminal {
        Box::new(Harmless {
            inner: target,
            line: Vec::new(),
            escape: if what.format == "csv" {
                escape::lines
            } else {
                escape::json
            },
        })
    } else {
        target
    };
    let name = file.unwrap_or(Path::new("stdout"));
    // On a terminal the export itself would be torn apart by its progress.
    let mut progress = printer.progress(file.is_some(), expected(api, what).await?);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| lost(&error))?.into_data() else {
            continue;
        };
        match target.write_all(&data) {
            Ok(()) => {}
            // Whoever reads may have enough, as `head` does.
            Err(error) if file.is_none() && error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(Exit::Ok);
            }
            Err(error) => return Err(unwritable(name, &error)),
        }
        // Every format has a line per record.
        progress.advance(data.split(|byte| *byte == b'\n').count() as u64 - 1);
    }
    target.flush().map_err(|error| unwritable(name, &error))?;
    progress.finish();
    if let Some(file) = file {
        printer.note(&format!("written to {}", file.display()));
    }
    Ok(Exit::Ok)
}

/// A file for its owner alone: the log that it comes from is so, too.
fn create(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file)
}

impl<W: Write> Harmless<W> {
    fn show(&mut self, length: usize) -> io::Result<()> {
        let lines: Vec<u8> = self.line.drain(..length).collect();
        let text = (self.escape)(&String::from_utf8_lossy(&lines));
        self.inner.write_all(text.as_bytes())
    }
}

impl<W: Write> Write for Harmless<W> {
    /// Characters are whole only within whole lines, and a record is no longer than one.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(data);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            self.show(end + 1)?;
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.show(self.line.len())?;
        self.inner.flush()
    }
}

/// How many records there will be, for the progress bar.
async fn expected(api: &Api, what: &What<'_>) -> Result<u64, Failure> {
    let query = super::query(what.filter, [("limit", Some("1".to_owned()))]);
    let page = parse(&api.get(&format!("/activity{query}")).await?)?;
    let total = page["total"].as_u64().unwrap_or_default();
    Ok(what.limit.map_or(total, |limit| total.min(limit)))
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    let what = format!("the export cannot be written to {}", file.display());
    Failure::from_error(Exit::Failed, what, error).advice("choose another place with --output FILE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_in_two_pieces_is_one() {
        let text = "{\"a\": \"ü\u{202e}\"}\n{\"b\": \"\u{9b}世\"}";
        for cut in 0..=text.len() {
            let mut shown = Harmless {
                inner: Vec::new(),
                line: Vec::new(),
                escape: escape::json,
            };
            let (one, other) = text.as_bytes().split_at(cut);
            shown.write_all(one).unwrap();
            shown.write_all(other).unwrap();
            shown.flush().unwrap();
            let shown = String::from_utf8(shown.inner).unwrap();
            assert_eq!(
                shown, "{\"a\": \"ü\\u202e\"}\n{\"b\": \"\\u009b世\"}",
                "{cut}"
            );
        }
    }
}
