//! `mcpproxy upstream …`: the servers behind the proxy.

mod approve;
mod diff;
mod list;
mod quarantine;

use config::Settings;

use crate::args::UpstreamCommand;
use crate::exit::Outcome;
use crate::printer::Printer;

pub(crate) async fn run(
    command: UpstreamCommand,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    match command {
        UpstreamCommand::List => list::run(settings, printer).await,
        UpstreamCommand::Diff(selection) => diff::run(&selection, settings, printer).await,
        UpstreamCommand::Approve(selection) => approve::run(&selection, settings, printer).await,
        UpstreamCommand::Quarantine(selection) => {
            quarantine::run(&selection, settings, printer).await
        }
    }
}
