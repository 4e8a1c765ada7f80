//! Many clients at once: every call is one record, none is lost and none is there twice.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{DESTRUCTIVE, Lane, Proxy, READ, WRITE, rest_text, tools};

const CLIENTS: usize = 100;
const CALLS: usize = 200;

/// Most calls of agents read.
const MIX: [Lane; 10] = [
    READ,
    READ,
    READ,
    WRITE,
    READ,
    READ,
    READ,
    DESTRUCTIVE,
    READ,
    READ,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_clients_make_twenty_thousand_records() {
    let result = r#"{"content":[{"type":"text","text":"done"}]}"#;
    let tools = tools().map(|tool| tool.returns(result));
    let proxy = Proxy::with(json!({}), tools).await;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let mut connection = proxy.client().await;
        clients.spawn(async move {
            for number in 0..CALLS {
                let lane = MIX[number % MIX.len()];
                let arguments = json!({"n": format!("{client}-{number}")});
                connection.succeed(lane, &arguments).await;
            }
        });
    }
    clients.join_all().await;

    let total = CLIENTS * CALLS;
    assert_eq!(proxy.record.calls().len(), total);
    let summary = proxy.data("/activity/summary?group_by=intent_type").await;
    let counts = &summary["total"];
    assert_eq!(counts["records"], total, "{counts}");
    assert_eq!(counts["success"], total, "{counts}");
    let by_type = |operation: &str| {
        let groups = summary["groups"].as_array().unwrap();
        let group = groups.iter().find(|group| group["key"] == operation);
        group.unwrap()["records"].as_u64().unwrap()
    };
    let types = ["read", "write", "destructive"].map(by_type);
    assert_eq!(types, [16_000, 2_000, 2_000]);
    let listed = proxy.data("/activity?type=tool_call&limit=1").await;
    let counted = listed["total"].as_u64().unwrap();
    assert!(
        counted == total as u64 || listed["total_is_lower_bound"] == true,
        "{counted}"
    );

    let query = "format=jsonl&include_bodies=true&type=tool_call";
    let (_, export) = rest_text(&proxy.daemon, &format!("/activity/export?{query}")).await;
    let mut numbers = BTreeSet::new();
    for line in export.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["status"], "success", "{record}");
        let number = record["arguments"]["n"].as_str().unwrap().to_owned();
        assert!(numbers.insert(number), "{record} is there twice");
    }
    assert_eq!(numbers.len(), total);
    let verified = proxy.data("/activity/verify").await;
    assert_eq!(verified["valid"], true, "{verified}");
    assert!(verified["records"].as_u64().unwrap() >= total as u64);
}
