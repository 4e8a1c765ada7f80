//! `mcpproxy connect`: puts mcpproxy into the config of a client, and takes it out again.

mod list;

use std::time::Duration;

use clients::{Approval, Client, ClientFileError, Endpoint, FileChange, Places, Plan, Receipts};
use config::{Config, Settings};
use redact::Redactor;
use serde_json::{Value, json};

use crate::api::Api;
use crate::args::{ApproveLane, ConnectArgs, Global};
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};
use crate::{consent, escape};

/// How long a daemon may take to say where it listens. One that hangs is started again, there.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(
    args: ConnectArgs,
    global: &Global,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    let places = places()?;
    let Some(name) = &args.client else {
        return Ok(list::run(&places, printer));
    };
    let client = parse_client(name)?;
    let config = crate::settings::load(settings)?.config;
    let receipts = Receipts::new(&settings.data_dir(&config));
    let plan = if args.undo {
        clients::undo(client, &receipts)
    } else {
        let approval = match args.approve {
            Some(ApproveLane::Read) => Approval::Read,
            None => Approval::AsItIs,
        };
        let endpoint = endpoint(&args, client, global, settings, &config).await?;
        clients::connect(client, &places, &endpoint, approval)
    };
    let plan = plan.map_err(|error| client_failure(&error))?;
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
        let question = format!("Change {}?", files(plan.changes.len()));
        let agreed = consent::ask(args.consent, &question, printer)?;
        if agreed {
            backups = plan
                .apply(&receipts)
                .map_err(|error| client_failure(&error))?;
        }
        agreed
    };
    let report = Report {
        plan: &plan,
        applied,
        undo: args.undo,
        backups: &backups,
    };
    report.print(printer)?;
    Ok(Exit::Ok)
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

/// How the client is to reach us. One that only starts programs is given a program.
async fn endpoint(
    args: &ConnectArgs,
    client: Client,
    global: &Global,
    settings: &Settings,
    config: &Config,
) -> Result<Endpoint, Failure> {
    if !args.stdio && client != Client::ClaudeDesktop {
        return Ok(Endpoint::Http {
            url: format!("http://{}/mcp", address(settings, config).await),
            needs_key: config.require_mcp_auth,
        });
    }
    let program = std::env::current_exe().map_err(|error| {
        Failure::from_error(
            Exit::Failed,
            "this program's own place is not known",
            &error,
        )
    })?;
    let mut arguments = vec!["stdio".to_owned()];
    if global.config.is_some() {
        let file = settings.config_file().to_string_lossy().into_owned();
        arguments.extend(["--config".to_owned(), file]);
    }
    if global.data_dir.is_some() {
        let folder = settings.data_dir(config).to_string_lossy().into_owned();
        arguments.extend(["--data-dir".to_owned(), folder]);
    }
    Ok(Endpoint::Stdio {
        command: program.to_string_lossy().into_owned(),
        args: arguments,
    })
}

/// Where the daemon listens, or will once it runs.
async fn address(settings: &Settings, config: &Config) -> std::net::SocketAddr {
    let running = async {
        let api = Api::daemon(settings).await.ok()?;
        let status = super::parse(&api.get("/status").await.ok()?).ok()?;
        status["listen"].as_str()?.parse().ok()
    };
    let running = tokio::time::timeout(PATIENCE, running).await;
    let mut address = running.ok().flatten().unwrap_or(config.listen);
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    address
}

fn preview(plan: &Plan, printer: &Printer) -> Result<(), Failure> {
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
