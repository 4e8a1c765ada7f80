//! What was looked at, and what came out of it.

use config::Settings;
use serde_json::{Value, json};

use super::code::Code;
use crate::escape;
use crate::exit::Exit;
use crate::printer::{Format, Printer};
pub(super) use crate::shell::{quoted, word as shell_word};

/// How many names stand for all.
const NAMED: usize = 3;

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Area {
    Config,
    DataDir,
    Disk,
    Socket,
    Port,
    Clock,
    Store,
    Server,
    Tools,
    Client,
}

#[derive(Debug)]
enum Finding {
    Fine {
        detail: String,
    },
    Skipped {
        why: String,
    },
    /// Works, but the operator should decide about it; does not count as a problem.
    Warning(Diagnosis),
    Problem(Diagnosis),
}

/// One cause and one command that repairs it.
#[derive(Debug)]
struct Diagnosis {
    code: Code,
    cause: String,
    fix: String,
}

#[derive(Debug)]
struct Check {
    area: Area,
    /// The server or client, where there are several.
    subject: Option<String>,
    finding: Finding,
}

/// All checks, in the order in which they were made.
#[derive(Debug)]
pub(super) struct Report {
    /// This program with the options that it was given, for commands that repair.
    program: String,
    checks: Vec<Check>,
}

impl Area {
    fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::DataDir => "data directory",
            Self::Disk => "disk",
            Self::Socket => "socket",
            Self::Port => "port",
            Self::Clock => "clock",
            Self::Store => "activity log",
            Self::Server => "server",
            Self::Tools => "tools",
            Self::Client => "client",
        }
    }
}

impl Report {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            program: crate::shell::program(settings),
            checks: Vec::new(),
        }
    }

    /// A command of this program, about the config and the data that were looked at.
    pub(super) fn command(&self, arguments: &str) -> String {
        format!("{} {arguments}", self.program)
    }

    pub(super) fn fine(&mut self, area: Area, subject: Option<&str>, detail: impl Into<String>) {
        let detail = detail.into();
        self.add(area, subject, Finding::Fine { detail });
    }

    pub(super) fn skipped(&mut self, area: Area, why: impl Into<String>) {
        self.add(area, None, Finding::Skipped { why: why.into() });
    }

    pub(super) fn problem(
        &mut self,
        area: Area,
        code: Code,
        subject: Option<&str>,
        cause: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let (cause, fix) = (cause.into(), fix.into());
        let finding = Finding::Problem(Diagnosis { code, cause, fix });
        self.add(area, subject, finding);
    }

    pub(super) fn warning(
        &mut self,
        area: Area,
        code: Code,
        subject: Option<&str>,
        cause: String,
        fix: String,
    ) {
        let finding = Finding::Warning(Diagnosis { code, cause, fix });
        self.add(area, subject, finding);
    }

    /// Whether nothing was wrong with this so far.
    pub(super) fn is_fine(&self, area: Area) -> bool {
        let of_area = |check: &&Check| check.area == area;
        !self.checks.iter().filter(of_area).any(Check::is_problem)
    }

    fn add(&mut self, area: Area, subject: Option<&str>, finding: Finding) {
        self.checks.push(Check {
            area,
            subject: subject.map(str::to_owned),
            finding,
        });
    }

    /// Prints everything; the exit code says whether anything is wrong.
    pub(super) fn print(&self, printer: &Printer) -> Exit {
        let problems = self
            .checks
            .iter()
            .filter(|check| check.is_problem())
            .count();
        if printer.format == Format::Table {
            let rows = self.checks.iter().map(Check::row);
            printer.table(&["CHECK", "STATE", "DETAIL"], rows.collect());
            let fixes: String = self.checks.iter().filter_map(Check::advice).collect();
            printer.text(&fixes);
            let warnings = self.checks.iter().filter(|check| check.is_warning());
            printer.text(&match (problems, warnings.count()) {
                (0, 0) => "\nall is well\n".to_owned(),
                (0, warnings) => format!("\nno problems, {}\n", count(warnings, "warning")),
                (problems, _) => format!("\n{}\n", count(problems, "problem")),
            });
        } else {
            let checks: Vec<Value> = self.checks.iter().map(Check::json).collect();
            let report = json!({"ok": problems == 0, "problems": problems, "checks": checks});
            printer.data(&report, Some("checks"));
        }
        if problems == 0 {
            Exit::Ok
        } else {
            Exit::Failed
        }
    }
}

impl Check {
    fn is_problem(&self) -> bool {
        matches!(self.finding, Finding::Problem(_))
    }

    fn is_warning(&self) -> bool {
        matches!(self.finding, Finding::Warning(_))
    }

    fn name(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} {subject}", self.area.as_str()),
            None => self.area.as_str().to_owned(),
        }
    }

    fn row(&self) -> Vec<crate::printer::Entry> {
        let (state, detail) = match &self.finding {
            Finding::Fine { detail } => ("ok", detail),
            Finding::Skipped { why } => ("skipped", why),
            Finding::Warning(found) | Finding::Problem(found) => {
                (found.code.as_str(), &found.cause)
            }
        };
        vec![self.name().into(), state.into(), detail.clone().into()]
    }

    /// What to do, below the table: a command must be copied whole.
    fn advice(&self) -> Option<String> {
        let (Finding::Warning(found) | Finding::Problem(found)) = &self.finding else {
            return None;
        };
        let Diagnosis { code, fix, .. } = found;
        let (code, name) = (code.as_str(), escape::line(&self.name()));
        Some(format!("\n{code} ({name})\n  do: {}\n", escape::line(fix)))
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "check": self.area.as_str().replace(' ', "_"),
            "subject": self.subject,
        });
        match &self.finding {
            Finding::Fine { detail } => {
                value["status"] = "ok".into();
                value["detail"] = detail.as_str().into();
            }
            Finding::Skipped { why } => {
                value["status"] = "skipped".into();
                value["detail"] = why.as_str().into();
            }
            Finding::Warning(found) => found.describe("warning", &mut value),
            Finding::Problem(found) => found.describe("problem", &mut value),
        }
        value
    }
}

impl Diagnosis {
    fn describe(&self, status: &str, value: &mut Value) {
        value["status"] = status.into();
        value["code"] = self.code.as_str().into();
        value["cause"] = self.cause.as_str().into();
        value["fix"] = self.fix.as_str().into();
    }
}

/// "1 tool", "2 tools".
pub(super) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The first names and the number of the rest.
pub(super) fn listed(names: &[&str]) -> String {
    let mut text = names[..names.len().min(NAMED)].join(", ");
    if names.len() > NAMED {
        text.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    text
}

/// The command that makes room where something else is in the way, and loses nothing.
pub(super) fn move_away(path: &std::path::Path) -> String {
    let path = quoted(path);
    format!("mv {path} {path}.old")
}
