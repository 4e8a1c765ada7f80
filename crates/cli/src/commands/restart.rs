//! `mcpproxy restart`: ends the daemon and starts it again, in the background or as the service that
//! is installed.

use config::Settings;
use daemon::StartedBy;

use crate::api::Api;
use crate::background;
use crate::exit::{Exit, Outcome};
use crate::printer::{Format, Printer};

pub(crate) async fn run(settings: &Settings, printer: &Printer) -> Outcome {
    let socket = Api::socket(settings).await?;
    let stopped = background::stop(&socket).await?;
    let api = Api::start(settings).await?;
    let status = super::parse(&api.get("/status").await?)?;
    if printer.format != Format::Table {
        printer.data(&status, None);
        return Ok(Exit::Ok);
    }
    let before = match &stopped {
        Some(daemon) => format!(" in place of process {}", daemon.pid),
        None => String::new(),
    };
    let pid = &status["pid"];
    printer.text(&format!("the daemon runs as process {pid}{before}\n"));
    let was_in_terminal =
        stopped.is_some_and(|daemon| daemon.started_by == Some(StartedBy::Terminal));
    if was_in_terminal {
        printer.note(
            "it was in a terminal and is in the background now, with the environment of this one",
        );
    }
    Ok(Exit::Ok)
}
