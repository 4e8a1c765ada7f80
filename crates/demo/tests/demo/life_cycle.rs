//! What is kept, what can be brought back, and what is gone.

use serde_json::json;

use crate::support::{Demo, NONE, text};

#[tokio::test]
async fn a_deleted_note_waits_in_the_bin_until_it_is_restored() {
    let demo = Demo::start().await;
    for _ in 0..2 {
        let deleted = demo.ok("delete_note", json!({ "id": 2 })).await;
        assert_eq!(
            deleted["note"]["state"], "bin",
            "deleting twice is deleting once"
        );
    }
    assert_eq!(demo.ids("list_notes", json!({})).await, [1, 3]);
    let bin = demo.call("list_bin", json!({})).await;
    assert_eq!(text(&bin), "1 note in the bin.\n#2 Groceries [home, list]");
    assert_eq!(
        demo.ids("search_notes", json!({ "query": "oats" })).await,
        NONE
    );
    assert_eq!(
        demo.ok("get_note", json!({ "id": 2 })).await["note"]["title"],
        "Groceries"
    );

    for _ in 0..2 {
        let restored = demo.ok("restore_note", json!({ "id": 2 })).await;
        assert_eq!(restored["note"]["state"], "active");
    }
    assert_eq!(demo.ids("list_bin", json!({})).await, NONE);
    assert_eq!(
        demo.ids("search_notes", json!({ "query": "oats" })).await,
        [2]
    );
}

#[tokio::test]
async fn a_note_in_the_bin_cannot_be_changed() {
    let demo = Demo::start().await;
    demo.ok("delete_note", json!({ "id": 2 })).await;
    for (name, arguments) in [
        ("update_note", json!({ "id": 2, "title": "x" })),
        ("append_to_note", json!({ "id": 2, "text": "x" })),
        ("tag_note", json!({ "id": 2, "tag": "x" })),
        ("untag_note", json!({ "id": 2, "tag": "home" })),
        ("pin_note", json!({ "id": 2 })),
        ("archive_note", json!({ "id": 2 })),
        ("restore_note_version", json!({ "id": 2, "version": 1 })),
    ] {
        assert_eq!(
            demo.refused(name, arguments).await,
            format!("{name}: note 2 is in the bin; call restore_note first.")
        );
    }
}

#[tokio::test]
async fn an_archived_note_is_out_of_sight_but_found() {
    let demo = Demo::start().await;
    demo.ok("archive_note", json!({ "id": 2 })).await;
    assert_eq!(demo.ids("list_notes", json!({})).await, [1, 3]);
    assert_eq!(
        demo.ids("list_notes", json!({ "archived": true })).await,
        [2]
    );
    assert_eq!(
        demo.ids("search_notes", json!({ "query": "oats" })).await,
        [2]
    );
    demo.ok("restore_note", json!({ "id": 2 })).await;
    assert_eq!(
        demo.ids("list_notes", json!({ "archived": true })).await,
        NONE
    );
}

#[tokio::test]
async fn every_text_a_note_had_can_be_brought_back() {
    let demo = Demo::start().await;
    demo.ok("update_note", json!({ "id": 2, "title": "Shopping" }))
        .await;
    let appended = demo
        .ok("append_to_note", json!({ "id": 2, "text": "- tea" }))
        .await;
    assert_eq!(appended["note"]["version"], 3);
    assert_eq!(
        appended["note"]["body"],
        "- oats\n- tomatoes\n- coffee beans\n- olive oil\n- tea"
    );

    let kept = demo.ok("list_note_versions", json!({ "id": 2 })).await;
    let titles: Vec<_> = kept["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| (version["version"].as_i64(), version["title"].as_str()))
        .collect();
    assert_eq!(
        titles,
        [(Some(2), Some("Shopping")), (Some(1), Some("Groceries"))]
    );

    for _ in 0..2 {
        let restored = demo
            .ok("restore_note_version", json!({ "id": 2, "version": 1 }))
            .await;
        assert_eq!(restored["note"]["title"], "Groceries");
        assert_eq!(
            restored["note"]["version"], 4,
            "going back is a version, too; once"
        );
    }
    let back = demo
        .ok("restore_note_version", json!({ "id": 2, "version": 3 }))
        .await;
    assert_eq!(back["note"]["title"], "Shopping");
}

#[tokio::test]
async fn an_update_that_changes_nothing_makes_no_version() {
    let demo = Demo::start().await;
    for _ in 0..3 {
        let updated = demo
            .ok("update_note", json!({ "id": 2, "title": "Shopping" }))
            .await;
        assert_eq!(updated["note"]["version"], 2);
    }
}

#[tokio::test]
async fn a_purged_note_is_gone_and_its_id_with_it() {
    let demo = Demo::start().await;
    demo.ok("update_note", json!({ "id": 3, "title": "x" }))
        .await;
    let purged = demo.ok("purge_note", json!({ "id": 3 })).await;
    assert_eq!(purged, json!({ "purged": 1, "id": 3 }));
    for name in [
        "get_note",
        "list_note_versions",
        "restore_note",
        "purge_note",
    ] {
        let message = demo.refused(name, json!({ "id": 3 })).await;
        assert!(message.contains("there is no note 3"), "{message}");
    }
    let created = demo.ok("create_note", json!({ "title": "Next" })).await;
    assert_eq!(created["note"]["id"], 4);
    assert_eq!(
        demo.ok("list_note_versions", json!({ "id": 4 })).await["versions"],
        json!([])
    );
}

#[tokio::test]
async fn purging_the_bin_leaves_the_rest() {
    let demo = Demo::start().await;
    demo.ok("delete_note", json!({ "id": 1 })).await;
    demo.ok("archive_note", json!({ "id": 2 })).await;
    assert_eq!(
        demo.ok("purge_bin", json!({})).await,
        json!({ "purged": 1 })
    );
    assert_eq!(demo.ids("list_notes", json!({})).await, [3]);
    assert_eq!(
        demo.ids("list_notes", json!({ "archived": true })).await,
        [2]
    );
    assert_eq!(
        demo.ok("purge_bin", json!({})).await,
        json!({ "purged": 0 })
    );
}

#[tokio::test]
async fn purging_all_takes_archive_and_bin_as_well() {
    let demo = Demo::start().await;
    demo.ok("delete_note", json!({ "id": 1 })).await;
    demo.ok("archive_note", json!({ "id": 2 })).await;
    assert_eq!(
        demo.ok("purge_all_notes", json!({})).await,
        json!({ "purged": 3 })
    );
    assert_eq!(
        demo.refused("get_note", json!({ "id": 1 })).await,
        "get_note: there is no note 1; there are no notes at all."
    );
}
