//! JSON data as YAML, in block style. Strings that could be read as something else are quoted as
//! JSON quotes them, which YAML understands.

use std::fmt::Write;

use serde_json::Value;

pub(crate) fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Array(items) if !items.is_empty() => write_items(items, 0, &mut out),
        Value::Object(members) if !members.is_empty() => write_members(members, 0, &mut out),
        scalar => {
            write_scalar(scalar, &mut out);
            out.push('\n');
        }
    }
    out
}

fn write_members(members: &serde_json::Map<String, Value>, indent: usize, out: &mut String) {
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            pad(indent, out);
        }
        write_text(name, out);
        out.push(':');
        match value {
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                pad(indent, out);
                write_items(items, indent, out);
            }
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                pad(indent + 2, out);
                write_members(inner, indent + 2, out);
            }
            scalar => {
                out.push(' ');
                write_scalar(scalar, out);
                out.push('\n');
            }
        }
    }
}

fn write_items(items: &[Value], indent: usize, out: &mut String) {
    for (index, value) in items.iter().enumerate() {
        if index > 0 {
            pad(indent, out);
        }
        out.push_str("- ");
        match value {
            Value::Array(inner) if !inner.is_empty() => write_items(inner, indent + 2, out),
            Value::Object(members) if !members.is_empty() => {
                write_members(members, indent + 2, out);
            }
            scalar => {
                write_scalar(scalar, out);
                out.push('\n');
            }
        }
    }
}

fn write_scalar(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => write_text(text, out),
        other => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{other}");
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        let _ = write!(out, "{}", Value::from(text));
    }
}

/// Whether YAML reads the text as this very string without quotes. Rather quotes too many.
fn is_plain(text: &str) -> bool {
    let starts_well = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let ends_well = !text.ends_with([' ', ':']);
    let safe = text
        .chars()
        .all(|it| it.is_ascii_alphanumeric() || " _-./:,()'".contains(it));
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    starts_well
        && ends_well
        && safe
        && !text.contains(": ")
        && !reserved.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nesting_is_shown_by_indentation() {
        let value = json!({
            "name": "notes:get",
            "tags": ["a", {"b": 1, "c": [true, null]}],
            "empty": {}, "none": [], "deep": {"x": {"k": "z"}}
        });
        let expected = "\
name: notes:get
tags:
- a
- b: 1
  c:
  - true
  - null
empty: {}
none: []
deep:
  x:
    k: z
";
        assert_eq!(to_yaml(&value), expected);
    }

    #[test]
    fn strings_that_look_like_something_else_are_quoted() {
        for text in [
            "",
            "yes",
            "12",
            "-",
            "a: b",
            "a:",
            " x",
            "x ",
            "#c",
            "\u{1b}",
            "line\nbreak",
            "null",
        ] {
            assert_eq!(
                to_yaml(&json!(text)),
                format!("{}\n", json!(text)),
                "{text:?}"
            );
        }
        assert_eq!(to_yaml(&json!("plain words, here")), "plain words, here\n");
    }
}
