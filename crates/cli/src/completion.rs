//! What shells offer when somebody presses tab: names of servers, tools and clients as they are
//! now. Asked through an environment variable, before anything else of this program runs.

use std::ffi::{OsStr, OsString};

use clap::{Args, Command, Parser};
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use clients::Client;
use serde_json::Value;

use crate::api::Api;
use crate::args::{Cli, CompletionShell, Global};
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

/// The tools of the server that the line names, without its name.
pub(crate) fn tools_of_server(current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<String> = typed_words().iter().map(|word| unquoted(word)).collect();
    let tools = ask("/tools", "tools").unwrap_or_default();
    let of_server = tools.iter().filter_map(|tool| {
        let (server, name) = tool.split_once(':')?;
        words
            .iter()
            .any(|word| word == server)
            .then(|| name.to_owned())
    });
    candidates(of_server, current)
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
    let settings = crate::settings::locate(&flags()?).ok()?;
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
    let settings = flags().and_then(|global| crate::settings::locate(&global).ok());
    let loaded = settings.and_then(|settings| crate::settings::load(&settings).ok());
    let servers = loaded
        .map(|loaded| loaded.config.mcp_servers)
        .unwrap_or_default();
    servers
        .into_iter()
        .map(|server| server.name.to_string())
        .collect()
}

/// The global flags as the environment and the line being typed set them.
fn flags() -> Option<Global> {
    let words = typed_words();
    let line = [PROGRAM.to_owned(), "status".to_owned()];
    Some(
        Cli::try_parse_from(line.into_iter().chain(global_options(&words)))
            .ok()?
            .global,
    )
}

/// The words of the line, which a shell hands over after `--`.
fn typed_words() -> Vec<String> {
    std::env::args_os()
        .skip_while(|word| word != "--")
        .skip(2)
        .map(|word: OsString| word.to_string_lossy().into_owned())
        .collect()
}

/// The global options with values among the words of a line. The line is not finished and need not
/// parse, so they are looked for and not parsed.
fn global_options(words: &[String]) -> Vec<String> {
    let known = Global::augment_args(Command::new(PROGRAM));
    let names: Vec<String> = known
        .get_arguments()
        .filter(|argument| argument.get_action().takes_values())
        .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
        .collect();
    // What follows is for the program of a server.
    let mut words = words.iter().take_while(|word| *word != "--").peekable();
    let mut given = Vec::new();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        if !names.iter().any(|known| known == name) {
            continue;
        }
        // bash takes `--name=value` apart into three words.
        if value.is_none() {
            words.next_if(|word| *word == "=");
        }
        let value = value.or_else(|| words.next().map(String::as_str));
        if let Some(value) = value.map(unquoted).filter(|value| !value.is_empty()) {
            given.push(format!("{name}={value}"));
        }
    }
    given
}

/// A word as the shell would hand it over if the line were run: shells complete what is typed.
fn unquoted(word: &str) -> String {
    let word = match (word.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => format!("{}/{rest}", home.display()),
        _ => word.to_owned(),
    };
    let mut text = String::with_capacity(word.len());
    let mut quote = None;
    let mut characters = word.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None) => text.extend(characters.next()),
            ('\'' | '"', None) => quote = Some(character),
            (character, Some(open)) if character == open => quote = None,
            (character, _) => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split('|').map(str::to_owned).collect();
        global_options(&words)
    }

    #[test]
    fn options_are_found_wherever_they_stand() {
        for (line, found) in [
            ("upstream|remove|", &[][..]),
            ("--config|a.json|upstream|remove|", &["--config=a.json"]),
            ("upstream|remove|--config=a.json|", &["--config=a.json"]),
            ("upstream|remove|--config|=|a.json|", &["--config=a.json"]),
            (
                "tools|list|--data-dir|d|--config|a|",
                &["--data-dir=d", "--config=a"],
            ),
            ("tools|list|--nonsense|--data-dir|d|", &["--data-dir=d"]),
            (
                "--config|'my file'|--listen|127.0.0.1:1|",
                &["--config=my file", "--listen=127.0.0.1:1"],
            ),
            ("--config|my\\ \\\"file|", &["--config=my \"file"]),
            ("--quiet|-o|json|status|", &[]),
            ("upstream|add|x|--|program|--config|theirs", &[]),
            ("tools|list|--config|", &[]),
            ("tools|list|--config", &[]),
        ] {
            assert_eq!(options(line), found, "{line}");
        }
    }

    #[test]
    fn a_tilde_is_the_home() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(unquoted("~/a.json"), format!("{}/a.json", home.display()));
        assert_eq!(unquoted("a~/b"), "a~/b");
    }
}
