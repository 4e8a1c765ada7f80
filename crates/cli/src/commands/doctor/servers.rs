//! Each upstream: its variables, its command, and whether it answers.

use std::path::Path;

use config::{Config, ServerConfig, Transport};
use rustix::fs::{Access, access};

use super::check::{Area, Report};
use crate::api::Api;
use crate::commands::parse;

pub(super) async fn check(api: &Api, config: &Config, report: &mut Report) {
    let answer = async { parse(&api.get("/servers").await?) };
    let answer = match answer.await {
        Ok(answer) => answer,
        Err(failure) => {
            let cause = failure.why.unwrap_or(failure.what);
            report.problem(
                Area::Server,
                "SERVERS_UNKNOWN",
                None,
                cause,
                "mcpproxy serve",
            );
            return;
        }
    };
    if config.mcp_servers.is_empty() {
        report.skipped(Area::Server, "there are no servers in the config");
    }
    for server in &config.mcp_servers {
        let name = server.name.as_str();
        let states = answer["servers"].as_array().into_iter().flatten();
        let state = states.into_iter().find(|state| state["name"] == name);
        let word = |member: &str| {
            state
                .and_then(|state| state[member].as_str())
                .unwrap_or_default()
                .to_owned()
        };
        if !server.enabled {
            report.fine(Area::Server, Some(name), "switched off");
        } else if word("state") == "ready" {
            let tools = state.map_or(0, |state| state["tools"].as_u64().unwrap_or_default());
            report.fine(Area::Server, Some(name), format!("answers, {tools} tools"));
        } else if let Some((code, cause, fix)) = obvious(server) {
            report.problem(Area::Server, code, Some(name), cause, fix);
        } else {
            let (state, error, advice) = (word("state"), word("last_error"), word("advice"));
            let cause = [state, error, advice];
            let cause: Vec<String> = cause.into_iter().filter(|part| !part.is_empty()).collect();
            let fix = format!("mcpproxy upstream restart {name}");
            report.problem(
                Area::Server,
                "SERVER_FAILED",
                Some(name),
                cause.join(": "),
                fix,
            );
        }
    }
}

/// What can be seen without asking the server.
fn obvious(server: &ServerConfig) -> Option<(&'static str, String, String)> {
    let environment = |name: &str| std::env::var(name).ok();
    if let Err(error) = server.resolve(&environment) {
        let fix = "${EDITOR:-vi} \"$(mcpproxy config path)\"".to_owned();
        return Some(("SERVER_VARIABLE_MISSING", error.to_string(), fix));
    }
    let Transport::Stdio { command, .. } = &server.transport else {
        return None;
    };
    let command = command.resolve(&environment).ok()?;
    if is_runnable(&command) {
        return None;
    }
    let cause = format!("`{command}` is not a program that can be run");
    let fix = format!("mcpproxy upstream disable {}", server.name);
    Some(("SERVER_COMMAND_MISSING", cause, fix))
}

fn is_runnable(command: &str) -> bool {
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if command.contains('/') {
        return runs(Path::new(command));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| runs(&folder.join(command)))
}
