//! Cutting a result that is too long for an agent's context. Shorter ones are not even parsed.
//!
//! All of a result counts: text by its characters, everything else by the characters of its JSON.
//! What is left out is kept for `read_cache` as one text: first the texts, then the structured
//! content, then blocks of other types and further members as JSON.

use std::ops::Range;

use mcp::{Members, RawValue};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// Blocks beyond this many are left out, however short they are.
const MOST_BLOCKS: usize = 1_000;

/// Blocks that are left out get a note each, up to this many.
const MOST_NOTES: usize = 20;

/// Members besides the content that are shown in any case, in bytes over all of them.
const SMALL: usize = 1_000;

/// A result that was cut: what is shown, up to the notices, and the whole to be kept.
#[derive(Debug)]
pub(super) struct Cut<'a> {
    members: Members<'a>,
    shown: Vec<Block<'a>>,
    /// The character of the whole at which text that is not shown begins.
    read_on_at: Option<usize>,
    whole: Whole,
    /// Notes that are not written because there are too many.
    more_left_out: usize,
}

/// What becomes of structured content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Structured {
    /// It fits beside the text.
    Fits,
    /// It says what the text says. A client passes on one of the two, so it counts once.
    RepeatsText,
    /// It is left out.
    LeftOut,
}

/// What is kept: see the module.
#[derive(Debug, Default)]
struct Whole {
    text: String,
    characters: usize,
}

/// A content block of the result that is shown.
#[derive(Debug)]
enum Block<'a> {
    Untouched(&'a RawValue),
    Text(String),
    /// Not shown; a note takes its place.
    LeftOut {
        what: String,
        start: usize,
        characters: usize,
    },
}

/// A content block that is text, with the size of its other members.
struct TextBlock {
    text: String,
    other_bytes: usize,
}

impl<'a> Cut<'a> {
    /// Cuts `result` to `limit` characters; none if it is short enough.
    pub(super) fn new(result: &'a RawValue, limit: usize) -> Option<Self> {
        // A character takes at least a byte, escaped or not.
        if limit == 0 || result.get().len() <= limit {
            return None;
        }
        let Ok(members) = Members::parse(result) else {
            return Some(Self::of_anything(result));
        };
        let content = member(result, "content")
            .and_then(|content| serde_json::from_str::<Vec<&'a RawValue>>(content.get()).ok());
        let mut cutter = Cutter::new(limit);
        if content.is_none() {
            cutter.other_member("content", members.get("content"));
        }
        let content = content.unwrap_or_default();
        for (index, block) in content.into_iter().enumerate() {
            if index == MOST_BLOCKS {
                cutter.is_full = true;
            }
            cutter.block(block);
        }
        cutter.is_full = false;
        let structured = members.get("structuredContent");
        let structured = cutter.structured(structured, limit);
        for (name, value) in members.iter() {
            if !matches!(name, "content" | "structuredContent") {
                cutter.other_member(name, Some(value));
            }
        }
        cutter.finish(members, structured)
    }

    /// A result that is no object has nothing that could be shown of it.
    fn of_anything(result: &'a RawValue) -> Self {
        let mut whole = Whole::default();
        let start = whole.append("", result.get());
        let left_out = Block::LeftOut {
            what: "a result that is not an object".to_owned(),
            start,
            characters: whole.characters,
        };
        Self {
            members: Members::default(),
            shown: vec![left_out],
            read_on_at: None,
            whole,
            more_left_out: 0,
        }
    }

    /// What is to be kept, so that the agent can read on.
    pub(super) fn take_whole(&mut self) -> String {
        std::mem::take(&mut self.whole.text)
    }

    /// The result to show, with notices that say what is missing and how to get it.
    ///
    /// The first block says that the result is cut: clients that shorten it once more keep its
    /// beginning.
    pub(super) fn finish(mut self, key: Option<&str>) -> Option<Box<RawValue>> {
        let total = self.whole.characters;
        let mut content: Vec<Box<RawValue>> = Vec::with_capacity(self.shown.len() + 2);
        if let Some(shown) = self.read_on_at {
            let rest = how_to_read("Read on", key, shown, None);
            content.push(text_content(&format!(
                "[mcpproxy: this result is cut; the first {shown} of {total} characters follow. {rest}]"
            ))?);
        } else if self.notes() > 0 && !matches!(self.shown.first(), Some(Block::LeftOut { .. })) {
            let parts = match self.notes() + self.more_left_out {
                1 => "1 part is".to_owned(),
                parts => format!("{parts} parts are"),
            };
            content.push(text_content(&format!(
                "[mcpproxy: this result is cut; {parts} left out. Notes like this one in their \
                 places say how to read them.]"
            ))?);
        }
        for block in self.shown {
            content.push(match block {
                Block::Untouched(block) => block.to_owned(),
                Block::Text(text) => text_content(&text)?,
                Block::LeftOut {
                    what,
                    start,
                    characters,
                } => {
                    let rest = how_to_read("Read it", key, start, Some(characters));
                    text_content(&format!(
                        "[mcpproxy: {what}, {characters} characters, is left out. {rest}]"
                    ))?
                }
            });
        }
        if self.more_left_out > 0 {
            let count = self.more_left_out;
            content.push(text_content(&format!(
                "[mcpproxy: {count} more parts are left out; they are at the end of what is kept.]"
            ))?);
        }
        self.members.set("content", to_raw_value(&content).ok()?);
        self.members.to_raw().ok()
    }

    /// The number of blocks that a note takes the place of.
    fn notes(&self) -> usize {
        count_notes(&self.shown)
    }
}

fn count_notes(shown: &[Block<'_>]) -> usize {
    let notes = shown
        .iter()
        .filter(|block| matches!(block, Block::LeftOut { .. }));
    notes.count()
}

fn how_to_read(verb: &str, key: Option<&str>, offset: usize, limit: Option<usize>) -> String {
    let limit = limit.map(|limit| format!(", \"limit\": {limit}"));
    let limit = limit.unwrap_or_default();
    match key {
        Some(key) => format!(
            "{verb} with read_cache {{\"key\": \"{key}\", \"offset\": {offset}{limit}}}, or ask the tool for less."
        ),
        None => "What is left out is too large to be kept; ask the tool for less.".to_owned(),
    }
}

/// Goes through the parts of a result with the characters that are left for them.
struct Cutter<'a> {
    left: usize,
    small_left: usize,
    /// Whether nothing more is shown, however short it is.
    is_full: bool,
    shown: Vec<Block<'a>>,
    read_on_at: Option<usize>,
    whole: Whole,
    /// Where each text block is in the whole, in bytes.
    texts: Vec<Range<usize>>,
    /// What is kept behind all text, and the block that stands for it, if one does.
    left_out: Vec<(String, Option<usize>)>,
    removed: Vec<String>,
    more_left_out: usize,
}

impl<'a> Cutter<'a> {
    fn new(limit: usize) -> Self {
        Self {
            left: limit,
            small_left: SMALL,
            is_full: false,
            shown: Vec::new(),
            read_on_at: None,
            whole: Whole::default(),
            texts: Vec::new(),
            left_out: Vec::new(),
            removed: Vec::new(),
            more_left_out: 0,
        }
    }

    fn block(&mut self, block: &'a RawValue) {
        let Some(TextBlock { text, other_bytes }) = TextBlock::parse(block) else {
            let characters = block.get().chars().count();
            if self.takes(characters) {
                self.shown.push(Block::Untouched(block));
            } else {
                self.leave_out(kind_of(block), block.get());
            }
            return;
        };
        let separator = if self.whole.text.is_empty() { "" } else { "\n" };
        let start = self.whole.append(separator, &text);
        let characters = self.whole.characters - start;
        let end = self.whole.text.len();
        self.texts.push(end - text.len()..end);
        if self.read_on_at.is_none() && self.takes(characters) {
            if self.takes_member(other_bytes) {
                self.shown.push(Block::Untouched(block));
            } else {
                self.shown.push(Block::Text(text));
                self.leave_out("a text block with its other members".into(), block.get());
            }
        } else if self.read_on_at.is_none() {
            let left = if self.is_full { 0 } else { self.left };
            let part = &text[..boundary(&text, left)];
            self.read_on_at = Some(start + part.chars().count());
            self.shown.push(Block::Text(part.to_owned()));
            self.left = 0;
        }
    }

    fn structured(&mut self, structured: Option<&RawValue>, limit: usize) -> Structured {
        let Some(structured) = structured else {
            return Structured::Fits;
        };
        let characters = structured.get().chars().count();
        if self.takes(characters) {
            return Structured::Fits;
        }
        let repeats = repeats(structured, &self.whole.text, &self.texts);
        if repeats && self.read_on_at.is_none() && characters <= limit {
            return Structured::RepeatsText;
        }
        // Clients that pass on nothing else would pass on no notice either.
        self.removed.push("structuredContent".to_owned());
        if !repeats {
            let start = self
                .whole
                .append("\n\nstructuredContent: ", structured.get());
            self.read_on_at = self.read_on_at.or(Some(start));
        }
        Structured::LeftOut
    }

    fn other_member(&mut self, name: &str, value: Option<&RawValue>) {
        let Some(value) = value else {
            return;
        };
        if !self.takes_member(name.len() + value.get().len()) {
            self.removed.push(name.to_owned());
            self.leave_out(format!("the member {:?}", excerpt(name)), value.get());
        }
    }

    /// Whether this many characters may still be shown, which then are.
    fn takes(&mut self, characters: usize) -> bool {
        let fits = !self.is_full && characters <= self.left;
        if fits {
            self.left -= characters;
        }
        fits
    }

    /// The same for members that say little, such as `isError`, which are shown in any case.
    fn takes_member(&mut self, bytes: usize) -> bool {
        if bytes <= self.small_left {
            self.small_left -= bytes;
            return true;
        }
        self.takes(bytes)
    }

    fn leave_out(&mut self, what: String, json: &str) {
        let noted = self.left_out.len() < MOST_NOTES;
        let place = noted.then_some(self.shown.len());
        if noted {
            self.shown.push(Block::LeftOut {
                what,
                start: 0,
                characters: 0,
            });
        } else {
            self.more_left_out += 1;
        }
        self.left_out.push((json.to_owned(), place));
    }

    fn finish(mut self, mut members: Members<'a>, structured: Structured) -> Option<Cut<'a>> {
        for (json, place) in std::mem::take(&mut self.left_out) {
            let begin = self.whole.append("\n", &json);
            let block = place.and_then(|place| self.shown.get_mut(place));
            if let Some(Block::LeftOut {
                start, characters, ..
            }) = block
            {
                (*start, *characters) = (begin, self.whole.characters - begin);
            }
        }
        let is_cut = self.read_on_at.is_some() || !self.removed.is_empty();
        if !is_cut && count_notes(&self.shown) == 0 {
            return None;
        }
        for name in &self.removed {
            members.remove(name);
        }
        // Some clients give the model nothing but structured content. As text it stands beside the
        // notices.
        if structured == Structured::Fits
            && let Some(structured) = members.get("structuredContent")
            && !repeats(structured, &self.whole.text, &self.texts)
        {
            let text = format!("structuredContent: {}", structured.get());
            self.shown.push(Block::Text(text));
        }
        members.remove("structuredContent");
        Some(Cut {
            members,
            shown: self.shown,
            read_on_at: self.read_on_at,
            whole: self.whole,
            more_left_out: self.more_left_out,
        })
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

// === impl TextBlock ===

impl TextBlock {
    fn parse(block: &RawValue) -> Option<Self> {
        let members = Members::parse(block).ok()?;
        let string =
            |name| -> Option<String> { serde_json::from_str(members.get(name)?.get()).ok() };
        if string("type")? != "text" {
            return None;
        }
        let others = members
            .iter()
            .filter(|(name, _)| !matches!(*name, "type" | "text"));
        Some(Self {
            text: string("text")?,
            other_bytes: others
                .map(|(name, value)| name.len() + value.get().len())
                .sum(),
        })
    }
}

/// What a block is that is left out, as the beginning of a sentence about it.
fn kind_of(block: &RawValue) -> String {
    let members = Members::parse(block).unwrap_or_default();
    let string = |name: &str| -> Option<String> {
        let text: String = serde_json::from_str(members.get(name)?.get()).ok()?;
        Some(excerpt(&text))
    };
    let kind = string("type").unwrap_or_else(|| "unknown".to_owned());
    let about: Vec<String> = ["mimeType", "uri", "name"]
        .into_iter()
        .filter_map(string)
        .collect();
    if about.is_empty() {
        format!("a block of type {kind:?}")
    } else {
        format!("a block of type {kind:?} ({})", about.join(", "))
    }
}

/// Words of an upstream in a note of ours: few of them, and none that break its line.
fn excerpt(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// Whether structured content says what the text says: as the same JSON, as its only member, or as
/// a list with an item for each text block.
fn repeats(structured: &RawValue, text: &str, blocks: &[Range<usize>]) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(structured.get()) else {
        return false;
    };
    if is_said(&value, text) {
        return true;
    }
    let Value::Object(members) = &value else {
        return false;
    };
    let mut values = members.values();
    match (values.next(), values.next()) {
        (Some(only), None) => {
            let items = only.as_array().filter(|items| items.len() == blocks.len());
            let all_said = |items: &Vec<Value>| {
                let mut pairs = items.iter().zip(blocks);
                pairs.all(|(item, block)| is_said(item, &text[block.clone()]))
            };
            items.is_some_and(all_said) || is_said(only, text)
        }
        _ => false,
    }
}

/// Whether a text is this string, or JSON of this value.
fn is_said(value: &Value, text: &str) -> bool {
    value.as_str() == Some(text)
        || serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value)
}

/// One member of an object, borrowed from the object itself.
fn member<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let members: std::collections::HashMap<String, &'a RawValue> =
        serde_json::from_str(object.get()).ok()?;
    members.get(name).copied()
}

fn text_content(text: &str) -> Option<Box<RawValue>> {
    to_raw_value(&json!({"type": "text", "text": text})).ok()
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
mod tests;
