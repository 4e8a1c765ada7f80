//! Progress of the tools that go through many notes.

use serde_json::{Value, json};

use crate::support::Demo;

/// Calls a tool with a progress token and gives the reports as `(progress, total)`.
async fn watch(demo: &Demo, name: &str, arguments: Value) -> Vec<(u64, u64)> {
    let (token, mut receiver) = demo.client.progress(1000);
    let params = json!({
        "name": name, "arguments": arguments, "_meta": { "progressToken": token },
    });
    let result = demo.request("tools/call", params).await.unwrap();
    assert_eq!(result["isError"], false, "{result}");
    // Reports travel before the result, so all of them are here.
    std::iter::from_fn(|| receiver.try_next())
        .map(|params| {
            let params: Value = serde_json::from_str(params.get()).unwrap();
            assert!(params["message"].as_str().unwrap().ends_with("notes"));
            (
                params["progress"].as_u64().unwrap(),
                params["total"].as_u64().unwrap(),
            )
        })
        .collect()
}

#[tokio::test]
async fn long_work_reports_every_step() {
    let demo = Demo::start().await;
    assert_eq!(
        watch(&demo, "export_notes", json!({})).await,
        [(1, 3), (2, 3), (3, 3)]
    );
    let import = json!({ "notes": [{ "title": "a" }, { "title": "b" }] });
    assert_eq!(watch(&demo, "import_notes", import).await, [(1, 2), (2, 2)]);
    demo.ok("delete_note", json!({ "id": 1 })).await;
    assert_eq!(watch(&demo, "purge_bin", json!({})).await, [(1, 1)]);
    let purged = watch(&demo, "purge_all_notes", json!({})).await;
    assert_eq!(purged.last(), Some(&(4, 4)));
}

#[tokio::test]
async fn much_work_does_not_flood_the_client() {
    let demo = Demo::start().await;
    let notes: Vec<_> = (0..997)
        .map(|id| json!({ "title": id.to_string() }))
        .collect();
    demo.ok("import_notes", json!({ "notes": notes })).await;
    let reports = watch(&demo, "export_notes", json!({})).await;
    assert!(reports.is_sorted_by(|one, next| one.0 < next.0));
    assert!((50..=120).contains(&reports.len()), "{}", reports.len());
    assert_eq!(reports.last(), Some(&(1000, 1000)));
}

#[tokio::test]
async fn quick_tools_report_nothing() {
    let demo = Demo::start().await;
    assert_eq!(watch(&demo, "list_notes", json!({})).await, []);
}
