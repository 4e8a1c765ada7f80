//! `mcpproxy stop`: ends the daemon.

use config::Settings;
use serde_json::json;

use crate::api::Api;
use crate::background;
use crate::exit::{Exit, Outcome};
use crate::printer::{Format, Printer};

pub(crate) async fn run(settings: &Settings, printer: &Printer) -> Outcome {
    let socket = Api::socket(settings).await?;
    let stopped = background::stop(&socket).await?;
    let pid = stopped.map(|daemon| daemon.pid);
    match (printer.format, pid) {
        (Format::Table, Some(pid)) => {
            printer.text(&format!("the daemon has ended (process {pid})\n"));
        }
        (Format::Table, None) => printer.text("no daemon is running\n"),
        _ => printer.data(&json!({ "stopped": pid }), None),
    }
    Ok(Exit::Ok)
}
