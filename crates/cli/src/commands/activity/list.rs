//! `mcpproxy activity list`.

use jiff::Timestamp;

use super::query;
use super::row::{HEADERS, STEPS, row};
use crate::api::Api;
use crate::args::ActivityFilter;
use crate::commands::parse;
use crate::exit::{Exit, Outcome};
use crate::printer::{Format, Printer};
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
    let records = page["activities"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if let (true, Some(hint)) = (records.is_empty(), spelling_hint(filter)) {
        printer.note(&hint);
    }
    if printer.format != Format::Table {
        printer.data(&page, Some("activities"));
        return Ok(Exit::Ok);
    }
    if records.is_empty() {
        printer.note("no activity matches");
        return Ok(Exit::Ok);
    }
    let now = Timestamp::now();
    let rows: Vec<_> = records
        .iter()
        .map(|record| row(record, |time| relative(time, now)))
        .collect();
    printer.rows(&HEADERS, &rows, &STEPS);
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

/// Elsewhere a tool is spelt with its server. Here it cannot be: names of tools may have colons.
pub(super) fn spelling_hint(filter: &ActivityFilter) -> Option<String> {
    let (server, tool) = filter.tool.as_deref()?.split_once(':')?;
    Some(format!(
        "hint: --tool takes the name without its server; did you mean --server {server} --tool {tool}?"
    ))
}
