//! `mcpproxy upstream quarantine`: keeps tools from being called until they are approved.

use config::Settings;
use serde_json::json;

use super::path;
use crate::api::Api;
use crate::args::ToolSelection;
use crate::commands::parse;
use crate::escape;
use crate::exit::{Exit, Outcome};
use crate::printer::{Format, Printer};

pub(super) async fn run(
    selection: &ToolSelection,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    let api = Api::start(settings).await?;
    api.connected(&selection.server).await?;
    let body = json!({"tools": selection.tools});
    let answer = api
        .post(&format!("{}/quarantine", path(&selection.server)), &body)
        .await;
    let marked = parse(&answer?)?;
    if printer.format != Format::Table {
        printer.data(&marked, Some("tools"));
        return Ok(Exit::Ok);
    }
    let what = match selection.tools.as_slice() {
        [] => format!("all tools of {}", selection.server),
        names => format!("{} of {}", names.join(", "), selection.server),
    };
    printer.text(&format!("in quarantine: {}\n", escape::line(&what)));
    let approve = super::diff::approve_command(selection);
    printer.note(&format!("end it with `{approve}`"));
    Ok(Exit::Ok)
}
