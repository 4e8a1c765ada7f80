//! `mcpproxy upstream …`: the servers behind the proxy.

mod add;
mod approve;
mod diff;
pub(super) mod import;
mod list;
mod logs;
mod manage;
mod quarantine;

use config::Settings;

use crate::api::segment;
use crate::args::UpstreamCommand;
use crate::exit::Outcome;
use crate::printer::Printer;

pub(crate) async fn run(
    command: UpstreamCommand,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    match command {
        UpstreamCommand::Import(args) => import::run(&args, settings, printer).await,
        UpstreamCommand::List => list::run(settings, printer).await,
        UpstreamCommand::Add(args) => add::run(&args, settings, printer).await,
        UpstreamCommand::Remove(server) => manage::remove(&server, settings, printer).await,
        UpstreamCommand::Enable(server) => manage::switch(&server, true, settings, printer).await,
        UpstreamCommand::Disable(server) => manage::switch(&server, false, settings, printer).await,
        UpstreamCommand::Restart(server) => manage::restart(&server, settings, printer).await,
        UpstreamCommand::Logs {
            server,
            lines,
            follow,
        } => {
            let what = logs::What {
                name: &server.name,
                lines,
            };
            logs::run(&what, follow, settings, printer).await
        }
        UpstreamCommand::Diff(selection) => diff::run(&selection, settings, printer).await,
        UpstreamCommand::Approve(selection) => approve::run(&selection, settings, printer).await,
        UpstreamCommand::Quarantine(selection) => {
            quarantine::run(&selection, settings, printer).await
        }
    }
}

/// The path of a server in the API.
fn path(name: &str) -> String {
    format!("/servers/{}", segment(name))
}
