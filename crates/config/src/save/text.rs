//! The text of an edited document: whatever did not change keeps the text it had.

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::json::{Kind, Node};

/// What is used when a file shows no indentation of its own.
const DEFAULT_INDENT: &str = "  ";

/// The text of a new document, one member per line and with a newline at the end.
pub(crate) fn pretty(document: &Value) -> String {
    Layout {
        indent: DEFAULT_INDENT,
    }
    .fresh(document, 0)
        + "\n"
}

/// The text of `document`, which is an edited form of what `original` says.
pub(super) fn edited(document: &Value, original: &str) -> String {
    let root = Node::parse(original).ok();
    if root
        .as_ref()
        .is_some_and(|root| is_unchanged(document, root))
    {
        return original.to_owned();
    }
    let layout = Layout {
        indent: indent_of(original),
    };
    let text = layout.render(document, root.as_ref(), 0) + "\n";
    if original.contains("\r\n") {
        text.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        text
    }
}

/// How lines are laid out.
struct Layout<'a> {
    indent: &'a str,
}

impl Layout<'_> {
    fn render(&self, value: &Value, original: Option<&Node<'_>>, depth: usize) -> String {
        let Some(original) = original else {
            return self.fresh(value, depth);
        };
        if is_unchanged(value, original) {
            return original.text().to_owned();
        }
        match (value, original.kind()) {
            (Value::Object(object), Kind::Object) if !object.is_empty() => {
                let before = original.members().unwrap_or_default();
                let members = object.iter().map(|(key, value)| {
                    let same_key = before.iter().find(|member| member.key == *key);
                    let original = same_key.map(|member| &member.value);
                    let key = Value::from(key.as_str());
                    format!("{key}: {}", self.render(value, original, depth + 1))
                });
                self.enclose('{', members, '}', depth)
            }
            (Value::Array(array), Kind::Array) if !array.is_empty() => {
                let before = original.elements().unwrap_or_default();
                let elements = array.iter().enumerate().map(|(index, value)| {
                    // Elements have no key, and those after a removed one have moved up.
                    let same = before.iter().find(|element| is_unchanged(value, element));
                    self.render(value, same.or(before.get(index)), depth + 1)
                });
                self.enclose('[', elements, ']', depth)
            }
            _ => self.fresh(value, depth),
        }
    }

    fn enclose(
        &self,
        open: char,
        lines: impl Iterator<Item = String>,
        close: char,
        depth: usize,
    ) -> String {
        let lines: Vec<String> = lines.collect();
        let outer = self.indent.repeat(depth);
        let inner = self.indent.repeat(depth + 1);
        let body = lines.join(&format!(",\n{inner}"));
        format!("{open}\n{inner}{body}\n{outer}{close}")
    }

    fn fresh(&self, value: &Value, depth: usize) -> String {
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.indent.as_bytes());
        let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
        debug_assert!(written.is_ok(), "neither a `Value` nor a `Vec` can fail");
        let text = String::from_utf8_lossy(&bytes);
        // Strings hold no raw newlines, so every newline is layout.
        text.replace('\n', &format!("\n{}", self.indent.repeat(depth)))
    }
}

fn is_unchanged(value: &Value, original: &Node<'_>) -> bool {
    serde_json::from_str::<Value>(original.text()).is_ok_and(|before| before == *value)
}

/// The indentation of the first line that has one.
fn indent_of(text: &str) -> &str {
    text.lines()
        .map(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()])
        .find(|indent| !indent.is_empty())
        .unwrap_or(DEFAULT_INDENT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_indented_line_counts() {
        assert_eq!(indent_of("{\n    \"a\": {\n        \"b\": 1}}"), "    ");
        assert_eq!(indent_of("{\n\t\"a\": 1\n}"), "\t");
        assert_eq!(indent_of("{\"a\": 1}"), "  ");
        assert_eq!(indent_of(""), "  ");
    }

    #[test]
    fn what_did_not_change_keeps_its_text() {
        let original = "{\n\t\"a\": [1.0,   2],\n\t\"b\": {\"c\": 1}\n}";
        let document = json!({"a": [1.0, 2], "b": {"c": 2}, "d": ["x"]});
        assert_eq!(
            edited(&document, original),
            "{\n\t\"a\": [1.0,   2],\n\t\"b\": {\n\t\t\"c\": 2\n\t},\n\t\"d\": [\n\t\t\"x\"\n\t]\n}\n"
        );
        assert_eq!(
            edited(&json!({"a": [1.0, 2], "b": {"c": 1}}), original),
            original
        );
    }

    #[test]
    fn elements_keep_their_text_when_they_move_up() {
        let original = "[\n  {\"a\": 1},\n  {\"b\":2}\n]";
        assert_eq!(edited(&json!([{"b": 2}]), original), "[\n  {\"b\":2}\n]\n");
    }

    #[test]
    fn windows_newlines_stay() {
        let original = "{\r\n  \"a\": 1\r\n}\r\n";
        let text = edited(&json!({"a": 1, "b": 2}), original);
        assert_eq!(text, "{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n");
    }
}
