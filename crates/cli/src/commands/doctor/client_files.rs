//! The configs of clients: whether they parse, lead to us, and ask before something is changed.

use clients::{Client, ImportVerdict, Permissions, Places, SERVER_NAME};
use config::{Config, Transport};

use super::check::{Area, Report, count, listed, quoted};
use super::code::Code;
use super::service::Service;
use crate::commands::connect::{Moving, client_failure, own_address, places};
use crate::exit::Failure;

pub(super) fn check(
    config: &Config,
    service: &Service,
    report: &mut Report,
) -> Result<(), Failure> {
    let places = places()?;
    let mut connected = 0;
    let mut need_daemon = Vec::new();
    for client in Client::ALL {
        match clients::permissions(client, &places) {
            Ok(found) if found.connected => {
                connected += 1;
                let transport = transport(client, &places);
                if let Some(Transport::Http { .. }) = transport {
                    need_daemon.push(client.as_str());
                }
                check_connected(client, &found, transport.as_ref(), config, report);
                let stdio = matches!(transport, Some(Transport::Stdio { .. }));
                check_twice(client, stdio, &places, config, report);
            }
            Ok(_) => {}
            Err(error) => {
                let file = quoted(&client.main_file(&places));
                let fix = format!("${{EDITOR:-vi}} {file}");
                let cause = client_failure(&error).one_line();
                report.problem(
                    Area::Client,
                    Code::ClientFileBroken,
                    Some(client.as_str()),
                    cause,
                    fix,
                );
            }
        }
    }
    if connected == 0 && report.is_fine(Area::Client) {
        report.skipped(Area::Client, "none uses mcpproxy; see `mcpproxy connect`");
    }
    // Clients that start `mcpproxy stdio` need none.
    if !need_daemon.is_empty() && matches!(service, Service::Absent) {
        let clients = need_daemon.join(", ");
        let cause = format!("no daemon is running, and {clients} cannot do without");
        let fix = report.command("serve");
        report.problem(Area::Client, Code::DaemonMissing, None, cause, fix);
    }
    Ok(())
}

fn check_connected(
    client: Client,
    found: &Permissions,
    transport: Option<&Transport>,
    config: &Config,
    report: &mut Report,
) {
    let name = Some(client.as_str());
    if found.changes_silently() {
        let cause = "it runs tools that change or delete without asking".to_owned();
        let fix = report.command(&format!("connect {client} --approve read"));
        report.problem(Area::Client, Code::ClientChangesUnasked, name, cause, fix);
    }
    match transport.and_then(|transport| wrong_endpoint(client, transport, config, report)) {
        Some((code, cause, fix)) => report.problem(Area::Client, code, name, cause, fix),
        None if found.changes_silently() => {}
        None => report.fine(Area::Client, name, "uses mcpproxy"),
    }
}

/// Servers that the client's agent reaches both through us and past us.
fn check_twice(client: Client, stdio: bool, places: &Places, config: &Config, report: &mut Report) {
    let survey = clients::survey([client], places);
    let mut candidates = clients::select(survey, &config.mcp_servers, &own_address(config));
    candidates.retain(|candidate| matches!(candidate.verdict, ImportVerdict::Present(_)));
    let moving = Moving::of(&candidates, config);
    let used = moving.leaving.iter().filter(|origin| origin.enabled);
    let names: Vec<&str> = used.map(|origin| origin.name.as_str()).collect();
    if names.is_empty() {
        return;
    }
    let cause = format!(
        "it still has {} itself, past lanes and log: {}",
        count(names.len(), "server"),
        listed(&names)
    );
    let stdio = if stdio { " --stdio" } else { "" };
    let fix = report.command(&format!("connect {client} --move{stdio}"));
    let name = Some(client.as_str());
    report.warning(Area::Client, Code::ClientServerTwice, name, cause, fix);
}

/// How the client reaches us, by its own file.
fn transport(client: Client, places: &Places) -> Option<Transport> {
    let survey = clients::survey([client], places);
    let mut found = survey.found.into_iter();
    let entry = found.find(|found| found.origin.name == SERVER_NAME)?;
    Some(entry.server.ok()?.config.transport)
}

/// An entry that leads somewhere else.
fn wrong_endpoint(
    client: Client,
    transport: &Transport,
    config: &Config,
    report: &Report,
) -> Option<(Code, String, String)> {
    match transport {
        Transport::Http { url, .. } => {
            let port = url::Url::parse(url.written()).ok()?.port_or_known_default();
            let differs = port != Some(config.listen.port()) && config.listen.port() != 0;
            differs.then(|| {
                let cause = format!(
                    "its address is {url}, and mcpproxy listens on {}",
                    config.listen
                );
                let fix = report.command(&format!("connect {client}"));
                (Code::ClientAddress, cause, fix)
            })
        }
        Transport::Stdio { command, .. } => {
            let missing = command.written().contains('/')
                && !std::path::Path::new(command.written()).exists();
            missing.then(|| {
                let cause = format!("the program {command} is gone");
                let fix = report.command(&format!("connect {client} --stdio"));
                (Code::ClientCommandGone, cause, fix)
            })
        }
    }
}
