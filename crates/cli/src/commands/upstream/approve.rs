//! `mcpproxy upstream approve`: the operator's word that tools may be as they are now.

use config::Settings;
use serde_json::{Map, Value, json};

use super::diff::{print, tools, waiting};
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
    approve(selection, &api, printer).await
}

async fn approve(selection: &ToolSelection, api: &Api, printer: &Printer) -> Outcome {
    let shown = waiting(selection, api).await?;
    // What is printed is what is approved, or nothing is.
    let seen: Map<String, Value> = tools(&shown)
        .filter(|tool| tool["fingerprint"].is_string())
        .filter_map(|tool| {
            let name = tool["name"].as_str()?.to_owned();
            Some((name, tool["fingerprint"].clone()))
        })
        .collect();
    let body = json!({"tools": selection.tools, "seen": seen});
    let path = format!("{}/approve", path(&selection.server));
    let approved = parse(&api.post(&path, &body).await?)?;
    if printer.format != Format::Table {
        printer.data(&approved, Some("tools"));
        return Ok(Exit::Ok);
    }
    print(&approved, printer);
    let server = escape::line(&selection.server);
    match (tools(&approved).count(), approved["quarantined"] == true) {
        (0, false) => printer.note(&format!("nothing of {server} waits for approval")),
        (0, true) => printer.text(&format!("{server} is out of quarantine\n")),
        (count, _) => printer.text(&format!("approved: {count} of {server}\n")),
    }
    Ok(Exit::Ok)
}
