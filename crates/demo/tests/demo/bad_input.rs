//! What comes back when the client is wrong.

use serde_json::{Value, json};

use crate::support::Demo;

/// Every call must be refused with a message that holds the text beside it, and change nothing.
async fn all_refused(calls: Vec<(&str, Value, &str)>) {
    let demo = Demo::start().await;
    for (name, arguments, expected) in calls {
        let message = demo.refused(name, arguments.clone()).await;
        assert!(message.starts_with(&format!("{name}: ")), "{message}");
        assert!(message.contains(expected), "{name} {arguments}: {message}");
    }
    assert_eq!(demo.ids("list_notes", json!({})).await, [1, 3, 2]);
}

#[tokio::test]
async fn a_wrong_id_is_refused_with_advice() {
    let call = |arguments, expected| ("get_note", arguments, expected);
    all_refused(vec![
        call(json!({}), "missing field `id`. Arguments: id (required)."),
        call(
            json!({ "id": "3" }),
            "id: invalid type: string \"3\", expected the id of a note",
        ),
        call(
            json!({ "id": 1.5 }),
            "expected the id of a note, a whole number from 1 up",
        ),
        call(
            json!({ "id": -1 }),
            "invalid value: integer `-1`, expected the id of a note",
        ),
        call(json!({ "id": u64::MAX }), "expected the id of a note"),
        call(
            json!({ "id": 9 }),
            "there is no note 9; the nearest ids are 3, 2, 1.",
        ),
        call(
            json!({ "id": 1, "x": 1 }),
            "unknown field `x`, expected `id`",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_wrong_filter_is_refused_with_advice() {
    let list = |arguments, expected| ("list_notes", arguments, expected);
    all_refused(vec![
        list(
            json!({ "limit": 0 }),
            "limit: invalid value: integer `0`, expected a limit",
        ),
        list(json!({ "limit": 101 }), "a whole number from 1 to 100"),
        list(
            json!({ "archived": "yes" }),
            "archived: invalid type: string \"yes\"",
        ),
        list(
            json!({ "tag": "a b" }),
            "tag: a tag is one word of letters, digits, `-` and `_`",
        ),
        (
            "list_tags",
            json!({ "x": 1 }),
            "unknown field `x`, there are no fields. Arguments: none.",
        ),
        (
            "search_notes",
            json!({ "query": " ?!" }),
            "query: a query needs at least one letter",
        ),
        (
            "export_notes",
            json!({ "format": "xml" }),
            "expected `json` or `markdown`",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_wrong_text_is_refused_with_advice() {
    let create = |arguments, expected| ("create_note", arguments, expected);
    let append = |arguments, expected| ("append_to_note", arguments, expected);
    let fields = "unknown field `titel`, expected one of `title`, `body`, `tags`, `pinned`";
    all_refused(vec![
        create(json!({ "title": "  " }), "title: a title must not be empty"),
        create(
            json!({ "title": "a\nb" }),
            "title: a title must be a single line",
        ),
        create(
            json!({ "title": "x".repeat(201) }),
            "at most 200 characters, this one has 201",
        ),
        create(
            json!({ "title": 5 }),
            "title: invalid type: integer `5`, expected a string",
        ),
        create(json!({ "titel": "x" }), fields),
        create(
            json!({ "title": "x", "tags": "a" }),
            "tags: invalid type: string \"a\"",
        ),
        create(
            json!({ "title": "x", "tags": ["a", "b c"] }),
            "tags[1]: a tag is one word",
        ),
        append(
            json!({ "id": 1, "text": "\n" }),
            "text: there is nothing to append",
        ),
        append(
            json!({ "id": 2, "text": "x".repeat(100_000) }),
            "at most 100000 characters",
        ),
        (
            "update_note",
            json!({ "id": 1 }),
            "nothing to change: give `title`, `body` or both.",
        ),
        (
            "tag_note",
            json!({ "id": 1, "tag": "#" }),
            "tag: a tag must not be empty",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_wrong_version_or_import_is_refused_with_advice() {
    let import = |arguments, expected| ("import_notes", arguments, expected);
    let version = "note 1 has no earlier version 5; list_note_versions shows those it has.";
    let dated = json!([{ "title": "x", "created_at": "yesterday" }]);
    all_refused(vec![
        (
            "restore_note_version",
            json!({ "id": 1, "version": 5 }),
            version,
        ),
        import(
            json!({ "notes": [] }),
            "nothing to import: `notes` is empty.",
        ),
        import(
            json!({ "notes": [{ "title": "x" }, {}] }),
            "notes[1]: missing field `title`",
        ),
        import(json!({ "notes": dated }), "notes[0].created_at: "),
        import(
            json!({ "notes": [], "mode": "merge" }),
            "expected `add` or `replace`",
        ),
        (
            "purge_all_notes",
            json!({ "confirm": true }),
            "unknown field `confirm`",
        ),
    ])
    .await;
}

#[tokio::test]
async fn nearest_ids_are_the_nearest() {
    let demo = Demo::start().await;
    let titles: Vec<_> = (4..=20)
        .map(|id| json!({ "title": id.to_string() }))
        .collect();
    demo.ok("import_notes", json!({ "notes": titles })).await;
    demo.ok("purge_note", json!({ "id": 10 })).await;
    assert_eq!(
        demo.refused("get_note", json!({ "id": 10 })).await,
        "get_note: there is no note 10; the nearest ids are 9, 11, 8."
    );
}

#[tokio::test]
async fn null_stands_for_an_argument_left_out() {
    let demo = Demo::start().await;
    let found = demo.ids("list_notes", json!({ "tag": null })).await;
    assert_eq!(found.len(), 3);
    let params = json!({ "name": "list_notes", "arguments": null, "_meta": null });
    let result = demo.request("tools/call", params).await.unwrap();
    assert_eq!(result["isError"], false);
}

async fn invalid_params(demo: &Demo, method: &str, params: Value) -> String {
    let error = demo.request(method, params).await.unwrap_err();
    assert_eq!(error.code, -32602, "{error}");
    error.message
}

#[tokio::test]
async fn a_broken_call_is_an_error_of_the_protocol() {
    let demo = Demo::start().await;
    let call = |params| invalid_params(&demo, "tools/call", params);
    assert_eq!(
        call(json!({ "name": "get_notes" })).await,
        "Unknown tool: get_notes; did you mean get_note?"
    );
    assert_eq!(call(json!({ "name": "zzz" })).await, "Unknown tool: zzz");
    assert!(call(json!({})).await.contains("missing field `name`"));
    let list = json!({ "name": "list_notes", "arguments": [] });
    assert!(call(list).await.contains("expected a map"));
}

#[tokio::test]
async fn there_is_one_page_of_tools() {
    let demo = Demo::start().await;
    assert_eq!(
        invalid_params(&demo, "tools/list", json!({ "cursor": "2" })).await,
        "Unknown cursor: 2"
    );
    let listed = demo.request("tools/list", json!({})).await.unwrap();
    assert!(listed.get("nextCursor").is_none());
}

#[tokio::test]
async fn other_methods_are_not_known() {
    let demo = Demo::start().await;
    let error = demo.request("prompts/list", json!({})).await.unwrap_err();
    assert_eq!(error.code, -32601);
}
