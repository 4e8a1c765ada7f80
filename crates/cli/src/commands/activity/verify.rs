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
    if valid {
        return Ok(Exit::Ok);
    }
    Err(
        Failure::new(Exit::Failed, "the activity log is not as it was written")
            .why(describe(&found))
            .advice("keep a copy of the file, and find out who could write to it"),
    )
}

fn describe(found: &Value) -> String {
    let broken = &found["broken"];
    if broken.is_null() {
        return "the head that was noted elsewhere is not in the log".to_owned();
    }
    let reason = broken["reason"]
        .as_str()
        .unwrap_or_default()
        .replace('_', " ");
    let record = broken["id"].as_str().unwrap_or("not known");
    format!(
        "first break at record {record}, entry {}: {reason}",
        broken["sequence"]
    )
}
