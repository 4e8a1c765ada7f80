//! Notes outlive the server, and servers share them.

use serde_json::json;

use crate::support::{DEADLINE, Demo, serve};

#[tokio::test]
async fn notes_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("notes.db");
    let demo = Demo::open(&store).await;
    demo.ok("create_note", json!({ "title": "Tea", "tags": ["x"] }))
        .await;
    demo.ok("update_note", json!({ "id": 4, "title": "Green tea" }))
        .await;
    demo.ok("delete_note", json!({ "id": 1 })).await;
    demo.ok("purge_note", json!({ "id": 2 })).await;
    let before = demo.ok("get_note", json!({ "id": 4 })).await;
    demo.stop().await;

    let demo = Demo::open(&store).await;
    assert_eq!(demo.ok("get_note", json!({ "id": 4 })).await, before);
    assert_eq!(demo.ids("list_notes", json!({})).await, [4, 3]);
    assert_eq!(demo.ids("list_bin", json!({})).await, [1]);
    let restored = demo
        .ok("restore_note_version", json!({ "id": 4, "version": 1 }))
        .await;
    assert_eq!(restored["note"]["title"], "Tea");
    demo.stop().await;
}

#[tokio::test]
async fn two_servers_share_a_store() {
    const EACH: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("notes.db");
    let (one, two) = tokio::join!(Demo::open(&store), Demo::open(&store));
    let create = async |demo: &Demo| {
        for _ in 0..EACH {
            demo.ok("create_note", json!({ "title": "Tea" })).await;
        }
    };
    tokio::join!(create(&one), create(&two));
    for demo in [&one, &two] {
        let found = demo.ok("list_notes", json!({})).await;
        assert_eq!(found["total"], 3 + 2 * EACH);
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_ends_the_server() {
    let folder = tempfile::tempdir().unwrap();
    // A folder is no file.
    let (_pipe, serving) = serve(folder.path().to_owned());
    let error = tokio::time::timeout(DEADLINE, serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, demo::DemoError::Open { .. }));
    assert!(error.to_string().contains(folder.path().to_str().unwrap()));
}
