//! `mcpproxy tools override set|list|clear`.

use policy::Tier;
use serde_json::{Value, json};

use super::parse;
use crate::api::{Api, segment};
use crate::args::OverrideCommand;
use crate::escape;
use crate::exit::{Exit, Outcome};
use crate::printer::{Entry, Format, Printer};

pub(super) async fn run(command: &OverrideCommand, api: &Api, printer: &Printer) -> Outcome {
    match command {
        OverrideCommand::Set { pattern, tier } => {
            let body = json!({"tier": tier});
            let set = parse(&api.put(&path(pattern), &body).await?)?;
            confirm(&set, &format!("'{pattern}' is {tier} now"), printer);
        }
        OverrideCommand::Clear { pattern } => {
            let cleared = parse(&api.delete(&path(pattern)).await?)?;
            confirm(
                &cleared,
                &format!("'{pattern}' is no longer overridden"),
                printer,
            );
        }
        OverrideCommand::List => list(&parse(&api.get("/overrides").await?)?, printer),
    }
    Ok(Exit::Ok)
}

fn path(pattern: &str) -> String {
    format!("/tools/{}/override", segment(pattern))
}

fn confirm(answer: &Value, what: &str, printer: &Printer) {
    if let Some(warning) = answer["warning"].as_str() {
        printer.note(&escape::line(&format!("warning: {warning}")));
    }
    match printer.format {
        Format::Table => printer.text(&format!("{}\n", escape::line(what))),
        _ => printer.data(answer, None),
    }
}

fn list(answer: &Value, printer: &Printer) {
    if printer.format != Format::Table {
        return printer.data(answer, Some("overrides"));
    }
    let overrides = answer["overrides"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let rows = overrides.iter().map(|entry| -> Vec<Entry> {
        let tier: Option<Tier> = entry["tier"].as_str().and_then(|tier| tier.parse().ok());
        vec![
            entry["pattern"].as_str().unwrap_or("-").into(),
            tier.map_or_else(
                || "-".into(),
                |tier| Entry::Lane(tier.variant().operation_type()),
            ),
            tier.map_or("-", Tier::as_str).into(),
            entry["tools"].to_string().into(),
        ]
    });
    if overrides.is_empty() {
        return printer.note("there are no overrides; set one with `mcpproxy tools override set`");
    }
    printer.table(&["PATTERN", "LANE", "TIER", "TOOLS"], rows.collect());
    for warning in overrides
        .iter()
        .filter_map(|entry| entry["warning"].as_str())
    {
        printer.note(&escape::line(&format!("warning: {warning}")));
    }
}
