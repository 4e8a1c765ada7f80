//! Redaction inside JSON text: strings are searched as what they mean, not as they are written,
//! so that `\u0073ecret` is found too, and whatever is replaced stays JSON.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

use super::shapes::is_placeholder;
use super::{MASK, Redactor, SHORTEST_SECRET};

/// A stretch of JSON text.
enum Part<'a> {
    /// A string without its quotes, and whether its closing quote is there.
    String { inner: &'a str, closed: bool },
    /// What is between strings: brackets, numbers, literals, white space.
    Between(&'a str),
}

/// What is known of the string that comes next.
enum Member<'a> {
    None,
    /// It follows this string, which may have been its name.
    Name(&'a str),
    SecretValue,
}

struct Parts<'a> {
    rest: &'a str,
}

pub(super) fn redact<'a>(redactor: &Redactor, text: &'a str) -> Cow<'a, str> {
    let mut output = String::new();
    // Up to here the input was looked at, and up to here it was copied to the output.
    let (mut seen, mut copied) = (0, 0);
    let mut member = Member::None;
    for part in (Parts { rest: text }) {
        let (length, replacement) = match part {
            Part::String { inner, closed } => {
                let replacement = match member {
                    Member::SecretValue => redact_value(inner),
                    Member::None | Member::Name(_) => redact_string(redactor, inner),
                };
                member = Member::Name(inner);
                let replacement = replacement.map(|inner| {
                    let quote = if closed { "\"" } else { "" };
                    format!("\"{inner}{quote}")
                });
                (1 + inner.len() + usize::from(closed), replacement)
            }
            Part::Between(between) => {
                member = match member {
                    Member::Name(name) if is_colon(between) && is_secret(redactor, name) => {
                        Member::SecretValue
                    }
                    _ => Member::None,
                };
                (between.len(), redact_between(redactor, between))
            }
        };
        if let Some(replacement) = replacement {
            output.push_str(&text[copied..seen]);
            output.push_str(&replacement);
            copied = seen + length;
        }
        seen += length;
    }
    let output = if copied == 0 {
        Cow::Borrowed(text)
    } else {
        output.push_str(&text[copied..]);
        Cow::Owned(output)
    };
    // Text that was never JSON has its words anywhere, also outside what looks like strings.
    if redactor.finds_something(&output) && !is_json(&output) {
        return Cow::Owned(redactor.text(&output).into_owned());
    }
    output
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn is_colon(between: &str) -> bool {
    between.trim_matches(['\t', '\n', '\r', ' ']) == ":"
}

/// Whether a member of this name has a secret value.
fn is_secret(redactor: &Redactor, name: &str) -> bool {
    let meaning = meaning(name);
    redactor
        .shapes
        .is_secret_name(meaning.as_deref().unwrap_or(name))
}

/// What stands for the value of a member with a secret name, if it is not a placeholder already.
fn redact_value(inner: &str) -> Option<String> {
    (!is_placeholder(inner)).then(|| MASK.to_owned())
}

/// The inside of a string with its secrets replaced, if it had any.
fn redact_string(redactor: &Redactor, inner: &str) -> Option<String> {
    if inner.len() < SHORTEST_SECRET {
        return None;
    }
    if let Some(meaning) = meaning(inner) {
        let redacted = changed(redactor.text(&meaning))?;
        let quoted = serde_json::Value::String(redacted).to_string();
        return Some(quoted[1..quoted.len() - 1].to_owned());
    }
    changed(redactor.text(inner))
}

/// What the inside of a string means, if it has escapes and they are valid.
fn meaning(inner: &str) -> Option<String> {
    if !inner.contains('\\') {
        return None;
    }
    // A string that was cut off may end in half an escape; what is before it still counts.
    (0..=6.min(inner.len())).find_map(|dropped| {
        let end = inner.floor_char_boundary(inner.len() - dropped);
        serde_json::from_str(&format!("\"{}\"", &inner[..end]))
            .ok()
            .map(|Lossy(meaning)| meaning)
    })
}

/// A JSON string in which half a surrogate pair, which JSON can write and text cannot hold, is replaced.
struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Lossy;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}

/// What is between strings, with numbers that hold a secret replaced by the mask as a string.
fn redact_between(redactor: &Redactor, between: &str) -> Option<String> {
    if between.len() < SHORTEST_SECRET || !redactor.finds_something(between) {
        return None;
    }
    let is_scalar = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '+' | '.');
    let mut output = String::with_capacity(between.len());
    let mut rest = between;
    while let Some(first) = rest.chars().next() {
        let scalar = is_scalar(first);
        let end = rest
            .find(|letter| is_scalar(letter) != scalar)
            .unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        if scalar && redactor.finds_something(token) {
            output.push('"');
            output.push_str(MASK);
            output.push('"');
        } else {
            output.push_str(token);
        }
        rest = after;
    }
    Some(output)
}

fn changed(redacted: Cow<'_, str>) -> Option<String> {
    match redacted {
        Cow::Borrowed(_) => None,
        Cow::Owned(redacted) => Some(redacted),
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(inside) = self.rest.strip_prefix('"') else {
            let end = self.rest.find('"').unwrap_or(self.rest.len());
            let (between, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Some(Part::Between(between));
        };
        let end = closing_quote(inside);
        let inner = &inside[..end.unwrap_or(inside.len())];
        self.rest = end.map_or("", |end| &inside[end + 1..]);
        Some(Part::String {
            inner,
            closed: end.is_some(),
        })
    }
}

/// Where the string that begins here ends.
fn closing_quote(inside: &str) -> Option<usize> {
    let mut position = 0;
    loop {
        position += inside[position..].find(['"', '\\'])?;
        if inside.as_bytes()[position] == b'"' {
            return Some(position);
        }
        // The escaped character may be wider than one byte in text that is not quite JSON.
        position += 1;
        position += inside[position..].chars().next()?.len_utf8();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        Redactor::new(["hunter2!", "se\"cr\\et", "12345678"])
            .unwrap()
            .json(text)
            .into_owned()
    }

    #[test]
    fn secrets_are_found_however_they_are_written() {
        assert_eq!(json(r#"{"a":"x hunter2! y"}"#), r#"{"a":"x [REDACTED] y"}"#);
        assert_eq!(json(r#"{"hunter2!":1}"#), r#"{"[REDACTED]":1}"#);
        assert_eq!(json(r#"["\u0068unter2!"]"#), r#"["[REDACTED]"]"#);
        assert_eq!(json(r#"["se\"cr\\et"]"#), r#"["[REDACTED]"]"#);
        assert_eq!(
            json(r#"["{\"k\":\"se\\\"cr\\\\et\"}"]"#),
            r#"["{\"k\":\"[REDACTED]\"}"]"#
        );
    }

    #[test]
    fn secrets_are_found_however_json_inside_a_string_is_written() {
        let redactor = Redactor::new(["pä/ss😀wort"]).unwrap();
        for written in [
            r#"["{\"k\":\"pä/ss😀wort\"}"]"#,
            r#"["{\"k\":\"pä\\/ss😀wort\"}"]"#,
            r#"["{\"k\":\"p\\u00e4/ss\\ud83d\\ude00wort\"}"]"#,
            r#"["{\"k\":\"p\\u00E4\\/ss\\uD83D\\uDE00wort\"}"]"#,
        ] {
            assert_eq!(redactor.json(written), r#"["{\"k\":\"[REDACTED]\"}"]"#);
        }
    }

    #[test]
    fn half_a_surrogate_pair_hides_nothing_and_json_stays_json() {
        for (written, redacted) in [
            (
                r#"["\ud800 \u0068unter2!"]"#,
                "[\"\u{fffd}\u{fffd}\u{fffd} [REDACTED]\"]",
            ),
            // The digits of an escape are no part of the secret.
            (r#"["\u12345678\ude00"]"#, r#"["\u12345678\ude00"]"#),
            (r#"["\u1234\ude00"]"#, r#"["\u1234\ude00"]"#),
        ] {
            let output = json(written);
            assert!(is_json(&output), "{output}");
            assert_eq!(output, redacted);
        }
    }

    #[test]
    fn the_value_of_a_secret_member_is_struck_out_whole() {
        assert_eq!(
            json(r#"{"password":"a\"b c","p\u0061ssword" : "x","user":"y","token":""}"#),
            r#"{"password":"[REDACTED]","p\u0061ssword" : "[REDACTED]","user":"y","token":""}"#
        );
        assert_eq!(
            json(r#"{"a":"{\"api_key\":\"x\\\"y\"}"}"#),
            r#"{"a":"{\"api_key\":\"[REDACTED]\\\"y\"}"}"#
        );
        let ordinary = r#"{"password":{"type":"string"},"of":["password","token"],"secret":7}"#;
        assert_eq!(json(ordinary), ordinary);
    }

    #[test]
    fn numbers_become_strings() {
        assert_eq!(
            json(r#"{"pin":-12345678.5, "b":[1]}"#),
            r#"{"pin":"[REDACTED]", "b":[1]}"#
        );
    }

    #[test]
    fn what_is_not_secret_keeps_its_bytes() {
        let text = "{ \"a\\/b\" : [1.50, \"\\u0041\"], \"s\": \"hunter2!\" }";
        assert_eq!(
            json(text),
            "{ \"a\\/b\" : [1.50, \"\\u0041\"], \"s\": \"[REDACTED]\" }"
        );
    }

    #[test]
    fn text_that_is_not_quite_json_is_still_redacted() {
        assert_eq!(
            json(r#"{"a":"hunter2! and \u00"#),
            r#"{"a":"[REDACTED] and "#
        );
        assert_eq!(json(r"hunter2! \"), r"[REDACTED] \");
        assert_eq!(json("\"\\ä hunter2!"), "\"\\ä [REDACTED]");
    }
}
