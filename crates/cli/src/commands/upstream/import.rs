//! `mcpproxy upstream import`: takes over the servers that other clients know.
//!
//! Ours is changed in one step, and a running daemon follows it. Their files are only read, unless the
//! servers are to move.

mod departure;

use std::collections::BTreeSet;

use clients::{Candidate, Client, ImportVerdict};
use config::{Config, ServerConfig, Settings, Sharing};
use policy::ServerName;
use redact::Redactor;
use serde_json::{Value, json};

use self::departure::Departure;
use crate::args::ImportArgs;
use crate::commands::connect::{own_address, parse_client, places, tell_failures};
use crate::commands::count;
use crate::consent;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Entry, Format, Printer};

pub(super) async fn run(args: &ImportArgs, settings: &Settings, printer: &Printer) -> Outcome {
    let from: Result<Vec<Client>, Failure> = args.from.iter().map(|it| parse_client(it)).collect();
    let mut from = from?;
    if from.is_empty() {
        from = Client::ALL.to_vec();
    }
    let config = crate::settings::load(settings)?.config;
    let survey = clients::survey(from, &places()?);
    tell_failures(&survey, printer);
    let mut candidates = clients::select(survey, &config.mcp_servers, &own_address(&config));
    narrow(&mut candidates, &args.server)?;
    let servers: Vec<ServerConfig> = candidates.iter().filter_map(taken).collect();
    if printer.format == Format::Table {
        print_table(&candidates, printer);
    }
    let departure = Departure::plan(&candidates, settings, &config, args.r#move).await?;
    if args.r#move {
        departure.preview(printer)?;
        departure.check()?;
    }
    let wanted = !servers.is_empty() || (args.r#move && !departure.is_empty());
    let imported = wanted && {
        let question = departure.question(servers.len(), args.r#move);
        consent::ask(args.consent, &question, printer)?
    };
    if imported && !servers.is_empty() {
        save(&servers, settings)?;
    }
    if printer.format == Format::Table {
        printer.text(&summary(servers.len(), imported, settings));
    }
    let moved = if imported && args.r#move {
        departure.apply(printer)?;
        true
    } else {
        (imported || servers.is_empty()) && departure.offer(args.consent, printer)?
    };
    if printer.format != Format::Table {
        let mut report = report(&candidates, imported && !servers.is_empty());
        report["moved"] = departure.json(moved || args.consent.dry_run && args.r#move);
        printer.data(&report, Some("servers"));
    }
    Ok(Exit::Ok)
}

fn summary(servers: usize, imported: bool, settings: &Settings) -> String {
    match (servers, imported) {
        (0, _) => "there is nothing to import\n".to_owned(),
        (_, false) => "nothing was changed\n".to_owned(),
        (_, true) => {
            let file = settings.config_file().display();
            let servers = count(servers as u64, "server");
            format!("{servers} imported into {file}\n")
        }
    }
}

/// Keeps the servers that were named.
fn narrow(candidates: &mut Vec<Candidate>, wanted: &[String]) -> Result<(), Failure> {
    let has_name = |candidate: &Candidate, name: &str| {
        candidate.written_name == name || name_of(candidate).is_some_and(|own| own.as_str() == name)
    };
    for name in wanted {
        if !candidates.iter().any(|candidate| has_name(candidate, name)) {
            let known: BTreeSet<&str> = candidates
                .iter()
                .map(|it| it.written_name.as_str())
                .collect();
            let known: Vec<&str> = known.into_iter().collect();
            return Err(
                Failure::new(Exit::NotFound, format!("no client has a server '{name}'"))
                    .why(format!("found were {}", or_none(&known.join(", "))))
                    .advice("look at all of them with `mcpproxy upstream import --dry-run`"),
            );
        }
    }
    if !wanted.is_empty() {
        candidates.retain(|candidate| wanted.iter().any(|name| has_name(candidate, name)));
    }
    Ok(())
}

fn name_of(candidate: &Candidate) -> Option<&ServerName> {
    match &candidate.verdict {
        ImportVerdict::Take(name) | ImportVerdict::Present(name) => Some(name),
        ImportVerdict::Ourselves | ImportVerdict::Unusable(_) => None,
    }
}

/// The server as it will be in our config, if it is taken.
pub(in crate::commands) fn taken(candidate: &Candidate) -> Option<ServerConfig> {
    let ImportVerdict::Take(name) = &candidate.verdict else {
        return None;
    };
    let config = candidate.config.clone()?;
    Some(ServerConfig {
        name: name.clone(),
        sharing: Sharing::suggested(&config.transport),
        ..config
    })
}

pub(in crate::commands) fn save(
    servers: &[ServerConfig],
    settings: &Settings,
) -> Result<(), Failure> {
    crate::settings::edit(settings, |document| {
        for server in servers {
            document.set_server(server);
        }
        Ok(())
    })
}

fn print_table(candidates: &[Candidate], printer: &Printer) {
    if candidates.is_empty() {
        return;
    }
    let rows = candidates.iter().map(|candidate| -> Vec<Entry> {
        let name = name_of(candidate).map_or(candidate.written_name.as_str(), ServerName::as_str);
        vec![
            name.into(),
            clients_of(candidate).join(", ").into(),
            what(candidate).into(),
            outcome(candidate).into(),
        ]
    });
    printer.table(&["SERVER", "FROM", "WHAT", "IMPORT"], rows.collect());
}

fn outcome(candidate: &Candidate) -> String {
    let verdict = match &candidate.verdict {
        ImportVerdict::Take(_) => "yes".to_owned(),
        ImportVerdict::Present(_) => "no: it is here already".to_owned(),
        ImportVerdict::Ourselves => "no: it is mcpproxy itself".to_owned(),
        ImportVerdict::Unusable(why) => format!("no: {why}"),
    };
    [vec![verdict], candidate.notes.clone()].concat().join("; ")
}

/// The command or the address, with what may be secret masked.
fn what(candidate: &Candidate) -> String {
    let entry = masked_entry(candidate);
    if let Some(url) = entry["url"].as_str() {
        return url.to_owned();
    }
    let command = entry["command"].as_str().unwrap_or("-");
    let args = entry["args"].as_array().into_iter().flatten();
    let args = args.filter_map(Value::as_str);
    std::iter::once(command)
        .chain(args)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The entry as `config show` would show it, and its arguments without secrets.
fn masked_entry(candidate: &Candidate) -> Value {
    let Some(server) = candidate.config.clone() else {
        return Value::Null;
    };
    let name = server.name.to_string();
    let config = Config {
        mcp_servers: vec![server],
        ..Config::default()
    };
    let mut entry = config.to_masked_json()["mcpServers"][&name].take();
    if let Some(args) = entry.get_mut("args").and_then(Value::as_array_mut) {
        mask_arguments(args);
    }
    entry
}

/// What looks like a secret, wherever it stands; options that take one are masked already.
fn mask_arguments(args: &mut [Value]) {
    let redactor = Redactor::new([""; 0]).ok();
    for arg in args {
        let text = arg.as_str().unwrap_or_default();
        let safe = redactor.as_ref().map(|redactor| redactor.text(text));
        *arg = safe.map_or(redact::MASK.into(), |safe| safe.into_owned().into());
    }
}

fn report(candidates: &[Candidate], imported: bool) -> Value {
    let servers: Vec<Value> = candidates
        .iter()
        .map(|candidate| {
            let (action, reason) = match &candidate.verdict {
                ImportVerdict::Take(_) => ("import", None),
                ImportVerdict::Present(_) => ("skip", Some("present".to_owned())),
                ImportVerdict::Ourselves => ("skip", Some("mcpproxy itself".to_owned())),
                ImportVerdict::Unusable(why) => ("skip", Some(why.clone())),
            };
            json!({
                "name": name_of(candidate).map(ServerName::as_str),
                "written_name": candidate.written_name,
                "clients": clients_of(candidate),
                "action": action,
                "reason": reason,
                "notes": candidate.notes,
                "entry": masked_entry(candidate),
            })
        })
        .collect();
    json!({"imported": imported, "servers": servers})
}

fn clients_of(candidate: &Candidate) -> Vec<&'static str> {
    let clients = candidate.clients().into_iter();
    clients.map(Client::as_str).collect()
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}
