//! `mcpproxy service install|uninstall|status`: the daemon as a service of the system.

use config::Settings;
use platform::service::{ServiceError, State};
use serde_json::json;

use crate::api::Api;
use crate::args::ServiceCommand;
use crate::background;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};
use crate::shell;

pub(crate) async fn run(
    command: &ServiceCommand,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    let service = background::service()?;
    let file = service.file();
    let shown = shell::quoted(&file);
    match command {
        ServiceCommand::Install => {
            let socket = Api::socket(settings).await?;
            let data_dir = socket.parent().unwrap_or(&socket);
            let definition =
                background::service_definition(settings, data_dir).ok_or_else(|| {
                    Failure::new(Exit::Failed, "the service cannot be described")
                        .why("a path of its command is not UTF-8")
                        .advice("choose other places with --config and --data-dir")
                })?;
            let installed = service.install(&definition).await;
            installed.map_err(|error| failure(&error, &shown, settings))?;
            match printer.format {
                Format::Table => printer.text(&format!(
                    "the daemon runs now and at every login, by {shown}\n"
                )),
                _ => printer.data(&json!({"installed": true, "file": file}), None),
            }
        }
        ServiceCommand::Uninstall => {
            let removed = service.uninstall().await;
            let removed = removed.map_err(|error| failure(&error, &shown, settings))?;
            match (printer.format, removed) {
                (Format::Table, true) => printer.text(&format!("{shown} is removed\n")),
                (Format::Table, false) => printer.text("no service is installed\n"),
                _ => printer.data(&json!({"removed": removed, "file": file}), None),
            }
        }
        ServiceCommand::Status => {
            let State { installed, running } = service.state().await;
            match printer.format {
                Format::Table => {
                    let running = match running {
                        Some(true) => "it runs",
                        Some(false) => "it does not run",
                        None => "there is no service manager to ask whether it runs",
                    };
                    printer.text(&if installed {
                        format!("installed as {shown}; {running}\n")
                    } else {
                        "no service is installed; install it with `mcpproxy service install`\n"
                            .to_owned()
                    });
                }
                _ => printer.data(
                    &json!({"installed": installed, "running": running, "file": file}),
                    None,
                ),
            }
        }
    }
    Ok(Exit::Ok)
}

fn failure(error: &ServiceError, file: &str, settings: &Settings) -> Failure {
    let failure = Failure::from_error(Exit::Failed, "the service cannot be installed", error);
    let serve = format!("{} serve", shell::program(settings));
    match error {
        ServiceError::NoManager { .. } | ServiceError::Refused { .. } => failure.advice(format!(
            "{file} is written; where no service manager runs, as in a container, use `{serve}`"
        )),
        _ => failure.advice(format!("make {file} writable, or use `{serve}`")),
    }
}
