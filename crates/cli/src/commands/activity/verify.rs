//! `mcpproxy activity verify`.

use serde_json::Value;

use crate::api::Api;
use crate::args::ActivityFilter;
use crate::commands::parse;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};

pub(super) async fn run(api: &Api, head: Option<&str>, printer: &Printer) -> Outcome {
    let query = super::query(
        &ActivityFilter::default(),
        [("head", head.map(str::to_owned))],
    );
    let found = parse(&api.get(&format!("/activity/verify{query}")).await?)?;
    let valid = found["valid"] == true;
    if printer.format != Format::Table {
        printer.data(&found, None);
        return Ok(if valid { Exit::Ok } else { Exit::Failed });
    }
    printer.text(&format!(
        "{} records hold, {} entries of the chain\nhead: {}\n",
        found["records"],
        found["entries"],
        found["head"]["hash"].as_str().unwrap_or_default(),
    ));
    if let Some(removed) = found["checkpoint"]["removed_records"].as_u64() {
        printer.text(&format!(
            "{removed} older records were removed by retention\n"
        ));
    }
    if let Some(gaps) = found["gaps"].as_u64().filter(|gaps| *gaps > 0) {
        let (records, stand) = if gaps == 1 {
            ("record", "stands")
        } else {
            ("records", "stand")
        };
        printer.text(&format!(
            "{gaps} {records} {stand} for calls that could not be recorded; `mcpproxy activity list \
             --type system --status error` shows when\n"
        ));
    }
    if let Some(place) = place_of_noted(&found["noted_head"]) {
        printer.text(&format!("{place}\n"));
    }
    match failure(&found) {
        None => Ok(Exit::Ok),
        Some(failure) => Err(failure),
    }
}

/// Where the head that was noted elsewhere is, if it is in the log.
fn place_of_noted(noted: &Value) -> Option<String> {
    if noted == "current" {
        return Some("the noted head is in the log, and still its head".to_owned());
    }
    let entries = noted["behind"]["entries"].as_u64()?;
    let came = if entries == 1 { "entry" } else { "entries" };
    Some(format!(
        "the noted head is in the log; {entries} {came} came after it"
    ))
}

/// What is wrong first, if anything is.
fn failure(found: &Value) -> Option<Failure> {
    let tampered = |why: String| {
        Failure::new(Exit::Failed, "the activity log is not as it was written")
            .why(why)
            .advice("keep a copy of the file, and find out who could write to it")
    };
    if !found["broken"].is_null() {
        return Some(tampered(describe(&found["broken"])));
    }
    if found["noted_head"] == "missing" {
        let why = "the head that was noted elsewhere is not in the log";
        return Some(tampered(why.to_owned()));
    }
    if found["noted_head"] == "unconfirmed" {
        let made_at = found["checkpoint"]["made_at"].as_str().unwrap_or("-");
        let why = format!(
            "it is not in what retention left of the log, and may have been in what it removed, \
             last at {made_at}"
        );
        let advice = "what is left holds; note the head above, and do so more often than records \
                      are removed";
        return Some(
            Failure::new(Exit::Failed, "the noted head cannot be confirmed any more")
                .why(why)
                .advice(advice),
        );
    }
    if found["index_agrees"] == false {
        let what = "the index of the activity log does not agree with its records";
        let why = "every record holds, but lists with a filter, exports and simulations miss some \
                   or show others";
        let advice = "start `mcpproxy serve` again, which rebuilds the index, and find out who \
                      could write to the file";
        return Some(Failure::new(Exit::Failed, what).why(why).advice(advice));
    }
    if found["sums_agree"] == false {
        let what = "the sums of the activity log do not agree with its records";
        let why = "every record holds, but `activity summary` and usage count something else";
        let advice = "rely on `activity list` and `activity export`, and find out who could write \
                      to the file";
        return Some(Failure::new(Exit::Failed, what).why(why).advice(advice));
    }
    None
}

fn describe(broken: &Value) -> String {
    let reason = broken["reason"].as_str().unwrap_or_default();
    let reason = reason.replace('_', " ");
    let entry = &broken["sequence"];
    match broken["id"].as_str() {
        Some(record) => format!("first break at record {record}, entry {entry}: {reason}"),
        None => format!("first break at entry {entry}: {reason}"),
    }
}
