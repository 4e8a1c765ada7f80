//! The servers that leave the clients' own files when they are imported.

use clients::{Approval, Candidate, Plan, Receipts};
use config::{Config, Settings};
use serde_json::{Value, json};

use crate::args::Consent;
use crate::commands::connect::{Moving, client_failure, endpoint, places, preview};
use crate::commands::count;
use crate::exit::Failure;
use crate::printer::{Format, Printer};
use crate::{consent, escape};

/// What would leave which files. A client that does not use mcpproxy yet is connected in the same step.
pub(super) struct Departure {
    moving: Moving,
    plans: Vec<Plan>,
    receipts: Receipts,
}

impl Departure {
    /// Works it out. Where it was not asked for, a client that cannot do without its servers is left out.
    pub(super) async fn plan(
        candidates: &[Candidate],
        settings: &Settings,
        config: &Config,
        demanded: bool,
    ) -> Result<Self, Failure> {
        let places = places()?;
        let mut moving = Moving::of(candidates, config);
        let mut plans = Vec::new();
        for client in moving.clients() {
            let leaving = moving.leaving_from(client);
            let uses_us = clients::permissions(client, &places);
            let plan = if uses_us.is_ok_and(|found| found.connected) {
                clients::take_out(client, &leaving)
            } else {
                let endpoint = endpoint(client, false, settings, config).await?;
                clients::connect(client, &places, &endpoint, Approval::AsItIs, &leaving)
            };
            match plan {
                Ok(plan) => plans.push(plan),
                Err(error) if demanded => return Err(client_failure(&error)),
                // Nothing is offered that cannot be done.
                Err(_) => moving.leaving.retain(|origin| origin.client != client),
            }
        }
        Ok(Self {
            moving,
            plans,
            receipts: Receipts::new(&settings.data_dir(config)),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.moving.leaving.is_empty()
    }

    pub(super) fn preview(&self, printer: &Printer) -> Result<(), Failure> {
        self.plans
            .iter()
            .try_for_each(|plan| preview(plan, printer))
    }

    /// Refuses files that cannot be written, before anything is changed anywhere.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let mut plans = self.plans.iter();
        plans
            .try_for_each(Plan::check_writable)
            .map_err(|error| client_failure(&error))
    }

    pub(super) fn question(&self, imports: usize, moves: bool) -> String {
        let imports = count(imports as u64, "server");
        if moves && !self.is_empty() {
            format!("Import {imports} and take {}?", self.what())
        } else {
            format!("Import {imports}?")
        }
    }

    /// Changes the files.
    pub(super) fn apply(&self, printer: &Printer) -> Result<(), Failure> {
        for plan in &self.plans {
            let backups = plan.apply(&self.receipts);
            let backups = backups.map_err(|error| client_failure(&error))?;
            if printer.format == Format::Table {
                let client = plan.client;
                printer.text(&format!(
                    "{} uses them through mcpproxy from its next start on; `mcpproxy connect {client} --undo` puts them back\n",
                    client.title()
                ));
            }
            for backup in backups {
                let backup = escape::line(&backup.to_string_lossy());
                printer.note(&format!("the file as it was: {backup}"));
            }
        }
        for note in &self.moving.notes {
            printer.note(&escape::line(note));
        }
        Ok(())
    }

    /// Asks a person whether the servers are to leave; tells a script how they would.
    pub(super) fn offer(&self, consent: Consent, printer: &Printer) -> Result<bool, Failure> {
        if self.is_empty() || consent.dry_run {
            return Ok(false);
        }
        let question = format!("Take {} too?", self.what());
        if consent::offer(consent, &question, printer) {
            self.apply(printer)?;
            return Ok(true);
        }
        printer.note(&format!(
            "the clients' agents still use them directly, past lanes and log; `mcpproxy upstream import --move` takes {}",
            self.what()
        ));
        Ok(false)
    }

    pub(super) fn json(&self, moved: bool) -> Value {
        if moved { self.moving.json() } else { json!([]) }
    }

    /// "2 servers out of the files of Cursor, Codex".
    fn what(&self) -> String {
        let clients = self.plans.iter().map(|plan| plan.client.title());
        let clients = clients.collect::<Vec<_>>().join(", ");
        let servers = count(self.moving.leaving.len() as u64, "server");
        format!("{servers} out of the files of {clients}")
    }
}
