//! `mcpproxy doctor`: looks at everything that can be wrong, and says what repairs it.

mod check;
mod client_files;
mod files;
mod permissions;
mod servers;
mod service;

use config::{Config, Settings};

use self::check::{Area, Report};
use crate::api::{Api, Needs};
use crate::args::{DoctorArgs, DoctorCommand};
use crate::exit::Outcome;
use crate::printer::Printer;

pub(crate) async fn run(args: DoctorArgs, settings: &Settings, printer: &Printer) -> Outcome {
    if let Some(DoctorCommand::Permissions) = args.command {
        return permissions::run(printer);
    }
    let mut report = Report::default();
    let config = files::check_config(settings, &mut report);
    let valid = config.is_some();
    let mut config = config.unwrap_or_default();
    let data_dir = settings.data_dir(&config);
    // Modes first: whatever opens the data directory later closes it to others.
    files::check_data_dir(&data_dir, &mut report);
    files::check_disk(&data_dir, &mut report);
    let running = service::check(settings, &config, &mut report).await;
    if valid {
        check_inside(settings, &config, running.is_some(), &mut report).await;
    } else {
        report.skipped(Area::Store, "the config is not valid");
        report.skipped(Area::Server, "the config is not valid");
    }
    // Clients have to lead to where the daemon is, not to where it would be.
    config.listen = running.unwrap_or(config.listen);
    client_files::check(&config, &mut report)?;
    Ok(report.print(printer))
}

/// What can only be seen through the engine: the log and the upstreams.
async fn check_inside(settings: &Settings, config: &Config, running: bool, report: &mut Report) {
    let servers = config.mcp_servers.iter().any(|server| server.enabled);
    let log = settings.data_dir(config).join("activity").exists();
    if !running && !servers && !log {
        report.skipped(Area::Store, "there is no activity log yet");
        report.skipped(Area::Server, "there are no servers in the config");
        return;
    }
    let needs = if servers {
        Needs::AllServers
    } else {
        Needs::Log
    };
    match Api::reach(settings, needs).await {
        Ok(api) => {
            service::check_store(&api, report).await;
            servers::check(&api, config, report).await;
            api.close().await;
        }
        Err(failure) => {
            let cause = failure.why.unwrap_or(failure.what);
            report.problem(
                Area::Store,
                "STORE_UNREADABLE",
                None,
                cause,
                "mcpproxy serve",
            );
            report.skipped(Area::Server, "the activity log cannot be opened");
        }
    }
}
