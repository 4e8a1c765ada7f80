//! One record as a line, the same in lists and when watching.

use jiff::Timestamp;
use policy::OperationType;
use serde_json::Value;

use crate::layout::Step;
use crate::printer::Entry;

pub(super) const HEADERS: [&str; 7] = [
    "ID", "TIME", "SERVER", "TOOL", "INTENT", "STATUS", "DURATION",
];

/// Widths for rows that come one by one, when nobody knows what the next one needs.
pub(super) const WIDTHS: [usize; 7] = [26, 8, 12, 24, 13, 24, 8];

const TIME: usize = 1;
const SERVER: usize = 2;
const TOOL: usize = 3;
const INTENT: usize = 4;
const STATUS: usize = 5;
const DURATION: usize = 6;

/// An id is there to be copied, so everything else gives way before it.
pub(super) const STEPS: [Step; 16] = [
    Step::Narrow(STATUS, 16),
    Step::Narrow(TOOL, 24),
    Step::Narrow(SERVER, 16),
    Step::Drop(DURATION),
    Step::Narrow(STATUS, 9),
    Step::Narrow(TOOL, 14),
    Step::Narrow(SERVER, 8),
    Step::Narrow(STATUS, 8),
    Step::Narrow(TOOL, 10),
    Step::Narrow(SERVER, 5),
    Step::Drop(TIME),
    Step::Drop(INTENT),
    Step::Drop(SERVER),
    Step::Narrow(TOOL, 6),
    Step::Drop(STATUS),
    Step::Drop(TOOL),
];

/// The cells of a record, with its time as the caller writes it.
pub(super) fn row(record: &Value, write_time: impl FnOnce(Timestamp) -> String) -> Vec<Entry> {
    let text = |member: &str| record[member].as_str().unwrap_or("-").to_owned();
    let time: Option<Timestamp> = record["timestamp"]
        .as_str()
        .and_then(|text| text.parse().ok());
    vec![
        text("id").into(),
        time.map_or_else(|| "-".to_owned(), write_time).into(),
        text("server_name").into(),
        what(record).into(),
        intent(record),
        status(record).into(),
        duration(record).into(),
    ]
}

/// The tool. What is no call has none; what happened, and its type, say more than a dash.
fn what(record: &Value) -> String {
    if let Some(tool) = record["tool_name"].as_str() {
        return tool.to_owned();
    }
    let kind = record["type"].as_str().unwrap_or("-");
    let change = &record["arguments"];
    match change["state"].as_str().or(change["event"].as_str()) {
        // In this order, because the end is what is cut.
        Some(outcome) => format!("{outcome} ({kind})"),
        None => kind.to_owned(),
    }
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
