//! What only fuzz targets need from outside: the edit of one document, without its file.

use serde_json::{Map, Value, json};

use crate::SERVER_NAME;
use crate::document::{Document, Syntax, path};
use crate::edit::Edit;

/// A document before our edits, after them, after them once more, and after they were taken back.
#[derive(Debug)]
pub struct Edited {
    pub before: Value,
    pub text: String,
    pub after: Value,
    pub text_again: String,
    pub text_back: String,
    pub back: Value,
}

/// Puts our entry and a permission rule into a text and takes both back; nothing if the text is not
/// of the syntax or has another shape.
pub fn edit(toml: bool, text: &str) -> Option<Edited> {
    let syntax = if toml { Syntax::Toml } else { Syntax::Json };
    let mut document = Document::parse(syntax, text).ok()?;
    let before = document.value();
    let mut reversals = Vec::new();
    for edit in edits() {
        reversals.splice(0..0, edit.apply(&mut document).ok()?);
    }
    let (text, after) = (document.text(), document.value());
    for edit in edits() {
        edit.apply(&mut document).ok()?;
    }
    let text_again = document.text();
    let mut document = Document::parse(syntax, &text).ok()?;
    for reversal in &reversals {
        reversal.apply(&mut document).ok()?;
    }
    Some(Edited {
        before,
        after,
        text,
        text_again,
        text_back: document.text(),
        back: document.value(),
    })
}

fn edits() -> [Edit; 2] {
    let mut set = Map::new();
    set.insert("command".to_owned(), json!(SERVER_NAME));
    set.insert("args".to_owned(), json!(["stdio"]));
    [
        Edit::Entry {
            path: path(["mcpServers", SERVER_NAME]),
            set,
            unset: vec!["url", "type"],
        },
        Edit::Element {
            path: path(["permissions", "allow"]),
            value: json!("mcp__mcpproxy__call_tool_read"),
        },
    ]
}
