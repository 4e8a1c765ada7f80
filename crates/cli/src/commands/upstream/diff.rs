//! `mcpproxy upstream diff`: what waits for approval, and how it differs from what was pinned.

use config::Settings;
use serde_json::Value;

use super::path;
use crate::api::{Api, segment};
use crate::args::ToolSelection;
use crate::commands::parse;
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};

pub(super) async fn run(
    selection: &ToolSelection,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    let api = Api::start(settings).await?;
    api.connected(&selection.server).await?;
    let shown = waiting(selection, &api).await;
    let shown = match shown {
        Ok(shown) => all_exist(selection, &shown, &api).await.map(|()| shown),
        Err(failure) => Err(failure),
    };
    let shown = shown?;
    if printer.format != Format::Table {
        printer.data(&shown, Some("tools"));
        return Ok(Exit::Ok);
    }
    print(&shown, printer);
    let server = escape::line(&selection.server);
    match (tools(&shown).count(), shown["quarantined"] == true) {
        (0, false) => printer.note(&format!("nothing of {server} waits for approval")),
        (_, quarantined) => {
            let approve = if quarantined {
                printer.note(&format!("the whole of {server} is in quarantine"));
                format!("mcpproxy upstream approve {server}")
            } else {
                approve_command(selection)
            };
            printer.note(&format!("approve with `{approve}`"));
        }
    }
    Ok(Exit::Ok)
}

/// What waits for approval, of the tools that are meant.
pub(super) async fn waiting(selection: &ToolSelection, api: &Api) -> Result<Value, Failure> {
    let mut found = parse(
        &api.get(&format!("{}/drift", path(&selection.server)))
            .await?,
    )?;
    if let (false, Some(tools)) = (selection.tools.is_empty(), found["tools"].as_array_mut()) {
        let meant = |tool: &Value| {
            let name = tool["name"].as_str();
            selection
                .tools
                .iter()
                .any(|wanted| Some(wanted.as_str()) == name)
        };
        tools.retain(meant);
    }
    Ok(found)
}

/// A name that no tool has would look as if nothing were waiting.
async fn all_exist(selection: &ToolSelection, shown: &Value, api: &Api) -> Result<(), Failure> {
    for name in &selection.tools {
        let waits = tools(shown).any(|tool| tool["name"] == name.as_str());
        if !waits {
            let id = format!("{}:{name}", selection.server);
            api.get(&format!("/tools/{}", segment(&id))).await?;
        }
    }
    Ok(())
}

/// What approves the same tools.
pub(super) fn approve_command(selection: &ToolSelection) -> String {
    let words = ["mcpproxy", "upstream", "approve", selection.server.as_str()];
    let words = words
        .into_iter()
        .chain(selection.tools.iter().map(String::as_str));
    escape::line(&words.collect::<Vec<_>>().join(" "))
}

pub(super) fn tools(drift: &Value) -> impl Iterator<Item = &Value> {
    drift["tools"].as_array().into_iter().flatten()
}

/// Every line comes from the upstream and is made safe on its own.
pub(super) fn print(drift: &Value, printer: &Printer) {
    let mut out = String::new();
    for tool in tools(drift) {
        let text = |member: &str| tool[member].as_str().unwrap_or_default();
        out.push_str(&format!("{}\n", escape::line(text("name"))));
        out.push_str(&format!("  {}\n", escape::line(text("reason"))));
        let (before, after) = (&tool["pinned_tier"], &tool["announced_tier"]);
        if before != after {
            let tier = |tier: &Value| tier.as_str().unwrap_or("none").to_owned();
            out.push_str(&format!(
                "  declared tier: {} before, {} now\n",
                tier(before),
                tier(after)
            ));
        }
        for line in tool["difference"].as_array().into_iter().flatten() {
            let sign = match line["side"].as_str() {
                Some("removed") => '-',
                Some("added") => '+',
                _ => ' ',
            };
            let text = escape::line(line["text"].as_str().unwrap_or_default());
            out.push_str(&format!("  {sign} {text}\n"));
        }
    }
    if !out.is_empty() {
        printer.text(&out);
    }
}
