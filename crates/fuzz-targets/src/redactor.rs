//! The redactor: no secret is left, JSON stays JSON, and the prefilter misses nothing.

use std::sync::OnceLock;

use redact::{MASK, Redactor};
use serde::de::IgnoredAny;

/// With characters that are escaped in JSON, of several bytes, and all of digits.
const SECRETS: [&str; 5] = ["hunter2!", "se\"cr\\et", "pä/ss😀", "12345678", "aaaaaaaa"];

const LIMIT: usize = 64;

pub(crate) fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let redactor = redactor();
    let plain = redactor.text(text);
    let found = SECRETS.iter().find(|secret| plain.contains(**secret));
    assert_eq!(found, None, "a secret is left in text");

    let quick = redactor.json(text);
    assert_eq!(
        quick,
        redactor.json_unfiltered(text),
        "the prefilter missed"
    );
    if is_json(text) {
        assert!(is_json(&quick), "JSON is no longer JSON");
        // Half a surrogate pair is JSON, but no text that a value could hold.
        if let Ok(value) = serde_json::from_str(&quick) {
            nothing_left(&value);
        }
    }
    let cut = redactor.json_up_to(text, LIMIT);
    assert!(cut.text.len() <= LIMIT, "longer than the limit");
    assert!(cut.truncated || cut.text == quick, "cut without saying so");
}

fn nothing_left(value: &serde_json::Value) {
    let is_clean = |text: &str| SECRETS.iter().all(|secret| !text.contains(secret));
    match value {
        serde_json::Value::String(text) => assert!(is_clean(text), "a secret is left in JSON"),
        serde_json::Value::Array(items) => items.iter().for_each(nothing_left),
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                assert!(is_clean(name), "a secret is left in a name");
                nothing_left(value);
            }
        }
        _ => {}
    }
}

fn redactor() -> &'static Redactor {
    static REDACTOR: OnceLock<Redactor> = OnceLock::new();
    REDACTOR.get_or_init(|| {
        assert!(!MASK.is_empty());
        Redactor::new(SECRETS).expect("a redactor")
    })
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}
