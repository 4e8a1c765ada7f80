//! What a tool answers: text for people, and the same as data.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::note::{Body, Note, NoteState, Tag};

const FIRST_LINE_CHARACTERS: usize = 80;

#[derive(Debug)]
pub(crate) struct Reply {
    text: String,
    structured: Value,
}

impl Reply {
    /// `structured` must be an object, because MCP wants one.
    pub(super) fn new(text: impl Into<String>, structured: Value) -> Self {
        Self {
            text: text.into(),
            structured,
        }
    }

    /// Says what happened to a note, and shows the note.
    pub(super) fn about(text: impl Into<String>, note: &Note) -> Self {
        Self::new(text, json!({ "note": note }))
    }

    pub(super) fn into_result(self) -> Value {
        json!({
            "content": [{ "type": "text", "text": self.text }],
            "structuredContent": self.structured,
            "isError": false,
        })
    }
}

/// `1 note`, `7 notes`.
pub(super) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// A note in one line of a list.
pub(super) fn line(note: &Note) -> String {
    let mut line = format!("#{} {}", note.id, note.title);
    if note.pinned {
        line.push_str(" (pinned)");
    }
    if note.state == NoteState::Archived {
        line.push_str(" (archived)");
    }
    append_tags(&mut line, &note.tags);
    line
}

/// A note in a list, as data: everything but its text.
pub(super) fn entry(note: &Note) -> Value {
    json!({
        "id": note.id,
        "title": note.title,
        "first_line": first_line(&note.body),
        "tags": note.tags,
        "pinned": note.pinned,
        "state": note.state,
        "updated_at": note.updated_at,
    })
}

/// A whole note for reading.
pub(super) fn page(note: &Note) -> String {
    let mut page = line(note);
    if note.state == NoteState::Bin {
        page.push_str(" (in the bin)");
    }
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "\nversion {}, updated {}\n\n{}",
        note.version, note.updated_at, note.body
    );
    page
}

fn append_tags<'a>(line: &mut String, tags: impl IntoIterator<Item = &'a Tag>) {
    let tags: Vec<_> = tags.into_iter().map(Tag::as_str).collect();
    if !tags.is_empty() {
        line.push_str(" [");
        line.push_str(&tags.join(", "));
        line.push(']');
    }
}

fn first_line(body: &Body) -> String {
    let line = body.first_line();
    match line.char_indices().nth(FIRST_LINE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
