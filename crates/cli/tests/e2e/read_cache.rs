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
    let [shown, notice] = &blocks[..] else {
        panic!("{blocks:?}");
    };
    assert!(shown.chars().count() <= LIMIT);
    assert!(notice.contains("read_cache"), "{notice}");
    let mut arguments = named_arguments(notice);
    let mut whole = shown.clone();
    loop {
        let part = session.call("read_cache", &arguments).await;
        whole.push_str(&texts(&part)[0]);
        let part: Value = serde_json::from_str(&part).unwrap();
        let next = &part["structuredContent"]["next_offset"];
        if next.is_null() {
            break;
        }
        arguments["offset"] = next.clone();
    }
    assert_eq!(whole, text);
}

#[tokio::test]
async fn nobody_else_reads_what_a_session_kept() {
    let (front, session) = front(&long_text(), LIMIT).await;
    let blocks = texts(&read(&session, "up:long").await);
    let arguments = named_arguments(blocks.last().unwrap());
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
    let length = blocks[0].chars().count();
    assert!((90_000..=100_000).contains(&length), "{length}");
}
