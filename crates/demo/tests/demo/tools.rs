//! What each tool does when all goes well.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Demo, NONE, text};

/// One good call of every tool, against the sample notes, in an order in which each can work.
fn one_call_each() -> Vec<(&'static str, Value)> {
    vec![
        ("list_notes", json!({})),
        ("get_note", json!({ "id": 1 })),
        ("search_notes", json!({ "query": "groceries" })),
        ("list_tags", json!({})),
        ("list_bin", json!({})),
        ("export_notes", json!({})),
        ("create_note", json!({ "title": "Tea" })),
        ("update_note", json!({ "id": 4, "body": "Green." })),
        ("append_to_note", json!({ "id": 4, "text": "Black." })),
        ("list_note_versions", json!({ "id": 4 })),
        ("restore_note_version", json!({ "id": 4, "version": 2 })),
        ("tag_note", json!({ "id": 4, "tag": "kitchen" })),
        ("untag_note", json!({ "id": 4, "tag": "kitchen" })),
        ("pin_note", json!({ "id": 4 })),
        ("archive_note", json!({ "id": 4 })),
        ("delete_note", json!({ "id": 4 })),
        ("restore_note", json!({ "id": 4 })),
        ("purge_note", json!({ "id": 4 })),
        ("purge_bin", json!({})),
        ("import_notes", json!({ "notes": [{ "title": "Tea" }] })),
        ("purge_all_notes", json!({})),
    ]
}

#[tokio::test]
async fn every_tool_answers_with_text_and_an_object() {
    let demo = Demo::start().await;
    let mut called = BTreeSet::new();
    for (name, arguments) in one_call_each() {
        let result = demo.call(name, arguments).await;
        assert_eq!(result["isError"], false, "{name}: {result}");
        assert!(!text(&result).is_empty(), "{name}");
        assert!(result["structuredContent"].is_object(), "{name}");
        called.insert(name.to_owned());
    }
    let tools = demo.tools().await;
    let offered: BTreeSet<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(called, offered);
}

#[tokio::test]
async fn a_first_start_has_sample_notes() {
    let demo = Demo::start().await;
    let result = demo.call("list_notes", json!({})).await;
    assert_eq!(
        text(&result),
        "3 notes.\n\
         #1 Welcome to the demo (pinned) [demo, help]\n\
         #3 Four kinds of tools [demo]\n\
         #2 Groceries [home, list]"
    );
}

#[tokio::test]
async fn a_created_note_can_be_read() {
    let demo = Demo::start().await;
    let arguments = json!({
        "title": "  Tea ", "body": "Green.\nBlack.", "tags": ["Kitchen", "#list", "list"],
        "pinned": true,
    });
    let created = demo.ok("create_note", arguments).await["note"].take();
    assert_eq!(created["id"], 4);
    assert_eq!(created["title"], "Tea");
    assert_eq!(created["tags"], json!(["kitchen", "list"]));
    assert_eq!(created["pinned"], true);
    assert_eq!(created["state"], "active");
    let read = demo.call("get_note", json!({ "id": 4 })).await;
    assert_eq!(read["structuredContent"]["note"], created);
    assert!(text(&read).ends_with("\n\nGreen.\nBlack."));
}

#[tokio::test]
async fn lists_are_narrowed_by_tag_and_limit() {
    let demo = Demo::start().await;
    assert_eq!(
        demo.ids("list_notes", json!({ "tag": "Demo" })).await,
        [1, 3]
    );
    assert_eq!(demo.ids("list_notes", json!({ "tag": "none" })).await, NONE);
    let first = demo.call("list_notes", json!({ "limit": 1 })).await;
    assert!(text(&first).starts_with("3 notes, the first 1 of them.\n#1 "));
    assert_eq!(first["structuredContent"]["total"], 3);
}

#[tokio::test]
async fn search_wants_every_word_and_puts_titles_first() {
    let demo = Demo::start().await;
    // Note 1 mentions groceries, note 2 is called that.
    let search = |query: &'static str| demo.ids("search_notes", json!({ "query": query }));
    assert_eq!(search("GROCERIES").await, [2, 1]);
    assert_eq!(search("groceries tomatoes").await, [2]);
    assert_eq!(search("toma").await, [2], "the last word may be unfinished");
    assert_eq!(search("toma groceries").await, NONE, "the others may not");
    assert_eq!(search("home").await, [2], "tags count");
    assert_eq!(search("NOT OR \"x\" -y*").await, NONE, "no operators");
    let found = demo.ok("search_notes", json!({ "query": "coffee" })).await;
    let excerpt = found["notes"][0]["excerpt"].as_str().unwrap();
    assert!(excerpt.contains("coffee beans"), "{excerpt}");
}

#[tokio::test]
async fn search_finds_what_was_changed_and_not_what_was() {
    let demo = Demo::start().await;
    let change = json!({ "id": 2, "body": "- crème fraîche" });
    demo.ok("update_note", change).await;
    assert_eq!(
        demo.ids("search_notes", json!({ "query": "creme" })).await,
        [2]
    );
    assert_eq!(
        demo.ids("search_notes", json!({ "query": "oats" })).await,
        NONE
    );
}

#[tokio::test]
async fn tags_are_put_on_and_taken_off_once() {
    let demo = Demo::start().await;
    for _ in 0..2 {
        let tagged = demo.ok("tag_note", json!({ "id": 2, "tag": "demo" })).await;
        assert_eq!(tagged["note"]["tags"], json!(["demo", "home", "list"]));
    }
    let tags = demo.ok("list_tags", json!({})).await;
    assert_eq!(tags["tags"][0], json!({ "tag": "demo", "notes": 3 }));
    for _ in 0..2 {
        let untagged = demo
            .ok("untag_note", json!({ "id": 2, "tag": "demo" }))
            .await;
        assert_eq!(untagged["note"]["tags"], json!(["home", "list"]));
    }
}

#[tokio::test]
async fn pins_decide_who_is_first() {
    let demo = Demo::start().await;
    demo.ok("pin_note", json!({ "id": 1, "pinned": false }))
        .await;
    demo.ok("pin_note", json!({ "id": 2 })).await;
    assert_eq!(demo.ids("list_notes", json!({ "limit": 1 })).await, [2]);
}

#[tokio::test]
async fn an_export_can_be_imported() {
    let demo = Demo::start().await;
    demo.ok("archive_note", json!({ "id": 3 })).await;
    demo.ok("delete_note", json!({ "id": 2 })).await;
    let export = demo.call("export_notes", json!({})).await;
    let notes = export["structuredContent"]["notes"].clone();
    assert_eq!(notes.as_array().unwrap().len(), 2, "the bin stays behind");
    assert_eq!(
        serde_json::from_str::<Value>(&text(&export)).unwrap(),
        notes
    );

    let import = json!({ "notes": notes, "mode": "replace" });
    let imported = demo.ok("import_notes", import).await;
    assert_eq!(
        imported,
        json!({ "ids": [4, 5], "purged": 3 }),
        "no id is used twice"
    );
    let again = demo.ok("export_notes", json!({})).await;
    assert_eq!(again["notes"], notes);

    let markdown = demo
        .call("export_notes", json!({ "format": "markdown" }))
        .await;
    assert!(text(&markdown).starts_with("# Welcome to the demo\n\nThese notes"));
}

#[tokio::test]
async fn an_import_adds_unless_told_to_replace() {
    let demo = Demo::start().await;
    let import = json!({ "notes": [{ "title": "A" }, { "title": "B", "archived": true }] });
    let imported = demo.ok("import_notes", import).await;
    assert_eq!(imported, json!({ "ids": [4, 5], "purged": 0 }));
    assert_eq!(
        demo.ids("list_notes", json!({ "archived": true })).await,
        [5]
    );
    assert_eq!(demo.ids("list_notes", json!({})).await, [1, 4, 3, 2]);
}
