//! Whatever JSON arrives: afterwards no configured secret is in it, and it is still JSON.

use proptest::prelude::*;
use redact::{MASK, Redactor};
use serde_json::Value;

/// Secrets with everything that JSON escapes.
fn secret() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9\"\\\\/äπ\n\t!]{6,16}".prop_filter("too short once trimmed", |secret| {
        secret.trim().len() >= redact::SHORTEST_SECRET && secret.trim() == secret
    })
}

fn json(secrets: Vec<String>) -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~äπ]{0,12}",
        (
            proptest::sample::select(secrets),
            "[ -~]{0,5}",
            "[ -~]{0,5}"
        )
            .prop_map(|(secret, before, after)| format!("{before}{secret}{after}")),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((text.clone(), inner.clone()), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            // JSON inside a string, as most tool results have it.
            inner.prop_map(|value| Value::from(value.to_string())),
        ]
    })
}

/// Every string of the value, keys included.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(strings).collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, value)| std::iter::once(key.as_str()).chain(strings(value)))
            .collect(),
        _ => Vec::new(),
    }
}

/// The same JSON with some letters written as escapes.
fn escaped(text: &str, letters: &[char]) -> String {
    let mut output = String::new();
    let mut inside = false;
    let mut previous = ' ';
    for letter in text.chars() {
        if letter == '"' && previous != '\\' {
            inside = !inside;
        }
        if inside && letters.contains(&letter) && previous != '\\' {
            output.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            output.push(letter);
        }
        previous = if previous == '\\' { ' ' } else { letter };
    }
    output
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_secret_survives_and_json_stays_json(
        (secrets, value) in proptest::collection::vec(secret(), 1..4)
            .prop_flat_map(|secrets| (Just(secrets.clone()), json(secrets))),
    ) {
        prop_assume!(secrets.iter().all(|secret| !MASK.contains(secret.as_str())));
        let redactor = Redactor::new(&secrets).unwrap();
        let plain = value.to_string();
        for text in [plain.clone(), escaped(&plain, &['a', 'e', 'T', '0', '!'])] {
            let redacted = redactor.json(&text);
            let parsed: Result<Value, _> = serde_json::from_str(&redacted);
            prop_assert!(parsed.is_ok(), "{text} became {redacted}");
            let parsed = parsed.unwrap();
            for found in strings(&parsed) {
                for secret in &secrets {
                    prop_assert!(!found.contains(secret.as_str()), "{secret:?} in {found:?}");
                }
            }
        }
    }

    #[test]
    fn a_cut_never_shows_a_part_of_a_secret(
        before in "[x ]{0,80}", after in "[y ]{0,80}", limit in 0_usize..120,
    ) {
        let secret = "ABCDEFGHIJKLMNOP";
        let redactor = Redactor::new([secret]).unwrap();
        let text = format!("\"{before}{secret}{after}\"");
        let cut = redactor.json_up_to(&text, limit);
        prop_assert!(cut.text.len() <= limit);
        prop_assert!(!cut.text.contains("ABC"), "{}", cut.text);
        prop_assert_eq!(cut.truncated, cut.text.len() < redactor.json(&text).len());
    }

    #[test]
    fn any_text_at_all_is_accepted(text in "\\PC{0,200}", limit in 0_usize..300) {
        let redactor = Redactor::new(["some-secret"]).unwrap();
        let cut = redactor.json_up_to(&text, limit);
        prop_assert!(cut.text.len() <= limit);
    }
}
