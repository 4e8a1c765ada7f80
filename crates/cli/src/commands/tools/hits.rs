//! The hits of a search as tables: what was found, or why.

use serde_json::Value;

use super::{STALE, entries, lane_entry, summary, text};
use crate::printer::{Entry, Format, Printer};

pub(super) fn print(found: &Value, printer: &Printer) {
    if printer.format != Format::Table {
        return printer.data(found, Some("tools"));
    }
    if let Some(hint) = found["hint"].as_str() {
        printer.note(hint);
    }
    if entries(found).next().is_none() {
        return;
    }
    let stale = entries(found).any(|tool| tool["stale"] == true);
    let explained = entries(found).any(|tool| tool["explanation"].is_object());
    if explained {
        let headers = ["TOOL", "SCORE", "WORDS", "MEANING", "WHY"];
        printer.table(&headers, entries(found).map(reasons).collect());
    } else {
        let headers = ["TOOL", "LANE", "SCORE", "DESCRIPTION"];
        printer.table(&headers, entries(found).map(hit).collect());
    }
    printer.note(&format!(
        "{} of {} matching tools",
        entries(found).count(),
        found["total"]
    ));
    if stale {
        printer.note("(stale): the server is not connected; this is what it last had");
    }
    if explained {
        printer.note("score = words and meaning, weighted as -o json shows; see docs/search.md");
    }
}

/// The name, marked where the server is not there to ask.
fn name(tool: &Value) -> String {
    match tool["stale"].as_bool() {
        Some(true) => format!("{} ({STALE})", text(tool, "name")),
        _ => text(tool, "name").to_owned(),
    }
}

fn hit(tool: &Value) -> Vec<Entry> {
    vec![
        name(tool).into(),
        lane_entry(tool),
        share(&tool["score"]).into(),
        summary(tool).into(),
    ]
}

fn reasons(tool: &Value) -> Vec<Entry> {
    let explanation = &tool["explanation"];
    vec![
        name(tool).into(),
        share(&tool["score"]).into(),
        share(&explanation["words"]).into(),
        share(&explanation["meaning"]).into(),
        why(explanation).into(),
    ]
}

/// What matched, in one line: `issue (name, description), bug → issu synonym (name)`.
fn why(explanation: &Value) -> String {
    let matches = explanation["matches"].as_array().into_iter().flatten();
    let mut parts: Vec<String> = matches.map(matched).collect();
    let fusion = &explanation["fusion"];
    if fusion["named"] == true {
        parts.push("named".to_owned());
    }
    if fusion["action_factor"]
        .as_f64()
        .is_some_and(|factor| factor < 1.0)
    {
        parts.push("another action than asked for".to_owned());
    }
    if parts.is_empty() {
        parts.push("meaning alone".to_owned());
    }
    parts.join(", ")
}

fn matched(matched: &Value) -> String {
    let fields = matched["fields"].as_array().into_iter().flatten();
    let fields: Vec<String> = fields
        .filter_map(Value::as_str)
        .map(|field| field.replace('_', " "))
        .collect();
    let word = text(matched, "word");
    let how = match text(matched, "kind") {
        "word" => word.to_owned(),
        kind => format!("{word} → {} {kind}", text(matched, "term")),
    };
    format!("{how} ({})", fields.join(", "))
}

fn share(number: &Value) -> String {
    format!("{:.2}", number.as_f64().unwrap_or_default())
}
