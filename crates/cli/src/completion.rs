//! What shells offer when somebody presses tab: names of servers, tools and clients as they are
//! now. Asked through an environment variable, before anything else of this program runs.

use std::ffi::OsStr;

use clap::Parser;
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use clients::Client;
use serde_json::Value;

use crate::api::Api;
use crate::args::{Cli, CompletionShell};
use crate::escape;
use crate::exit::{Exit, Failure};

const VARIABLE: &str = "MCPPROXY_COMPLETE";
const PROGRAM: &str = "mcpproxy";

/// Answers a shell, if it is one that asks.
pub(crate) fn answer_shell() -> Result<bool, clap::Error> {
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(crate::args::command)
        .var(VARIABLE)
        .try_complete(std::env::args_os(), folder.as_deref())
}

/// The script that makes a shell ask.
pub(crate) fn script(shell: CompletionShell) -> Result<String, Failure> {
    let failed = || Failure::new(Exit::Failed, "the script cannot be written");
    let shells = Shells::builtins();
    let completer = shells.completer(shell.as_str()).ok_or_else(failed)?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)
        .map_err(|error| {
            Failure::from_error(Exit::Failed, "the script cannot be written", &error)
        })?;
    String::from_utf8(script).map_err(|_| failed())
}

pub(crate) fn servers(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask("/servers", "servers").unwrap_or_else(configured_servers);
    candidates(names, current)
}

pub(crate) fn tools(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(ask("/tools", "tools").unwrap_or_default(), current)
}

pub(crate) fn clients(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = Client::ALL.map(|client| client.as_str().to_owned());
    candidates(names, current)
}

fn candidates(
    names: impl IntoIterator<Item = String>,
    current: &OsStr,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    names
        .into_iter()
        .filter(|name| name.starts_with(&*current))
        // What would act on a terminal is not offered to it.
        .filter(|name| escape::line(name) == *name)
        .map(CompletionCandidate::new)
        .collect()
}

/// The names in an answer of the daemon. Starting servers to complete a word would take too long,
/// so without a daemon there is none.
fn ask(path: &str, member: &str) -> Option<Vec<String>> {
    let settings = crate::settings::locate(&defaults()?).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let answer = runtime.block_on(async { Api::daemon(&settings).await?.get(path).await });
    let answer: Value = serde_json::from_str(answer.ok()?.get()).ok()?;
    let entries = answer[member].as_array()?;
    let names = entries.iter().filter_map(|entry| entry["name"].as_str());
    Some(names.map(str::to_owned).collect())
}

fn configured_servers() -> Vec<String> {
    let settings = defaults().and_then(|global| crate::settings::locate(&global).ok());
    let loaded = settings.and_then(|settings| crate::settings::load(&settings).ok());
    let servers = loaded
        .map(|loaded| loaded.config.mcp_servers)
        .unwrap_or_default();
    servers
        .into_iter()
        .map(|server| server.name.to_string())
        .collect()
}

/// The global flags as the environment sets them; those of the line being typed are not known.
fn defaults() -> Option<crate::args::Global> {
    Some(Cli::try_parse_from([PROGRAM, "status"]).ok()?.global)
}
