//! Exports in every format: complete, streamed, and safe to open.

use activity::{Activity, ActivityId, Durability, ExportFormat, ExportRequest, Filter, Record};
use policy::OperationType;

use crate::support::*;

async fn export(activity: &Activity, request: ExportRequest) -> (String, usize) {
    let mut export = activity.export(request);
    let (mut text, mut chunks) = (String::new(), 0);
    while let Some(chunk) = export.next_chunk().await.unwrap() {
        assert!(chunk.len() < 4 * 1024 * 1024, "a chunk is not a whole file");
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        chunks += 1;
    }
    (text, chunks)
}

fn everything(format: ExportFormat) -> ExportRequest {
    ExportRequest {
        filter: Filter::default(),
        format,
        include_bodies: true,
        limit: None,
    }
}

async fn filled(activity: &Activity, count: usize) -> Vec<ActivityId> {
    let mut ids = Vec::with_capacity(count);
    for number in 0..count {
        let server = if number % 10 == 0 { "github" } else { "files" };
        let start = call(server, "tool", OperationType::Read);
        ids.push(
            activity
                .record(start, success(), Durability::Batched)
                .await
                .unwrap(),
        );
    }
    complete(activity, read_call(), success()).await;
    ids.reverse();
    ids
}

#[tokio::test]
async fn json_and_jsonl_hold_the_same_records() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    filled(&activity, 1_200).await;
    let (json, _) = export(&activity, everything(ExportFormat::Json)).await;
    let (lines, chunks) = export(&activity, everything(ExportFormat::JsonLines)).await;
    let json: Vec<Record> = serde_json::from_str(&json).unwrap();
    let lines: Vec<Record> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(json.len(), 1_201);
    assert_eq!(json, lines);
    assert!(chunks > 20, "{chunks}");
    assert!(json[0].arguments.is_some() && json[0].response.is_some());
    assert!(json.is_sorted_by(|a, b| a.id > b.id));
}

#[tokio::test]
async fn limits_filters_and_bodies_apply() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let ids = filled(&activity, 100).await;
    let request = ExportRequest {
        filter: filter(&[("server", "github")]),
        include_bodies: false,
        limit: Some(3),
        format: ExportFormat::Json,
    };
    let (text, _) = export(&activity, request).await;
    let records: Vec<Record> = serde_json::from_str(&text).unwrap();
    let expected = [ids[9], ids[19], ids[29]];
    assert_eq!(
        records.iter().map(|record| record.id).collect::<Vec<_>>(),
        expected
    );
    assert!(records[0].arguments.is_none());
}

#[tokio::test]
async fn nothing_is_still_a_valid_file() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let (json, _) = export(&activity, everything(ExportFormat::Json)).await;
    assert_eq!(serde_json::from_str::<Vec<Record>>(&json).unwrap(), []);
    let (csv, _) = export(&activity, everything(ExportFormat::Csv)).await;
    assert!(csv.starts_with("id,timestamp,type,") && csv.ends_with(",arguments,response\r\n"));
    let none = ExportRequest {
        limit: Some(0),
        ..everything(ExportFormat::JsonLines)
    };
    assert_eq!(export(&activity, none).await.0, "");
}

#[tokio::test]
async fn csv_defuses_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut start = call("files", "=cmd|' /C calc'!A0", OperationType::Read);
    start.client_name = Some("a \"quoted\", name");
    complete(&activity, start, success()).await;
    let request = ExportRequest {
        include_bodies: false,
        ..everything(ExportFormat::Csv)
    };
    let (csv, _) = export(&activity, request).await;
    let line = csv.lines().nth(1).unwrap();
    assert!(line.contains(",'=cmd|' /C calc'!A0,"), "{line}");
    assert!(line.contains(",\"a \"\"quoted\"\", name\","), "{line}");
    assert!(!csv.contains("notes.txt"));
}

#[test]
fn formats_are_words() {
    assert_eq!(ExportFormat::parse("jsonl"), Ok(ExportFormat::JsonLines));
    let error = ExportFormat::parse("xml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid format 'xml'; use one of json, jsonl, csv"
    );
}
