//! `mcpproxy activity show`.

use policy::{EffectiveTier, OperationType, Provenance, Tier};
use serde_json::Value;

use super::row::duration;
use crate::api::{Api, segment};
use crate::commands::parse;
use crate::escape;
use crate::exit::{Exit, Outcome};
use crate::printer::{Format, Printer};

pub(super) async fn run(api: &Api, id: &str, printer: &Printer) -> Outcome {
    let record = parse(&api.get(&format!("/activity/{}", segment(id))).await?)?;
    match printer.format {
        Format::Table => printer.text(&sections(&record, printer)),
        _ => printer.data(&record, None),
    }
    Ok(Exit::Ok)
}

fn sections(record: &Value, printer: &Printer) -> String {
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
    let operation = intent["operation_type"].as_str();
    let operation = operation.and_then(|text| text.parse::<OperationType>().ok());
    if let Some(operation) = operation {
        out.push_str("intent\n");
        labelled(&mut out, "operation_type", &printer.lane(operation));
        members(&mut out, intent, &["data_sensitivity", "reason"]);
    } else {
        section(&mut out, "intent", intent, &["data_sensitivity", "reason"]);
    }
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
    let bytes = |member: &str| record[member].as_u64().filter(|bytes| *bytes > 0);
    // What is no call arrived in no request.
    let of_request = bytes("request_bytes").map(|bytes| format!("in a request of {bytes} bytes"));
    body(&mut out, "arguments", record, of_request.as_deref());
    let arrived = bytes("response_bytes").map(|bytes| format!("{bytes} bytes as it arrived"));
    body(&mut out, "response", record, arrived.as_deref());
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
        (Provenance::Pinned, Some(tier)) => EffectiveTier::Pinned(tier),
        (Provenance::Unannotated, _) | (_, None) => EffectiveTier::Unannotated,
    };
    Some(format!("the tool is {effective}"))
}

/// A heading and the members that are there; nothing if none is.
fn section(out: &mut String, heading: &str, object: &Value, members: &[&str]) {
    if members.iter().all(|member| object[*member].is_null()) {
        return;
    }
    out.push_str(&format!("{heading}\n"));
    self::members(out, object, members);
}

/// The members that are there, a line each.
fn members(out: &mut String, object: &Value, members: &[&str]) {
    for member in members {
        if !object[*member].is_null() {
            line(out, member, &plain(&object[*member]));
        }
    }
}

fn line(out: &mut String, label: &str, value: &str) {
    labelled(out, label, &escape::line(value));
}

/// A line of text that is safe.
fn labelled(out: &mut String, label: &str, value: &str) {
    out.push_str(&format!("  {label:<16} {value}\n"));
}

/// A body under a heading that says its size and what was left out; nothing if there was none.
fn body(out: &mut String, member: &str, record: &Value, size: Option<&str>) {
    let is = |what: &str| record[format!("{member}_{what}")] == true;
    let not_kept = is("not_kept");
    if record[member].is_null() && !not_kept {
        return;
    }
    let cut = is("truncated").then_some("cut here");
    let not_kept = not_kept.then_some("not kept");
    let notes: Vec<&str> = [size, not_kept.or(cut)].into_iter().flatten().collect();
    out.push_str(member);
    if !notes.is_empty() {
        out.push_str(&format!(" ({})", notes.join(", ")));
    }
    out.push('\n');
    if !record[member].is_null() {
        for text in escape::lines(&pretty(&record[member])).lines() {
            out.push_str(&format!("  {text}\n"));
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_provenance_has_its_reason() {
        for provenance in Provenance::ALL {
            let metadata = json!({"provenance": provenance.as_str(), "effective_tier": "write"});
            let why = why(&metadata).unwrap();
            let is_unannotated = provenance == Provenance::Unannotated;
            assert_eq!(
                why.contains("not annotated"),
                is_unannotated,
                "{provenance:?}: {why}"
            );
        }
    }
}
