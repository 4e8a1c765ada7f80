//! Cutting a result that is too long for an agent's context. Shorter ones are not even parsed.

use mcp::{Members, RawValue};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;

/// A result that was cut: what is shown, up to the notice, and the whole to be kept.
#[derive(Debug)]
pub(super) struct Cut<'a> {
    members: Members<'a>,
    shown: Vec<Block<'a>>,
    /// The character of the whole at which the part that is not shown begins.
    read_on_at: usize,
    whole: Whole,
}

/// All text of a result, and its structured content where that is not shown.
#[derive(Debug, Default)]
struct Whole {
    text: String,
    characters: usize,
}

/// A content block: passed as it is, or text that was cut.
#[derive(Debug, serde::Serialize)]
#[serde(untagged)]
enum Block<'a> {
    Untouched(&'a RawValue),
    Text(Box<RawValue>),
}

#[derive(Deserialize)]
struct TextBlock {
    r#type: String,
    text: String,
}

impl<'a> Cut<'a> {
    /// Cuts `result` to `limit` characters of text; none if it is short enough, or not the result
    /// of a tool at all.
    pub(super) fn new(result: &'a RawValue, limit: usize) -> Option<Self> {
        // A character takes at least a byte, escaped or not.
        if limit == 0 || result.get().len() <= limit {
            return None;
        }
        let mut members = Members::parse(result).ok()?;
        let content: Vec<&'a RawValue> = serde_json::from_str(borrowed(result, "content")?).ok()?;
        let structured = borrowed(result, "structuredContent");
        let mut shown = Vec::new();
        let mut whole = Whole::default();
        let mut left = limit;
        let mut read_on_at = None;
        for block in content {
            let text_block = serde_json::from_str::<TextBlock>(block.get());
            let Some(text) = text_block.ok().filter(|block| block.r#type == "text") else {
                shown.push(Block::Untouched(block));
                continue;
            };
            let text = text.text;
            let start = whole.append(if whole.text.is_empty() { "" } else { "\n" }, &text);
            let characters = whole.characters - start;
            if read_on_at.is_some() {
                continue;
            }
            if characters <= left {
                shown.push(Block::Untouched(block));
                left -= characters;
            } else {
                let part = &text[..boundary(&text, left)];
                shown.push(text_content(part)?);
                read_on_at = Some(start + part.chars().count());
                left = 0;
            }
        }
        // Structured content usually says the same again; an agent gets it whole or not at all.
        if let Some(structured) = structured.filter(|raw| raw.chars().count() > left) {
            members.remove("structuredContent");
            let start = whole.append("\n\nstructuredContent: ", structured);
            read_on_at = read_on_at.or(Some(start));
        }
        Some(Self {
            members,
            shown,
            read_on_at: read_on_at?,
            whole,
        })
    }

    /// What is to be kept, so that the agent can read on.
    pub(super) fn take_whole(&mut self) -> String {
        std::mem::take(&mut self.whole.text)
    }

    /// The result to show, with a notice that says what is missing and how to get it.
    pub(super) fn finish(mut self, key: Option<&str>) -> Option<Box<RawValue>> {
        let (shown, total) = (self.read_on_at, self.whole.characters);
        let rest = match key {
            Some(key) => format!(
                "Read on with read_cache {{\"key\": \"{key}\", \"offset\": {shown}}}, or ask the tool for less."
            ),
            None => "The rest is too large to be kept; ask the tool for less.".to_owned(),
        };
        let notice =
            format!("[mcpproxy: the first {shown} of {total} characters are shown. {rest}]");
        self.shown.push(text_content(&notice)?);
        self.members.set("content", to_raw_value(&self.shown).ok()?);
        self.members.to_raw().ok()
    }
}

// === impl Whole ===

impl Whole {
    /// Adds text and tells at which character it begins.
    fn append(&mut self, separator: &str, text: &str) -> usize {
        self.text.push_str(separator);
        self.text.push_str(text);
        let start = self.characters + separator.chars().count();
        self.characters = start + text.chars().count();
        start
    }
}

/// The text of one member of an object, borrowed from the object itself.
fn borrowed<'a>(object: &'a RawValue, member: &str) -> Option<&'a str> {
    let members: std::collections::HashMap<String, &'a RawValue> =
        serde_json::from_str(object.get()).ok()?;
    members.get(member).map(|raw| raw.get())
}

fn text_content<'a>(text: &str) -> Option<Block<'a>> {
    to_raw_value(&json!({"type": "text", "text": text}))
        .ok()
        .map(Block::Text)
}

/// The byte at which to cut: after `characters` characters, or after the last line that ends
/// within them, if that does not lose more than a tenth.
fn boundary(text: &str, characters: usize) -> usize {
    let end = text
        .char_indices()
        .nth(characters)
        .map_or(text.len(), |(index, _)| index);
    match text[..end].rfind('\n') {
        Some(line_end) if line_end >= end - end / 10 => line_end + 1,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).unwrap()
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn what_fits_is_left_alone() {
        let result = raw(&json!({"content": [text(&"ä".repeat(100))]}));
        assert!(Cut::new(&result, 100).is_none());
        assert!(Cut::new(&result, 0).is_none());
        assert!(Cut::new(&raw(&json!({"content": 7, "x": "y".repeat(500)})), 100).is_none());
    }

    #[test]
    fn text_is_cut_by_characters_and_the_rest_is_named() {
        let result = raw(&json!({
            "content": [text(&"ä".repeat(60)), {"type": "image", "data": "A"}, text(&"ö".repeat(60))],
            "isError": false
        }));
        let mut cut = Cut::new(&result, 100).unwrap();
        let whole = cut.take_whole();
        assert_eq!(whole.chars().skip(101).collect::<String>(), "ö".repeat(20));
        let shown: Value = serde_json::from_str(cut.finish(Some("k")).unwrap().get()).unwrap();
        assert_eq!(shown["content"][0]["text"], "ä".repeat(60));
        assert_eq!(shown["content"][1]["type"], "image");
        assert_eq!(shown["content"][2]["text"], "ö".repeat(40));
        let notice = shown["content"][3]["text"].as_str().unwrap();
        assert!(notice.contains("first 101 of 121 characters"), "{notice}");
        assert!(
            notice.contains(r#"read_cache {"key": "k", "offset": 101}"#),
            "{notice}"
        );
        assert_eq!(shown["isError"], false);
    }

    #[test]
    fn structured_content_that_does_not_fit_is_kept_with_the_whole() {
        let result = raw(&json!({
            "content": [text("short")],
            "structuredContent": {"rows": "x".repeat(200)}
        }));
        let mut cut = Cut::new(&result, 100).unwrap();
        let whole = cut.take_whole();
        assert!(
            whole.starts_with("short\n\nstructuredContent: {"),
            "{whole}"
        );
        assert!(whole.ends_with("x\"}"), "{whole}");
        let shown: Value = serde_json::from_str(cut.finish(None).unwrap().get()).unwrap();
        assert!(shown.get("structuredContent").is_none());
        assert!(
            shown["content"][1]["text"]
                .as_str()
                .unwrap()
                .contains("too large to be kept")
        );
    }

    #[test]
    fn a_line_end_near_the_limit_is_preferred() {
        assert_eq!(
            boundary(&format!("{}\n{}", "x".repeat(95), "y".repeat(50)), 100),
            96
        );
        assert_eq!(boundary(&format!("x\n{}", "y".repeat(150)), 100), 100);
    }
}
