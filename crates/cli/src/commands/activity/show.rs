//! `mcpproxy activity show`.

use policy::{EffectiveTier, Provenance, Tier};
use serde_json::Value;

use super::list::duration;
use crate::api::{Api, segment};
use crate::commands::parse;
use crate::escape;
use crate::exit::{Exit, Outcome};
use crate::printer::{Format, Printer};

pub(super) async fn run(api: &Api, id: &str, printer: &Printer) -> Outcome {
    let record = parse(&api.get(&format!("/activity/{}", segment(id))).await?)?;
    match printer.format {
        Format::Table => printer.text(&sections(&record)),
        _ => printer.data(&record, None),
    }
    Ok(Exit::Ok)
}

fn sections(record: &Value) -> String {
    let metadata = &record["metadata"];
    let intent = &metadata["intent"];
    let mut out = String::new();
    section(
        &mut out,
        "record",
        record,
        &["id", "type", "source", "timestamp", "status"],
    );
    line(&mut out, "duration", &duration(record));
    section(
        &mut out,
        "call",
        record,
        &["server_name", "tool_name", "error_code", "error_message"],
    );
    section(
        &mut out,
        "intent",
        intent,
        &["operation_type", "data_sensitivity", "reason"],
    );
    section(
        &mut out,
        "decision",
        metadata,
        &["tool_variant", "effective_tier", "provenance"],
    );
    if let Some(why) = why(metadata) {
        line(&mut out, "why", &why);
    }
    for warning in metadata["warnings"].as_array().into_iter().flatten() {
        line(&mut out, "warning", &plain(warning));
    }
    section(
        &mut out,
        "client",
        record,
        &["client_name", "session_id", "request_id"],
    );
    body(&mut out, "arguments", record, "request_bytes");
    body(&mut out, "response", record, "response_bytes");
    out
}

/// What the decision rested on.
fn why(metadata: &Value) -> Option<String> {
    let parse = |member: &str| serde_json::from_value(metadata[member].clone()).ok();
    let tier: Option<Tier> = metadata["effective_tier"]
        .as_str()
        .and_then(|tier| tier.parse().ok());
    let provenance: Provenance = parse("provenance")?;
    let effective = match (provenance, tier) {
        (Provenance::Override, Some(tier)) => EffectiveTier::Override(tier),
        (Provenance::Declared, Some(tier)) => EffectiveTier::Declared(tier),
        (Provenance::Audited, Some(tier)) => EffectiveTier::Audited(tier),
        (_, _) => EffectiveTier::Unannotated,
    };
    Some(format!("the tool is {effective}"))
}

/// A heading and the members that are there; nothing if none is.
fn section(out: &mut String, heading: &str, object: &Value, members: &[&str]) {
    let given: Vec<_> = members
        .iter()
        .filter(|member| !object[**member].is_null())
        .collect();
    if given.is_empty() {
        return;
    }
    out.push_str(&format!("{heading}\n"));
    for member in given {
        line(out, member, &plain(&object[*member]));
    }
}

fn line(out: &mut String, label: &str, value: &str) {
    out.push_str(&format!("  {label:<16} {}\n", escape::line(value)));
}

fn body(out: &mut String, member: &str, record: &Value, size: &str) {
    if record[member].is_null() {
        if record[format!("{member}_not_kept")] == true {
            out.push_str(&format!("{member} ({} bytes, not kept)\n", record[size]));
        }
        return;
    }
    let is_cut = member == "response" && record["response_truncated"] == true;
    let cut = if is_cut { ", cut" } else { "" };
    out.push_str(&format!("{member} ({} bytes{cut})\n", record[size]));
    for text in escape::lines(&pretty(&record[member])).lines() {
        out.push_str(&format!("  {text}\n"));
    }
}

/// A body is JSON, or the beginning of JSON that was cut, which is a string here.
fn pretty(body: &Value) -> String {
    match body {
        Value::String(text) => text.clone(),
        value => format!("{value:#}"),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
