//! `docs/cli.md`: every command with its arguments.

use clap::{Arg, Command, CommandFactory};

use super::{cell, keep_part};
use crate::args::Cli;

#[test]
fn the_command_line_is_documented() {
    let mut root = Cli::command();
    root.build();
    let mut text = String::from("### Options of every command\n\n");
    text.push_str(&arguments(
        root.get_arguments().filter(|it| it.is_global_set()),
    ));
    for command in root.get_subcommands() {
        describe(command, "mcpproxy", &mut text);
    }
    keep_part("cli.md", &text);
}

fn describe(command: &Command, parent: &str, text: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    if command.has_subcommands() {
        // `doctor` is a command and has one.
        if !command.is_subcommand_required_set() {
            describe_itself(command, &name, text);
        }
        for command in command.get_subcommands() {
            describe(command, &name, text);
        }
        return;
    }
    describe_itself(command, &name, text);
}

fn describe_itself(command: &Command, name: &str, text: &mut String) {
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    text.push_str(&format!("\n### `{name}`\n\n{about}.\n"));
    let own: Vec<&Arg> = command
        .get_arguments()
        .filter(|it| !it.is_global_set() && !it.is_hide_set())
        .filter(|it| !["help", "version"].contains(&it.get_id().as_str()))
        .collect();
    if !own.is_empty() {
        text.push('\n');
        text.push_str(&arguments(own.into_iter()));
    }
}

fn arguments<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = String::from("| argument | meaning |\n|---|---|\n");
    for argument in arguments {
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let environment = argument
            .get_env()
            .map(|name| format!(" (`{}`)", name.display()));
        let defaults: Vec<String> = argument
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let defaults = match defaults.as_slice() {
            [] => String::new(),
            values
                if argument
                    .get_num_args()
                    .is_some_and(|number| number.takes_values()) =>
            {
                format!("; `{}` unless given", values.join(" "))
            }
            _ => String::new(),
        };
        text.push_str(&format!(
            "| `{}` | {}{}{} |\n",
            cell(&argument.to_string()),
            cell(&help),
            defaults,
            environment.unwrap_or_default()
        ));
    }
    text
}
