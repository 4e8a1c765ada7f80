//! Examples at the end of every `--help`, in one table so that they are read and kept together.

use clap::{Command, CommandFactory};

use super::Cli;

/// A command by its path, and what somebody would type.
const EXAMPLES: [(&str, &[&str]); 42] = [
    (
        "serve",
        &["mcpproxy serve", "mcpproxy serve --listen 127.0.0.1:9000"],
    ),
    ("stdio", &["mcpproxy stdio"]),
    (
        "call tool-read",
        &["mcpproxy call tool-read demo:list_notes"],
    ),
    (
        "call tool-write",
        &["mcpproxy call tool-write demo:create_note --args '{\"title\": \"Hello\"}'"],
    ),
    (
        "call tool-destructive",
        &["echo '{\"id\": 1}' | mcpproxy call tool-destructive demo:purge_note --args -"],
    ),
    (
        "tools list",
        &[
            "mcpproxy tools list --lane write",
            "mcpproxy tools list -o json",
        ],
    ),
    (
        "tools search",
        &["mcpproxy tools search \"find a note\" --limit 5"],
    ),
    ("tools show", &["mcpproxy tools show demo:list_notes"]),
    (
        "tools override set",
        &["mcpproxy tools override set 'github:delete_*' destructive"],
    ),
    ("tools override list", &["mcpproxy tools override list"]),
    (
        "tools override clear",
        &["mcpproxy tools override clear 'github:delete_*'"],
    ),
    (
        "audit",
        &[
            "mcpproxy audit --server demo",
            "mcpproxy audit --tools saved.json --format sarif",
        ],
    ),
    (
        "activity list",
        &[
            "mcpproxy activity list --intent-type write --since 2h",
            "mcpproxy activity list -q invoice",
        ],
    ),
    (
        "activity show",
        &["mcpproxy activity show 01JD0000000000000000000000"],
    ),
    (
        "activity watch",
        &["mcpproxy activity watch --status blocked"],
    ),
    (
        "activity summary",
        &["mcpproxy activity summary --period 7d --by tool"],
    ),
    (
        "activity export",
        &["mcpproxy activity export --format csv --output calls.csv"],
    ),
    (
        "activity simulate",
        &[
            "mcpproxy activity simulate --set intent_declaration.unannotated=infer",
            "mcpproxy activity simulate --set 'tool_overrides.github:*=destructive' --since 7d",
        ],
    ),
    (
        "activity verify",
        &[
            "mcpproxy activity verify",
            "mcpproxy activity verify --head \"$(cat head-of-last-week)\"",
        ],
    ),
    ("upstream list", &["mcpproxy upstream list"]),
    ("upstream remove", &["mcpproxy upstream remove github"]),
    ("upstream enable", &["mcpproxy upstream enable github"]),
    ("upstream disable", &["mcpproxy upstream disable github"]),
    ("upstream restart", &["mcpproxy upstream restart github"]),
    (
        "upstream logs",
        &[
            "mcpproxy upstream logs github --lines 20",
            "mcpproxy upstream logs github --follow",
        ],
    ),
    (
        "upstream diff",
        &[
            "mcpproxy upstream diff github",
            "mcpproxy upstream diff github create_issue",
        ],
    ),
    (
        "upstream approve",
        &[
            "mcpproxy upstream approve github",
            "mcpproxy upstream approve github create_issue",
        ],
    ),
    (
        "upstream quarantine",
        &[
            "mcpproxy upstream quarantine github",
            "mcpproxy upstream quarantine github create_issue",
        ],
    ),
    ("config path", &["mcpproxy config path"]),
    ("config show", &["mcpproxy config show -o yaml"]),
    ("config check", &["mcpproxy config check"]),
    (
        "config set",
        &["mcpproxy config set intent_declaration.unannotated infer"],
    ),
    ("config schema", &["mcpproxy config schema > schema.json"]),
    ("status", &["mcpproxy status -o json"]),
    ("stop", &["mcpproxy stop"]),
    ("restart", &["mcpproxy restart"]),
    (
        "logs",
        &["mcpproxy logs --lines 20", "mcpproxy logs --follow"],
    ),
    ("service install", &["mcpproxy service install"]),
    ("service uninstall", &["mcpproxy service uninstall"]),
    ("service status", &["mcpproxy service status"]),
    ("doctor permissions", &["mcpproxy doctor permissions"]),
    (
        "demo-server",
        &["mcpproxy demo-server --store notes.sqlite"],
    ),
];

/// The command line, with examples.
pub(crate) fn command() -> Command {
    with_examples(Cli::command(), "")
}

/// The name of the command on this process's command line, such as `stdio`.
pub(crate) fn command_name() -> String {
    let command = Cli::command();
    let mut words = std::env::args().skip(1);
    let name = words.find(|word| command.find_subcommand(word).is_some());
    name.unwrap_or_else(|| "mcpproxy".to_owned())
}

fn with_examples(command: Command, path: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .collect();
    let command = names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |inner| with_examples(inner, path.trim()))
    });
    match EXAMPLES.iter().find(|(of, _)| *of == path) {
        Some((_, lines)) => {
            let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
            command.after_help(format!("Examples:\n{lines}"))
        }
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// The words of a line as a shell would split them; there are only simple ones here.
    fn words(line: &str) -> Vec<String> {
        let line = line.rsplit("| ").next().unwrap_or_default();
        let line = line.split(" > ").next().unwrap_or_default();
        let mut words = Vec::new();
        for (index, part) in line.split(['\'', '"']).enumerate() {
            // Only whole quoted words are used, and JSON is in single quotes.
            if index % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    fn help(path: &str) -> String {
        let mut command = command();
        let mut found = &mut command;
        for name in path.split(' ') {
            found = found.find_subcommand_mut(name).unwrap();
        }
        found.render_long_help().to_string()
    }

    #[test]
    fn every_example_is_of_a_command_that_takes_it() {
        for (path, lines) in EXAMPLES {
            for line in lines.iter().filter(|line| !line.contains('{')) {
                let parsed = Cli::try_parse_from(words(line));
                assert!(parsed.is_ok(), "{path}: {line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn help_shows_them() {
        for (path, lines) in EXAMPLES {
            let help = help(path);
            assert!(help.contains(lines[0]), "{path}: {help}");
        }
    }

    /// The commands without commands of their own that a person can find, by their path.
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            let path = format!("{path} {}", inner.get_name());
            if inner.has_subcommands() {
                leaves(inner, &path, found);
            }
            // `doctor` is a command and has one.
            if !inner.is_subcommand_required_set() {
                found.push(path.trim().to_owned());
            }
        }
    }

    #[test]
    fn no_command_is_without() {
        let mut found = Vec::new();
        leaves(&command(), "", &mut found);
        assert!(found.len() > 30, "{found:?}");
        for path in found {
            let help = help(&path);
            let examples = help.split_once("Examples:").map(|(_, examples)| examples);
            assert!(
                examples.is_some_and(|lines| lines.contains(&format!("mcpproxy {path}"))),
                "{path} has no example of itself: {help}"
            );
        }
    }
}
