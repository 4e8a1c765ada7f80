//! The only way to stdout and stderr. Results go to stdout, everything else to stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use policy::OperationType;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::layout::{GAP, Layout, Step};
use crate::yaml::to_yaml;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
    /// One JSON value per line and entry.
    Jsonl,
}

/// What stands in a cell of a table.
#[derive(Debug)]
pub(crate) enum Entry {
    Text(String),
    /// `R read`, `W write` or `D destructive`, coloured where colour is wanted.
    Lane(OperationType),
}

#[derive(Debug)]
pub(crate) struct Printer {
    pub format: Format,
    /// The format that was asked for on this very command line, and not by the environment.
    pub asked: Option<Format>,
    quiet: bool,
    terminal: bool,
    color: bool,
    width: Option<u16>,
    /// Whether the reader of the results is still there, as far as is known.
    heard: AtomicBool,
    /// Why results could not be written, other than that nobody reads them.
    lost: OnceLock<io::Error>,
}

/// How far something has come.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
    total: u64,
    done: u64,
    /// What was last shown.
    percent: Option<u64>,
}

impl Printer {
    pub(crate) fn new(format: Format, asked: Option<Format>, quiet: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width = terminal
            .then(|| rustix::termios::tcgetwinsize(io::stdout()).ok())
            .flatten();
        Self {
            format,
            asked,
            quiet,
            terminal,
            color: terminal && !no_color && !dumb,
            width: width.map(|size| size.ws_col).filter(|columns| *columns > 0),
            heard: AtomicBool::new(true),
            lost: OnceLock::new(),
        }
    }

    /// A result for people.
    pub(crate) fn text(&self, text: &str) {
        if let Err(error) = write(&mut io::stdout().lock(), text) {
            self.heard.store(false, Ordering::Relaxed);
            if error.kind() != io::ErrorKind::BrokenPipe {
                let _ = self.lost.set(error);
            }
        }
    }

    /// How a command ends whose results may not have been written: a full disk is a failure.
    pub(crate) fn ended(&self, outcome: Outcome) -> Outcome {
        match (outcome, self.lost.get()) {
            (Ok(_), Some(error)) => {
                Err(
                    Failure::from_error(Exit::Failed, "the result cannot be written", error)
                        .advice("make room, or write it to another place"),
                )
            }
            (outcome, _) => outcome,
        }
    }

    /// Whether somebody still reads the results. A reader that went away, as `head` does, is no
    /// failure, but whatever would print without an end can stop.
    pub(crate) fn is_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// A result as data, in the format that was asked for. `entries` names the member whose items
    /// are the lines of `jsonl`; without one, the whole is one line.
    pub(crate) fn data(&self, value: &Value, entries: Option<&str>) {
        let text = match self.format {
            Format::Yaml => to_yaml(value),
            Format::Jsonl => {
                let items = entries
                    .and_then(|name| value.get(name))
                    .and_then(Value::as_array);
                match items {
                    Some(items) => items.iter().map(|item| format!("{item}\n")).collect(),
                    None => format!("{value}\n"),
                }
            }
            Format::Table | Format::Json => format!("{value:#}\n"),
        };
        let text = match self.format {
            Format::Yaml => escape::yaml(&text),
            Format::Table | Format::Json | Format::Jsonl => escape::json(&text),
        };
        self.text(&text);
    }

    /// Something on the side, unless the user wants quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            write_aside(&format!("{text}\n"));
        }
    }

    /// A question, after which the answer is typed. It is asked however quiet one wants it.
    #[expect(clippy::unused_self, reason = "whoever prints holds a printer")]
    pub(crate) fn prompt(&self, question: &str) {
        write_aside(question);
    }

    /// Lines that go and lines that come, coloured where colour is wanted. The text is safe.
    pub(crate) fn diff(&self, text: &str) {
        let paint = |line: &str| match line.bytes().next() {
            Some(b'+') if self.color => format!("\u{1b}[32m{line}\u{1b}[0m\n"),
            Some(b'-') if self.color => format!("\u{1b}[31m{line}\u{1b}[0m\n"),
            _ => format!("{line}\n"),
        };
        self.text(&text.lines().map(paint).collect::<String>());
    }

    /// Whether a person is looking at the results. A terminal need not say how wide it is.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A progress bar on stderr, if it is wanted and somebody is there to see it.
    pub(crate) fn progress(&self, wanted: bool, total: u64) -> Progress {
        Progress {
            shown: wanted && !self.quiet && io::stderr().is_terminal(),
            total,
            done: 0,
            percent: None,
        }
    }

    /// Progress for a user at a terminal; scripts do not see it.
    pub(crate) fn progress_note(text: &str) {
        if io::stderr().is_terminal() {
            write_aside(&format!("{text}\n"));
        }
    }

    /// Something that a result lacks, which whoever reads it must know.
    pub(crate) fn warning(text: &str) {
        write_aside(&format!("warning: {text}\n"));
    }

    /// Tells a failure: to a program as one JSON object on a line, to a person in words.
    pub(crate) fn failure(failure: &Failure, format: Format) {
        match format {
            Format::Json | Format::Jsonl => {
                let text = escape::json(&failure.to_json().to_string());
                write_aside(&format!("{text}\n"));
            }
            Format::Table | Format::Yaml => {
                write_aside(&format!("{}\n", escape::lines(&failure.to_string())));
            }
        }
    }

    /// A table without lines, as wide as the terminal at most. Text is escaped here.
    pub(crate) fn table(&self, headers: &[&str], rows: Vec<Vec<Entry>>) {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(self.width.unwrap_or(u16::MAX));
        if self.color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_header(headers.iter().map(Cell::new));
        for row in rows {
            table.add_row(row.into_iter().map(Entry::into_cell));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let text: String = table
            .lines()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        self.text(&text);
    }

    /// A table whose rows are never broken; `steps` say what gives way where the terminal is narrow.
    pub(crate) fn rows(&self, headers: &[&str], rows: &[Vec<Entry>], steps: &[Step]) {
        let mut widths: Vec<usize> = headers.iter().map(|header| header.width()).collect();
        for row in rows {
            for (width, entry) in widths.iter_mut().zip(row) {
                *width = (*width).max(entry.text().width());
            }
        }
        let layout = self.layout(widths, steps);
        self.headers(&layout, headers);
        for row in rows {
            self.row(&layout, row);
        }
    }

    /// Columns for rows that come one by one.
    pub(crate) fn layout(&self, widths: Vec<usize>, steps: &[Step]) -> Layout {
        Layout::new(widths, self.width.map(usize::from), steps)
    }

    pub(crate) fn headers(&self, layout: &Layout, headers: &[&str]) {
        let headers: Vec<Entry> = headers.iter().map(|header| (*header).into()).collect();
        self.row(layout, &headers);
    }

    pub(crate) fn row(&self, layout: &Layout, row: &[Entry]) {
        let mut line = String::new();
        let cells = row.iter().map(|entry| (entry, entry.text()));
        for (entry, text, space) in layout.cells(cells) {
            line.push_str(&self.painted(entry, &text));
            line.extend(std::iter::repeat_n(' ', space));
            line.push_str(GAP);
        }
        self.text(&format!("{}\n", line.trim_end()));
    }

    /// An operation type as people read it.
    pub(crate) fn lane(&self, operation: OperationType) -> String {
        let entry = Entry::Lane(operation);
        self.painted(&entry, &entry.text())
    }

    fn painted(&self, entry: &Entry, text: &str) -> String {
        match entry {
            Entry::Lane(operation) if self.color => {
                let color = color_of(*operation).1;
                format!("\u{1b}[38;5;{color}m{text}\u{1b}[39m")
            }
            _ => text.to_owned(),
        }
    }
}

impl Entry {
    /// What is shown, without colour.
    fn text(&self) -> String {
        match self {
            Self::Text(text) => escape::line(text),
            Self::Lane(operation) => format!("{} {operation}", operation.letter()),
        }
    }

    fn into_cell(self) -> Cell {
        let cell = Cell::new(self.text());
        match self {
            Self::Text(_) => cell,
            Self::Lane(operation) => cell.fg(color_of(operation).0),
        }
    }
}

/// The colour of an operation type, and its number in the palette of a terminal.
fn color_of(operation: OperationType) -> (Color, u8) {
    match operation {
        OperationType::Read => (Color::Green, 10),
        OperationType::Write => (Color::Yellow, 11),
        OperationType::Destructive => (Color::Red, 9),
    }
}

impl<T: Into<String>> From<T> for Entry {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl Progress {
    pub(crate) fn advance(&mut self, number: u64) {
        self.done += number;
        let percent = (self.done * 100)
            .checked_div(self.total)
            .map(|percent| percent.min(100));
        if self.shown && percent != self.percent {
            self.percent = percent;
            let filled = usize::try_from(percent.unwrap_or(100) / 5).unwrap_or_default();
            let bar = format!("{:<20}", "#".repeat(filled));
            let line = format!("\r[{bar}] {} of {}", self.done.min(self.total), self.total);
            write_aside(&line);
        }
    }

    pub(crate) fn finish(self) {
        if self.shown && self.percent.is_some() {
            write_aside("\n");
        }
    }
}

fn write(stream: &mut impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// Nobody can be told that nobody can be told.
fn write_aside(text: &str) {
    let _ = write(&mut io::stderr().lock(), text);
}
