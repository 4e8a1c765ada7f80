//! `mcpproxy doctor`: looks at everything that can be wrong, and says what repairs it. It changes
//! nothing itself.

mod check;
mod client_files;
mod clock;
mod code;
mod files;
mod permissions;
mod servers;
mod service;
mod store;
mod tools;

use config::{Config, Settings};
use jiff::Timestamp;

use self::check::{Area, Report};
use self::code::Code;
use self::service::Service;
use crate::api::Api;
use crate::args::{DoctorArgs, DoctorCommand};
use crate::exit::Outcome;
use crate::printer::Printer;

pub(crate) async fn run(args: DoctorArgs, settings: &Settings, printer: &Printer) -> Outcome {
    if let Some(DoctorCommand::Permissions) = args.command {
        return permissions::run(printer);
    }
    let mut report = Report::new(settings);
    let valid_config = files::check_config(settings, &mut report);
    let mut config = valid_config.clone().unwrap_or_default();
    if let Some(listen) = settings.command_line().listen {
        config.listen = listen;
    }
    let data_dir = settings.data_dir(&config);
    // Modes first: whatever opens the data directory later closes it to others.
    let usable = files::check_data_dir(&data_dir, &mut report);
    files::check_disk(&data_dir, &mut report);
    let service = service::check(settings, &config, &mut report).await;
    let closed = match service {
        _ if !usable => Some("the data directory cannot be used"),
        Service::Silent => Some("the daemon does not answer"),
        Service::Absent if valid_config.is_none() => Some("the config is not valid"),
        // A daemon that runs has the last good config.
        Service::Absent | Service::Answers { .. } => None,
    };
    let newest = if let Some(why) = closed {
        report.skipped(Area::Store, why);
        report.skipped(Area::Server, why);
        None
    } else {
        check_inside(settings, valid_config.as_ref(), &service, &mut report).await
    };
    clock::check(newest, &mut report);
    // Clients have to lead to where the daemon is, not to where it would be.
    if let Service::Answers {
        listen: Some(listen),
        ..
    } = service
    {
        config.listen = listen;
    }
    client_files::check(&config, &service, &mut report)?;
    Ok(report.print(printer))
}

/// What can only be seen through the engine: the log and the upstreams. Says of when the newest
/// record is. Without a valid config, the daemon's word is all there is.
async fn check_inside(
    settings: &Settings,
    valid_config: Option<&Config>,
    service: &Service,
    report: &mut Report,
) -> Option<Timestamp> {
    let (reached, restart) = match service {
        Service::Answers { restart, .. } => (Api::daemon(settings).await, restart.clone()),
        Service::Absent | Service::Silent => {
            let config = valid_config?;
            let data_dir = settings.data_dir(config);
            let servers = config.mcp_servers.iter().any(|server| server.enabled);
            store::check_pins(&data_dir, report);
            let log = data_dir.join("activity").exists();
            if !servers && !log {
                report.skipped(Area::Store, "there is no activity log yet");
                report.skipped(Area::Server, "there are no servers in the config");
                return None;
            }
            if !store::can_be_opened(&data_dir, config, report) {
                report.skipped(Area::Server, "the activity log cannot be opened");
                return None;
            }
            (Api::for_log(settings).await, report.command("serve"))
        }
    };
    match reached {
        Ok(api) => {
            let newest = store::check(&api, &restart, report).await;
            match valid_config {
                Some(config) if !api.is_daemon() => servers::check_unstarted(config, report),
                config => servers::check(&api, config, &restart, report).await,
            }
            tools::check(&api, report).await;
            api.close().await;
            newest
        }
        Err(failure) => {
            report.problem(
                Area::Store,
                Code::StoreUnreadable,
                None,
                failure.one_line(),
                restart,
            );
            report.skipped(Area::Server, "the activity log cannot be opened");
            None
        }
    }
}
