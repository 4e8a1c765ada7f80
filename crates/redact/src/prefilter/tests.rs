use std::borrow::Cow;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::json;

/// With everything that JSON escapes, and with what looks like an escape and is none.
const SECRETS: [&str; 6] = [
    "hunter2!",
    "se\"cr\\et",
    "12345678",
    "C:\\new\\table",
    "two\nlines",
    "päss/wörd",
];

/// Whole tokens, and the last letter before one.
const TOKENS: [&str; 14] = [
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "npm_abcdefghijklmnopqrstuvwxyz012345",
    "rk_live_abcdefghijklmnop",
    "bearer abcdefghijklmno",
    "Basic dXNlcjpwYXNzd29yZA==",
    "-----BEGIN PRIVATE KEY-----\nabc",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0",
    "postgres://user:word@host",
    "\"password\" : \"x\"",
    "\"token\":\"x\"",
    "api_key=abcdef",
    "password",
    "token",
];

/// What can stand beside a secret: edges of strings, words, and escapes, also half ones.
const BESIDE: [&str; 26] = [
    "",
    " ",
    "x",
    "1",
    "-",
    "\"",
    "\\",
    "\\\\",
    "\\\"",
    "\\n",
    "\\b",
    "\\/",
    "\\u0041",
    "\\u00",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\u+041",
    "\n",
    "\t",
    "ä",
    "\":\"",
    "\" : \"",
    "=",
    "\",\"",
    "{\"",
    "\"}",
];

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(SECRETS).unwrap());

/// As it stands inside a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::String(text.to_owned()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Some of the letters as `\uXXXX`.
fn spelled_out(text: &str, which: u32) -> String {
    let mut units = [0; 2];
    text.chars()
        .enumerate()
        .map(|(index, letter)| match which >> (index % 32) & 1 {
            0 => escaped(letter.encode_utf8(&mut [0; 4])),
            _ => letter
                .encode_utf16(&mut units)
                .iter()
                .map(|unit| format!("\\u{unit:04X}"))
                .collect(),
        })
        .collect()
}

fn piece() -> impl Strategy<Value = String> {
    let secret = prop::sample::select([&SECRETS[..], &TOKENS[..]].concat());
    let planted = (secret, 0..5, any::<u32>()).prop_map(|(secret, form, which)| match form {
        0 => secret.to_owned(),
        1 => escaped(secret),
        2 => escaped(&escaped(secret)),
        3 => spelled_out(secret, which),
        // Half of it.
        _ => escaped(secret).chars().take(which as usize % 12).collect(),
    });
    prop_oneof![
        3 => prop::sample::select(&BESIDE[..]).prop_map(str::to_owned),
        1 => planted,
    ]
}

fn text() -> impl Strategy<Value = String> {
    (prop::collection::vec(piece(), 0..8), 0..5).prop_map(|(pieces, frame)| {
        let inner = pieces.concat();
        match frame {
            0 | 1 => inner,
            2 => format!("\"{inner}\""),
            3 => format!("{{\"key\": [\"{inner}\", 1]}}"),
            _ => format!("{{\"key\": {}}}", serde_json::Value::from(inner)),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn where_the_prefilter_finds_nothing_redaction_changes_nothing(
        texts in prop::collection::vec(text(), 0..3),
        json in text(),
    ) {
        let mut prefilter = REDACTOR.prefilter();
        for text in &texts {
            prefilter.text(text);
        }
        prefilter.json(&json);
        if prefilter.finds_nothing() {
            for text in &texts {
                prop_assert!(matches!(REDACTOR.text(text), Cow::Borrowed(_)), "{text}");
            }
            prop_assert!(matches!(json::redact(&REDACTOR, &json), Cow::Borrowed(_)), "{json}");
        }
    }

    #[test]
    fn the_same_holds_for_whole_json(json in text()) {
        if serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok() {
            let mut prefilter = REDACTOR.prefilter();
            prefilter.whole_json(&json);
            if prefilter.finds_nothing() {
                prop_assert!(matches!(json::redact(&REDACTOR, &json), Cow::Borrowed(_)), "{json}");
            }
        }
    }

    #[test]
    fn a_meaning_is_the_one_that_json_gives_it(text in text()) {
        let quoted = format!("\"{text}\"");
        if let Ok(meaning) = serde_json::from_str::<String>(&quoted) {
            let mut resolved = String::new();
            prop_assert!(push_meaning(&mut resolved, &text).is_some());
            prop_assert_eq!(resolved, meaning);
        }
    }
}

fn nothing_in(text: &str) -> bool {
    let mut prefilter = REDACTOR.prefilter();
    prefilter.json(text);
    prefilter.finds_nothing()
}

#[test]
fn ordinary_json_needs_no_second_look() {
    assert!(nothing_in(
        r#"{"content":[{"text":"one\ntwo\t\"three\" \u00e4\ud83d\ude00"}]}"#
    ));
    assert!(nothing_in(&format!("\"{}\\n\"", "long ".repeat(LARGE))));
}

#[test]
fn large_texts_are_looked_at_too() {
    let long = "long ".repeat(LARGE);
    assert!(!nothing_in(&format!("\"{long} hunter2!\"")));
    assert!(!nothing_in(&format!("\"{long} \\u0068unter2!\"")));
    let mut prefilter = REDACTOR.prefilter();
    prefilter.whole_json(&format!("\"{long} \\u0068unter2!\""));
    assert!(!prefilter.finds_nothing());
}

#[test]
fn what_cannot_be_resolved_is_left_to_the_careful_way() {
    for text in [
        r#""\x""#,
        r#""\ud83d""#,
        r#""\udc00""#,
        r#""\u+041""#,
        r#""\u00"#,
        "\"\\",
    ] {
        assert!(!nothing_in(text), "{text}");
    }
}

#[test]
fn looks_do_not_see_what_was_looked_at_before() {
    let mut first = REDACTOR.prefilter();
    first.text("hunter2!");
    assert!(!first.finds_nothing());
    assert!(REDACTOR.prefilter().finds_nothing());
}
