//! Pages: a walk by cursors meets every record once, whatever arrives meanwhile.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Proxy, READ};

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn cursors_walk_all_records_once_while_new_ones_arrive() {
    let proxy = Proxy::start().await;
    proxy.calls(30).await;
    let before: BTreeSet<String> = proxy.recorded_calls().await.iter().map(id).collect();
    assert_eq!(before.len(), 90);
    let mut client = proxy.client().await;
    let mut walked = Vec::new();
    let mut query = "limit=7".to_owned();
    loop {
        let page = proxy
            .data(&format!("/activity?type=tool_call&{query}"))
            .await;
        let records = page["activities"].as_array().unwrap();
        walked.extend(records.iter().map(id));
        client.succeed(READ, &json!({"n": "meanwhile"})).await;
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("limit=7&cursor={cursor}"),
            None => break,
        }
    }
    let once: BTreeSet<String> = walked.iter().cloned().collect();
    assert_eq!(once.len(), walked.len(), "a record came twice");
    assert_eq!(once, before, "those from before, and no others");
    let mut newest_first = walked.clone();
    newest_first.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(walked, newest_first);
}

#[tokio::test]
async fn offsets_and_cursors_cut_the_same_pages() {
    let proxy = Proxy::start().await;
    proxy.calls(10).await;
    let all = proxy.list("?type=tool_call&limit=100").await;
    assert_eq!(all.len(), 30);
    let mut cursor = String::new();
    for (page, expected) in all.chunks(8).enumerate() {
        let query = format!("/activity?type=tool_call&limit=8{cursor}");
        let by_cursor = proxy.data(&query).await;
        let offset = page * 8;
        let query = format!("/activity?type=tool_call&limit=8&offset={offset}");
        let by_offset = proxy.data(&query).await;
        assert_eq!(by_cursor["activities"], json!(expected));
        assert_eq!(by_offset["activities"], json!(expected));
        assert_eq!(
            (&by_offset["offset"], &by_offset["limit"]),
            (&json!(offset), &json!(8))
        );
        assert_eq!(by_offset["total"], 30);
        cursor = match by_cursor["next_cursor"].as_str() {
            Some(next) => format!("&cursor={next}"),
            None => String::new(),
        };
    }
    assert_eq!(cursor, "", "the last page has no next");
}

#[tokio::test]
async fn the_command_line_goes_on_with_the_cursor_it_names() {
    let proxy = Proxy::start().await;
    proxy.calls(2).await;
    let home = &proxy.daemon.home;
    let list = ["activity", "list", "--type", "tool_call", "--limit", "4"];
    let output = home.cli(list).await;
    let (_, cursor) = output.succeeded().stderr.split_once("--cursor ").unwrap();
    let first = home.cli(list.iter().chain(&["-o", "json"])).await.json();
    assert_eq!(first["next_cursor"], cursor.trim());
    let cursor = cursor.trim().to_owned();
    let rest = home
        .cli(list.iter().chain(&["--cursor", &cursor, "-o", "json"]))
        .await
        .json();
    assert_eq!(rest["activities"].as_array().unwrap().len(), 2);
    assert_eq!(rest["next_cursor"], Value::Null);
}
