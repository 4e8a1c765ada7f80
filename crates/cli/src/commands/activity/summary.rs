//! `mcpproxy activity summary`.

use policy::OperationType;
use serde_json::Value;

use crate::api::Api;
use crate::args::ActivityFilter;
use crate::commands::parse;
use crate::exit::{Exit, Outcome};
use crate::printer::{Entry, Format, Printer};

const COLUMNS: [&str; 6] = [
    "records",
    "success",
    "error",
    "blocked",
    "cancelled",
    "interrupted",
];

/// The longest bar, in characters.
const BAR: u64 = 20;

pub(super) async fn run(api: &Api, period: &str, by: &str, printer: &Printer) -> Outcome {
    let group_by = if by == "intent" { "intent_type" } else { by };
    let parameters = [
        ("period", Some(period.to_owned())),
        ("group_by", Some(group_by.to_owned())),
    ];
    let query = super::query(&ActivityFilter::default(), parameters);
    let summary = parse(&api.get(&format!("/activity/summary{query}")).await?)?;
    if printer.format != Format::Table {
        printer.data(&summary, Some("groups"));
        return Ok(Exit::Ok);
    }
    let groups = summary["groups"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let most = groups.iter().map(records).max().unwrap_or_default();
    let bars = printer.is_terminal();
    let mut rows: Vec<_> = groups
        .iter()
        .map(|group| {
            let key = group["key"].as_str().unwrap_or("-");
            let mut row = row(key, group);
            if let (Ok(lane), "intent_type") = (key.parse::<OperationType>(), group_by) {
                row[0] = Entry::Lane(lane);
            }
            if bars {
                row.push(bar(records(group), most).into());
            }
            row
        })
        .collect();
    rows.push(row("total", &summary["total"]));
    let heading = by.to_uppercase();
    let mut headers = vec![
        heading.as_str(),
        "RECORDS",
        "SUCCESS",
        "ERROR",
        "BLOCKED",
        "CANCELLED",
        "INTERRUPTED",
        "MEAN",
    ];
    if bars {
        headers.push("");
    }
    printer.table(&headers, rows);
    Ok(Exit::Ok)
}

fn records(counts: &Value) -> u64 {
    counts["records"].as_u64().unwrap_or_default()
}

fn row(name: &str, counts: &Value) -> Vec<Entry> {
    let number = |member: &str| counts[member].as_u64().unwrap_or_default();
    let mut row: Vec<Entry> = vec![name.into()];
    row.extend(COLUMNS.map(|column| number(column).to_string().into()));
    // Neither what was refused nor what was interrupted took a time that is known.
    let ran = number("success") + number("error") + number("cancelled");
    let mean = number("duration_ms").checked_div(ran);
    let mean = mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean}ms"));
    row.push(mean.into());
    row
}

/// A bar as long as the share of the largest group; what is there at all shows.
fn bar(records: u64, most: u64) -> String {
    let length = (records * BAR).checked_div(most).unwrap_or_default();
    let length = if records > 0 { length.max(1) } else { 0 };
    "▇".repeat(usize::try_from(length).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(counts: &Value) -> Vec<String> {
        let entries = row("up", counts).into_iter();
        entries
            .map(|entry| match entry {
                Entry::Text(text) => text,
                Entry::Lane(lane) => panic!("{lane:?}"),
            })
            .collect()
    }

    #[test]
    fn the_mean_is_that_of_what_ran() {
        let counts = serde_json::json!({
            "records": 7, "success": 2, "error": 1, "blocked": 1, "cancelled": 1,
            "interrupted": 2, "duration_ms": 80,
        });
        assert_eq!(cells(&counts), ["up", "7", "2", "1", "1", "1", "2", "20ms"]);
        let refused = serde_json::json!({"records": 3, "blocked": 3});
        assert_eq!(cells(&refused).last().unwrap(), "-");
    }

    #[test]
    fn bars_are_shares_of_the_largest() {
        assert_eq!(bar(10, 10).chars().count(), 20);
        assert_eq!(bar(5, 10).chars().count(), 10);
        assert_eq!(bar(1, 1_000).chars().count(), 1);
        assert_eq!(bar(0, 0), "");
    }
}
