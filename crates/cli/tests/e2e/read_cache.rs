//! Results that are longer than agents take: cut, kept, and readable to the end.

use serde_json::{Value, json};
use testkit::{Script, Session, Tool};

use crate::support::{Front, read};

const LIMIT: usize = 1_000;

/// Lines of different lengths, with characters of one to four bytes.
fn long_text() -> String {
    (0..400)
        .map(|n| format!("{n} {}é漢😀\n", "x".repeat(n % 83)))
        .collect()
}

async fn front(text: &str, limit: usize) -> (Front, Session) {
    let result = json!({"content": [{"type": "text", "text": text}]}).to_string();
    let script = Script::new([Tool::read_only("long").returns(result)]);
    let front = Front::with(json!({"tool_response_limit": limit}), &script).await;
    let session = front.session("long").await;
    (front, session)
}

/// The texts of all blocks of a result.
fn texts(result: &str) -> Vec<String> {
    let result: Value = serde_json::from_str(result).unwrap();
    assert_ne!(result["isError"], true, "{result}");
    let blocks = result["content"].as_array().unwrap();
    let texts = blocks
        .iter()
        .map(|block| block["text"].as_str().unwrap().to_owned());
    texts.collect()
}

/// The arguments that the notice tells the agent to call `read_cache` with.
fn named_arguments(notice: &str) -> Value {
    let start = notice.find('{').unwrap();
    let end = notice.rfind('}').unwrap();
    serde_json::from_str(&notice[start..=end]).unwrap_or_else(|_| panic!("{notice}"))
}

#[tokio::test]
async fn reading_on_from_where_it_was_cut_loses_nothing() {
    let text = long_text();
    let (_front, session) = front(&text, LIMIT).await;
    let blocks = texts(&read(&session, "up:long").await);
    let [notice, shown] = &blocks[..] else {
        panic!("{blocks:?}");
    };
    assert!(shown.chars().count() <= LIMIT);
    assert!(notice.contains("read_cache"), "{notice}");
    let mut arguments = named_arguments(notice);
    let mut whole = shown.clone();
    loop {
        let part = session.call("read_cache", &arguments).await;
        whole.push_str(&texts(&part)[1]);
        let part: Value = serde_json::from_str(&part).unwrap();
        assert!(part.get("structuredContent").is_none(), "{part}");
        let position = part["content"][0]["text"].as_str().unwrap();
        if position.contains("This is the end") {
            break;
        }
        arguments = named_arguments(position);
    }
    assert_eq!(whole, text);
}

/// Blocks of every type, and members beside them, over the limit: each becomes a note, and all of
/// it can be read page by page.
#[tokio::test]
async fn what_is_not_text_is_left_out_and_can_be_read() {
    let large = "A".repeat(300_000);
    let blocks = [
        json!({"type": "image", "data": large, "mimeType": "image/png"}),
        json!({"type": "audio", "data": large, "mimeType": "audio/wav"}),
        json!({"type": "resource", "resource": {"uri": "x://y", "text": large}}),
        json!({"type": "resource_link", "uri": "x://y", "name": "n", "description": large}),
        json!({"type": "hologram", "data": large}),
    ];
    let tools = blocks.iter().enumerate().map(|(index, block)| {
        let result = json!({"content": [block], "_meta": {"m": large}});
        Tool::read_only(&format!("t{index}")).returns(result.to_string())
    });
    let limit = json!({"tool_response_limit": 200_000});
    let front = Front::with(limit, &Script::new(tools)).await;
    let session = front.session("t0").await;
    for (index, block) in blocks.iter().enumerate() {
        let shown = read(&session, &format!("up:t{index}")).await;
        assert!(shown.len() < 2_000, "{} bytes", shown.len());
        let mut arguments = named_arguments(&texts(&shown)[0]);
        let length = usize::try_from(arguments["limit"].as_u64().unwrap()).unwrap();
        let mut read = String::new();
        while read.len() < length {
            let page = texts(&session.call("read_cache", &arguments).await);
            read.push_str(&page[1]);
            arguments = json!({"key": arguments["key"], "limit": length - read.len(),
                "offset": named_arguments(&page[0])["offset"]});
        }
        assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), *block);
    }
}

#[tokio::test]
async fn structured_content_that_repeats_the_text_is_kept_once() {
    let text = long_text();
    let result = json!({"content": [{"type": "text", "text": text}], "structuredContent": {"content": text}});
    let script = Script::new([Tool::read_only("long").returns(result.to_string())]);
    let front = Front::with(json!({"tool_response_limit": LIMIT}), &script).await;
    let session = front.session("long").await;
    let blocks = texts(&read(&session, "up:long").await);
    let total = format!("of {} characters", text.chars().count());
    assert!(blocks[0].contains(&total), "{blocks:?}");
}

/// Servers that answer with text and the same as structured content: a client passes on one of them.
#[tokio::test]
async fn structured_content_that_repeats_the_text_is_counted_once() {
    let text = "y".repeat(LIMIT - 100);
    let result =
        json!({"content": [{"type": "text", "text": text}], "structuredContent": {"result": text}});
    let script = Script::new([Tool::read_only("long").returns(result.to_string())]);
    let front = Front::with(json!({"tool_response_limit": LIMIT}), &script).await;
    let session = front.session("long").await;
    let shown: Value = serde_json::from_str(&read(&session, "up:long").await).unwrap();
    assert_eq!(shown, result);
}

/// A message of an upstream beyond what is taken at all: the agent is told what and why.
#[tokio::test]
async fn a_message_over_the_limit_is_refused_in_words() {
    let text = "x".repeat(17 * 1024 * 1024);
    let (_front, session) = front(&text, LIMIT).await;
    let answer = read(&session, "up:long").await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["isError"], true);
    assert_eq!(answer["structuredContent"]["code"], "UPSTREAM_ERROR");
    let message = answer["content"][0]["text"].as_str().unwrap();
    for words in ["16777216 bytes", "limits.upstream_message_bytes"] {
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn nobody_else_reads_what_a_session_kept() {
    let (front, session) = front(&long_text(), LIMIT).await;
    let blocks = texts(&read(&session, "up:long").await);
    let arguments = named_arguments(&blocks[0]);
    let other = front.daemon.session().await;
    let result = other.call("read_cache", &arguments).await;
    assert!(result.contains("\"isError\":true"), "{result}");
}

#[tokio::test]
async fn what_fits_is_untouched_and_0_means_never() {
    let text = "y".repeat(LIMIT);
    let (_front, session) = front(&text, LIMIT).await;
    assert_eq!(texts(&read(&session, "up:long").await), [text]);
    let text = "long ".repeat(50_000);
    let (_front, session) = front(&text, 0).await;
    assert_eq!(texts(&read(&session, "up:long").await), [text]);
}

#[tokio::test]
async fn the_limit_is_100_000_characters_unless_told() {
    let text = "line of text\n".repeat(20_000);
    let result = json!({"content": [{"type": "text", "text": text}]}).to_string();
    let front = Front::of([Tool::read_only("long").returns(result)]).await;
    let session = front.session("long").await;
    let blocks = texts(&read(&session, "up:long").await);
    let length = blocks[1].chars().count();
    assert!((90_000..=100_000).contains(&length), "{length}");
}
