//! `mcpproxy connect`: puts mcpproxy into the config of a client, and takes it out again.

mod endpoint;
mod list;
mod moving;
mod unannotated;

use clients::{Approval, Client, ClientFileError, FileChange, OwnAddress, Places, Plan, Receipts};
use config::{Config, Settings};
use redact::Redactor;
use serde_json::{Value, json};

pub(in crate::commands) use self::endpoint::endpoint;
pub(in crate::commands) use self::moving::Moving;
use crate::args::{ApproveLane, ConnectArgs};
use crate::commands::count;
use crate::commands::upstream::import;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};
use crate::{consent, escape};

pub(crate) async fn run(args: ConnectArgs, settings: &Settings, printer: &Printer) -> Outcome {
    let places = places()?;
    let Some(name) = &args.client else {
        return Ok(list::run(&places, printer));
    };
    let client = parse_client(name)?;
    let config = crate::settings::load(settings)?.config;
    let receipts = Receipts::new(&settings.data_dir(&config));
    let mut moving = Moving::default();
    let plan = if args.undo {
        clients::undo(client, &receipts)
    } else {
        let approval = match args.approve {
            Some(ApproveLane::Read) => Approval::Read,
            None => Approval::AsItIs,
        };
        if args.r#move {
            moving = survey(client, &places, &config, printer);
        }
        let endpoint = endpoint(client, args.stdio, settings, &config).await?;
        clients::connect(client, &places, &endpoint, approval, &moving.leaving)
    };
    let mut plan = plan.map_err(|error| client_failure(&error))?;
    plan.notes.append(&mut moving.notes);
    let mut backups = Vec::new();
    let applied = if plan.changes.is_empty() {
        // Nothing is left to take out, so neither is the note of it.
        if args.undo && !args.consent.dry_run {
            let done = plan.apply(&receipts);
            done.map_err(|error| client_failure(&error))?;
        }
        false
    } else {
        preview(&plan, printer)?;
        let agreed = consent::ask(args.consent, &question(&plan, &moving), printer)?;
        if agreed {
            backups = apply(&plan, &moving, &receipts, settings)?;
        }
        agreed
    };
    let report = Report {
        plan: &plan,
        moving: &moving,
        applied,
        undo: args.undo,
        backups: &backups,
    };
    report.print(printer)?;
    if args.approve.is_some() {
        unannotated::decide(&args, settings, &config, printer).await?;
    }
    Ok(Exit::Ok)
}

/// What of a client's own servers is to move. A file that cannot be read is told and left alone.
fn survey(client: Client, places: &Places, config: &Config, printer: &Printer) -> Moving {
    let survey = clients::survey([client], places);
    tell_failures(&survey, printer);
    let candidates = clients::select(survey, &config.mcp_servers, &own_address(config));
    Moving::of(&candidates, config)
}

pub(in crate::commands) fn tell_failures(survey: &clients::Survey, printer: &Printer) {
    for (client, error) in &survey.failures {
        let cause = client_failure(error).one_line();
        let text = format!("warning: {}: {cause}", client.title());
        printer.note(&escape::line(&text));
    }
}

pub(in crate::commands) fn own_address(config: &Config) -> OwnAddress {
    OwnAddress {
        listen: config.listen,
        program: std::env::current_exe().ok(),
    }
}

/// Our config first and the client's files last: if something fails in between, a server is in both.
fn apply(
    plan: &Plan,
    moving: &Moving,
    receipts: &Receipts,
    settings: &Settings,
) -> Result<Vec<std::path::PathBuf>, Failure> {
    plan.check_writable()
        .map_err(|error| client_failure(&error))?;
    if !moving.imports.is_empty() {
        import::save(&moving.imports, settings)?;
    }
    plan.apply(receipts).map_err(|error| client_failure(&error))
}

fn question(plan: &Plan, moving: &Moving) -> String {
    let files = files(plan.changes.len());
    match moving.leaving.len() {
        0 => format!("Change {files}?"),
        moved => {
            let servers = count(moved as u64, "server");
            format!("Change {files} and move {servers} into mcpproxy?")
        }
    }
}

/// Where clients keep their files, seen from here.
pub(in crate::commands) fn places() -> Result<Places, Failure> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| {
        Failure::new(
            Exit::Failed,
            "there is no home directory to look for clients in",
        )
        .advice("set HOME")
    })?;
    let project = std::env::current_dir().ok();
    Ok(Places::new(&home, clients::Platform::current())
        .with_environment(|name| std::env::var_os(name))
        .with_project(project.as_deref()))
}

pub(in crate::commands) fn parse_client(name: &str) -> Result<Client, Failure> {
    name.parse().map_err(|error: clients::UnknownClient| {
        let known = Client::ALL.map(Client::as_str).join(", ");
        let failure = Failure::new(Exit::NotFound, format!("there is no client '{name}'"))
            .why(format!("known are {known}"));
        match error.near {
            Some(near) => failure.advice(format!("did you mean '{near}'?")),
            None => failure.advice("choose one of these"),
        }
    })
}

pub(in crate::commands) fn client_failure(error: &ClientFileError) -> Failure {
    let exit = match error {
        ClientFileError::NothingToUndo { .. } => Exit::NotFound,
        ClientFileError::KeyNeeded { .. } | ClientFileError::OnlyStdio { .. } => Exit::Usage,
        _ => Exit::Failed,
    };
    let failure = Failure::new(exit, error.to_string()).advice(error.advice());
    match std::error::Error::source(error) {
        Some(source) => failure.why(source.to_string()),
        None => failure,
    }
}

pub(in crate::commands) fn preview(plan: &Plan, printer: &Printer) -> Result<(), Failure> {
    if printer.format == Format::Table {
        for change in &plan.changes {
            printer.diff(&masked_diff(change)?);
        }
    }
    Ok(())
}

/// The change without the secrets that stand around it.
fn masked_diff(change: &FileChange) -> Result<String, Failure> {
    let redactor = Redactor::new(change.secrets())
        .map_err(|error| Failure::from_error(Exit::Failed, "secrets cannot be masked", &error))?;
    Ok(escape::lines(&redactor.text(&change.diff())))
}

struct Report<'a> {
    plan: &'a Plan,
    moving: &'a Moving,
    applied: bool,
    undo: bool,
    backups: &'a [std::path::PathBuf],
}

impl Report<'_> {
    fn print(&self, printer: &Printer) -> Result<(), Failure> {
        if printer.format != Format::Table {
            printer.data(&self.json()?, None);
            return Ok(());
        }
        let client = self.plan.client.title();
        let changes = self.plan.changes.len();
        let text = match (self.applied, self.undo, changes) {
            (_, false, 0) => format!("{client} has mcpproxy already; nothing to change\n"),
            (_, true, 0) => format!("{client} is as it was; nothing to change\n"),
            (true, false, _) => format!("{client} uses mcpproxy from its next start on\n"),
            (true, true, _) => format!("mcpproxy is out of {client}\n"),
            (false, _, _) => "nothing was changed\n".to_owned(),
        };
        printer.text(&text);
        if self.applied && !self.moving.leaving.is_empty() {
            let moved = count(self.moving.leaving.len() as u64, "server");
            printer.text(&format!(
                "{moved} of {client} moved into mcpproxy; `mcpproxy connect {} --undo` puts them back\n",
                self.plan.client
            ));
        }
        for backup in self.backups {
            printer.note(&format!(
                "the file as it was: {}",
                escape::line(&backup.to_string_lossy())
            ));
        }
        for note in &self.plan.notes {
            printer.note(&escape::line(note));
        }
        Ok(())
    }

    fn json(&self) -> Result<Value, Failure> {
        let files: Result<Vec<Value>, Failure> = self
            .plan
            .changes
            .iter()
            .map(|change| {
                let kind = match (&change.before, &change.after) {
                    (None, _) => "create",
                    (_, None) => "remove",
                    _ => "edit",
                };
                Ok(json!({"path": change.path, "change": kind, "diff": masked_diff(change)?}))
            })
            .collect();
        Ok(json!({
            "client": self.plan.client.as_str(),
            "action": if self.undo { "undo" } else { "connect" },
            "applied": self.applied,
            "files": files?,
            "moved": self.moving.json(),
            "backups": self.backups,
            "notes": self.plan.notes,
        }))
    }
}

fn files(count: usize) -> String {
    match count {
        1 => "this file".to_owned(),
        count => format!("these {count} files"),
    }
}
