use super::*;

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// What is kept and what is shown of a result that is cut to 100 characters.
fn cut(result: &Value) -> (String, Value) {
    let result = raw(result);
    let mut cut = Cut::new(&result, 100).unwrap();
    let whole = cut.take_whole();
    let shown = serde_json::from_str(cut.finish(Some("k")).unwrap().get()).unwrap();
    (whole, shown)
}

/// The part of the whole that a note says is left out.
fn noted(whole: &str, note: &Value) -> String {
    let note = note["text"].as_str().unwrap();
    let (_, arguments) = note.split_once("read_cache ").unwrap();
    let (arguments, _) = arguments.split_once(", or ask").unwrap();
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    let number = |name: &str| usize::try_from(arguments[name].as_u64().unwrap()).unwrap();
    let (offset, limit) = (number("offset"), number("limit"));
    whole.chars().skip(offset).take(limit).collect()
}

#[test]
fn what_fits_is_left_alone() {
    let result = raw(&json!({"content": [text(&"ä".repeat(100))]}));
    assert!(Cut::new(&result, 100).is_none());
    assert!(Cut::new(&result, 0).is_none());
}

#[test]
fn text_is_cut_by_characters_and_the_rest_is_named() {
    let (whole, shown) = cut(&json!({
        "content": [text(&"ä".repeat(60)), {"type": "x"}, text(&"ö".repeat(60))],
        "isError": false
    }));
    assert_eq!(shown["content"][1]["text"], "ä".repeat(60));
    assert_eq!(shown["content"][2]["type"], "x");
    // The block between them has twelve characters.
    assert_eq!(shown["content"][3]["text"], "ö".repeat(28));
    assert_eq!(whole.chars().skip(89).collect::<String>(), "ö".repeat(32));
    let notice = shown["content"][0]["text"].as_str().unwrap();
    assert!(notice.contains("first 89 of"), "{notice}");
    assert!(
        notice.contains(r#"read_cache {"key": "k", "offset": 89}"#),
        "{notice}"
    );
}

#[test]
fn blocks_of_every_type_are_left_out_and_kept() {
    let large = "A".repeat(200);
    for block in [
        json!({"type": "image", "data": large, "mimeType": "image/png"}),
        json!({"type": "audio", "data": large, "mimeType": "audio/wav"}),
        json!({"type": "resource", "resource": {"uri": "x://y", "text": large}}),
        json!({"type": "resource_link", "uri": "x://y", "name": large}),
        json!({"type": "hologram", "data": large}),
        json!({"type": "text", "text": 7, "data": large}),
        json!([large]),
    ] {
        let (whole, shown) = cut(&json!({"content": [text("before"), block, text("behind")]}));
        let first = shown["content"][0]["text"].as_str().unwrap();
        assert!(first.contains("1 part is left out"), "{first}");
        assert_eq!(shown["content"][1]["text"], "before");
        assert_eq!(shown["content"][3]["text"], "behind");
        let kept: Value = serde_json::from_str(&noted(&whole, &shown["content"][2])).unwrap();
        assert_eq!(kept, block);
        assert!(shown.to_string().len() < 750, "{shown}");
    }
}

#[test]
fn members_that_do_not_fit_are_left_out_and_kept() {
    let large = json!({"x": "A".repeat(2_000)});
    for name in ["_meta", "future"] {
        let (whole, shown) = cut(&json!({"content": [text("t")], name: large, "isError": true}));
        assert!(shown.get(name).is_none());
        assert_eq!(shown["isError"], true);
        assert!(shown["content"][2]["text"].as_str().unwrap().contains(name));
        assert_eq!(noted(&whole, &shown["content"][2]), large.to_string());
    }
    let of_block = json!({"type": "text", "text": "t", "_meta": "A".repeat(2_000)});
    let (whole, shown) = cut(&json!({"content": [of_block]}));
    assert_eq!(shown["content"][1], text("t"));
    assert_eq!(noted(&whole, &shown["content"][2]), of_block.to_string());
}

#[test]
fn results_of_no_known_form_are_left_out_and_kept() {
    for odd in [
        json!({"content": "A".repeat(2_000)}),
        json!({"contents": ["A".repeat(2_000)]}),
        json!("A".repeat(2_000)),
    ] {
        let (whole, shown) = cut(&odd);
        let kept: Value = serde_json::from_str(&noted(&whole, &shown["content"][0])).unwrap();
        assert!(
            kept == odd
                || odd
                    .as_object()
                    .unwrap()
                    .values()
                    .any(|value| *value == kept)
        );
        assert!(shown.to_string().len() < 400);
    }
}

#[test]
fn notes_and_blocks_are_bounded() {
    let image = json!({"type": "image", "data": "A".repeat(200)});
    let (_, shown) = cut(&json!({"content": vec![image; 500]}));
    let content = shown["content"].as_array().unwrap();
    assert_eq!(content.len(), MOST_NOTES + 1);
    let last = content[MOST_NOTES]["text"].as_str().unwrap();
    assert!(last.contains("480 more parts"), "{last}");
    let (_, shown) = cut(&json!({"content": vec![text(""); 5_000]}));
    assert!(shown["content"].as_array().unwrap().len() <= MOST_BLOCKS + MOST_NOTES + 2);
}

#[test]
fn structured_content_that_does_not_fit_is_kept_with_the_whole() {
    let (whole, shown) = cut(&json!({
        "content": [text("short")],
        "structuredContent": {"rows": "x".repeat(200)}
    }));
    assert!(
        whole.starts_with("short\n\nstructuredContent: {"),
        "{whole}"
    );
    assert!(whole.ends_with("x\"}"), "{whole}");
    assert!(shown.get("structuredContent").is_none());
}

#[test]
fn structured_content_that_repeats_the_text_is_kept_once() {
    let long = "line\n".repeat(100);
    let (whole, _) =
        cut(&json!({"content": [text(&long)], "structuredContent": {"content": long}}));
    assert_eq!(whole, long);
    let rows = json!({"rows": vec![1.5; 100]});
    let spaced = serde_json::to_string_pretty(&rows).unwrap();
    let (whole, _) = cut(&json!({"content": [text(&spaced)], "structuredContent": rows}));
    assert_eq!(whole, spaced);
    let items = ["x".repeat(80), r#"{"y": 1}"#.to_owned(), "z".repeat(80)];
    let (whole, _) = cut(&json!({
        "content": [text(&items[0]), text(&items[1]), text(&items[2])],
        "structuredContent": {"result": [items[0], {"y": 1}, items[2]]}
    }));
    assert_eq!(whole, items.join("\n"));
}

#[test]
fn structured_content_that_repeats_the_text_is_counted_once() {
    let said = "x".repeat(80);
    let result = json!({"content": [text(&said)], "structuredContent": {"result": said}});
    assert!(Cut::new(&raw(&result), 100).is_none());
    let image = json!({"type": "image", "data": "A".repeat(200)});
    let (_, shown) = cut(&json!({
        "content": [text(&said), image], "structuredContent": {"result": said}
    }));
    assert_eq!(shown.to_string().matches(&said).count(), 1, "{shown}");
}

#[test]
fn structured_content_that_fits_stands_beside_the_notices() {
    let (_, shown) = cut(&json!({
        "content": [{"type": "image", "data": "A".repeat(200)}],
        "structuredContent": {"width": 7}
    }));
    assert!(shown.get("structuredContent").is_none());
    assert_eq!(
        shown["content"][1]["text"],
        r#"structuredContent: {"width":7}"#
    );
}

#[test]
fn what_cannot_be_kept_is_said_to_be_lost() {
    let result = raw(&json!({"content": [text(&"x".repeat(200))]}));
    let shown = Cut::new(&result, 100).unwrap().finish(None).unwrap();
    assert!(shown.get().contains("too large to be kept"));
}

#[test]
fn a_line_end_near_the_limit_is_preferred() {
    assert_eq!(
        boundary(&format!("{}\n{}", "x".repeat(95), "y".repeat(50)), 100),
        96
    );
    assert_eq!(boundary(&format!("x\n{}", "y".repeat(150)), 100), 100);
}
