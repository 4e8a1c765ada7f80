//! `mcpproxy upstream …`: the servers behind the proxy.

mod import;
mod list;

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
        UpstreamCommand::Import(args) => import::run(&args, settings, printer),
        UpstreamCommand::List => list::run(settings, printer).await,
    }
}
