//! Each upstream: its variables, its command, and whether it answers.

use std::path::Path;
use std::time::Duration;

use config::{Config, ServerConfig, Transport};
use rustix::fs::{Access, access};
use serde_json::Value;

use super::check::{Area, Report, count};
use super::code::Code;
use crate::api::Api;
use crate::commands::parse;
use crate::exit::Failure;

/// How long the daemon may take to tell about its servers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks at the servers of the config or, where it is not valid, at those of the daemon.
pub(super) async fn check(api: &Api, config: Option<&Config>, restart: &str, report: &mut Report) {
    let answer = async { parse(&api.get("/servers").await?) };
    let answer = match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => answer.map_err(Failure::one_line),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(cause) => {
            report.problem(Area::Server, Code::ServersUnknown, None, cause, restart);
            return;
        }
    };
    let states: Vec<&Value> = answer["servers"].as_array().into_iter().flatten().collect();
    let Some(config) = config else {
        for state in states {
            let name = state["name"].as_str().unwrap_or_default();
            check_server(name, None, Some(state), report);
        }
        return;
    };
    if config.mcp_servers.is_empty() {
        report.skipped(Area::Server, "there are no servers in the config");
    }
    for server in &config.mcp_servers {
        let name = server.name.as_str();
        let state = states.iter().copied().find(|state| state["name"] == name);
        check_server(name, Some(server), state, report);
    }
}

/// Looks at what can be seen of servers while no daemon runs.
pub(super) fn check_unstarted(config: &Config, report: &mut Report) {
    let mut unknown = Vec::new();
    for server in &config.mcp_servers {
        let name = server.name.as_str();
        if !server.enabled {
            report.fine(Area::Server, Some(name), "switched off");
        } else if let Some((code, cause, fix)) = obvious(server, report) {
            report.problem(Area::Server, code, Some(name), cause, fix);
        } else {
            unknown.push(name);
        }
    }
    if !unknown.is_empty() {
        let cause = format!(
            "no daemon is running, so these servers were not asked: {}",
            unknown.join(", ")
        );
        let fix = report.command("restart");
        report.warning(Area::Server, Code::DaemonMissing, None, cause, fix);
    }
}

fn check_server(
    name: &str,
    server: Option<&ServerConfig>,
    state: Option<&Value>,
    report: &mut Report,
) {
    let word = |member: &str| {
        state
            .and_then(|state| state[member].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    let enabled = server.map_or(word("state") != "disabled", |server| server.enabled);
    if !enabled {
        report.fine(Area::Server, Some(name), "switched off");
    } else if word("state") == "ready" {
        let tools = state.and_then(|state| usize::try_from(state["tools"].as_u64()?).ok());
        let tools = count(tools.unwrap_or_default(), "tool");
        report.fine(Area::Server, Some(name), format!("answers, {tools}"));
    } else if let Some((code, cause, fix)) = server.and_then(|server| obvious(server, report)) {
        report.problem(Area::Server, code, Some(name), cause, fix);
    } else {
        let cause = [word("state"), word("last_error"), word("advice")];
        let cause: Vec<String> = cause.into_iter().filter(|part| !part.is_empty()).collect();
        // It is started again by itself; what it says tells what to do.
        let fix = match server.map(|server| &server.transport) {
            Some(Transport::Http { .. }) => edit_config(report),
            _ => report.command(&format!("upstream logs {name}")),
        };
        let cause = cause.join(": ");
        report.problem(Area::Server, Code::ServerFailed, Some(name), cause, fix);
    }
}

/// What can be seen without asking the server.
fn obvious(server: &ServerConfig, report: &Report) -> Option<(Code, String, String)> {
    let environment = |name: &str| std::env::var(name).ok();
    if let Err(error) = server.resolve(&environment) {
        return Some((
            Code::ServerVariableMissing,
            error.to_string(),
            edit_config(report),
        ));
    }
    let Transport::Stdio { command, .. } = &server.transport else {
        return None;
    };
    let command = command.resolve(&environment).ok()?;
    if is_runnable(&command) {
        return None;
    }
    let cause = format!("`{command}` is not a program that can be run");
    let fix = report.command(&format!("upstream disable {}", server.name));
    Some((Code::ServerCommandMissing, cause, fix))
}

fn edit_config(report: &Report) -> String {
    format!("${{EDITOR:-vi}} \"$({})\"", report.command("config path"))
}

fn is_runnable(command: &str) -> bool {
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if command.contains('/') {
        return runs(Path::new(command));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| runs(&folder.join(command)))
}
