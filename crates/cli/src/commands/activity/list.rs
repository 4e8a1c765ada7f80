//! `mcpproxy activity list`.

use jiff::Timestamp;
use policy::OperationType;
use serde_json::Value;

use super::query;
use crate::api::Api;
use crate::args::ActivityFilter;
use crate::commands::parse;
use crate::exit::{Exit, Outcome};
use crate::printer::{Entry, Format, Printer};
use crate::time::relative;

pub(super) async fn run(
    api: &Api,
    filter: &ActivityFilter,
    place: [(&'static str, Option<String>); 3],
    printer: &Printer,
) -> Outcome {
    let page = parse(
        &api.get(&format!("/activity{}", query(filter, place)))
            .await?,
    )?;
    if printer.format != Format::Table {
        printer.data(&page, Some("activities"));
        return Ok(Exit::Ok);
    }
    let records = page["activities"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if records.is_empty() {
        printer.note("no activity matches");
        return Ok(Exit::Ok);
    }
    let now = Timestamp::now();
    let rows = records.iter().map(|record| row(record, now)).collect();
    printer.table(
        &[
            "ID", "TIME", "SERVER", "TOOL", "INTENT", "STATUS", "DURATION",
        ],
        rows,
    );
    let more = if page["total_is_lower_bound"] == true {
        "or more "
    } else {
        ""
    };
    printer.note(&format!(
        "{} of {} {more}records",
        records.len(),
        page["total"]
    ));
    if let Some(cursor) = page["next_cursor"].as_str() {
        printer.note(&format!("more with --cursor {cursor}"));
    }
    Ok(Exit::Ok)
}

/// One record as a line, the same in lists and when watching.
pub(super) fn row(record: &Value, now: Timestamp) -> Vec<Entry> {
    let text = |member: &str| record[member].as_str().unwrap_or("-").to_owned();
    let time: Option<Timestamp> = record["timestamp"]
        .as_str()
        .and_then(|text| text.parse().ok());
    // What is no call has no tool; its type says more than a dash.
    let tool = record["tool_name"]
        .as_str()
        .or(record["type"].as_str())
        .unwrap_or("-");
    vec![
        text("id").into(),
        time.map_or_else(|| "-".to_owned(), |time| relative(time, now))
            .into(),
        text("server_name").into(),
        tool.into(),
        intent(record),
        status(record).into(),
        duration(record).into(),
    ]
}

fn intent(record: &Value) -> Entry {
    let operation = record["metadata"]["intent"]["operation_type"].as_str();
    match operation.and_then(|text| text.parse::<OperationType>().ok()) {
        Some(operation) => Entry::Lane(operation),
        None => "-".into(),
    }
}

fn status(record: &Value) -> String {
    let status = record["status"].as_str().unwrap_or("-");
    match record["error_code"].as_str() {
        Some(code) => format!("{status} {code}"),
        None => status.to_owned(),
    }
}

pub(super) fn duration(record: &Value) -> String {
    match record["duration_ms"].as_u64() {
        Some(milliseconds) => format!("{milliseconds}ms"),
        None => "-".to_owned(),
    }
}
