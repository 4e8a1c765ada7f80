//! The ways in which a configured secret may be written: as it is, inside JSON inside a JSON
//! string, in base64, in hexadecimal digits, and percent-encoded.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A part of an encoded secret that is shorter than this may turn up by chance.
const SHORTEST_ENCODED: usize = 8;

/// Longer secrets are whole files; their encoded forms would cost more memory than they are worth.
const LONGEST_ENCODED: usize = 4 * 1024;

/// What stays as it is in JavaScript's `encodeURIComponent` besides RFC 3986's unreserved.
const KEPT_BY_SCRIPTS: &str = "!'()*";

/// All forms of a secret, without empty ones.
pub(super) fn forms(secret: &str) -> Vec<String> {
    let mut forms = json_forms(secret);
    if secret.len() <= LONGEST_ENCODED {
        forms.extend(hexadecimal(secret));
        forms.extend(base64_forms(secret));
        forms.extend(percent_forms(secret));
    }
    forms.push(secret.to_owned());
    forms
}

/// As it looks inside a JSON string that is itself inside a JSON string. Some writers escape there
/// what is not ASCII, or slashes, or both.
fn json_forms(secret: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(secret).to_string();
    let escaped = quoted[1..quoted.len() - 1].to_owned();
    let lower = ascii(&escaped, |unit| format!("\\u{unit:04x}"));
    let upper = ascii(&escaped, |unit| format!("\\u{unit:04X}"));
    let mut forms = vec![escaped, lower, upper];
    forms.extend(forms.clone().iter().map(|form| form.replace('/', "\\/")));
    forms
}

/// The text with everything else than ASCII as this makes of its units of UTF-16.
fn ascii(text: &str, escape: fn(u16) -> String) -> String {
    let mut output = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii() {
            output.push(letter);
        } else {
            output.extend(
                letter
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .map(|unit| escape(*unit)),
            );
        }
    }
    output
}

fn hexadecimal(secret: &str) -> [String; 2] {
    let bytes = secret.bytes();
    [
        bytes.clone().map(|byte| format!("{byte:02x}")).collect(),
        bytes.map(|byte| format!("{byte:02X}")).collect(),
    ]
}

/// The secret alone, and the digits that it determines at each of its three possible places in the
/// base64 of a longer text.
fn base64_forms(secret: &str) -> Vec<String> {
    let mut forms = Vec::with_capacity(8);
    for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
        forms.push(engine.encode(secret));
        for before in 0..3 {
            let padded = [&[0; 3][..before], secret.as_bytes()].concat();
            let digits = engine.encode(&padded);
            // A digit has six bits; those that share bits with a neighbour are left out.
            let first = (before * 8).div_ceil(6);
            let last = padded.len() * 8 / 6;
            forms.push(digits[first..last].to_owned());
        }
    }
    forms.retain(|form| form.len() >= SHORTEST_ENCODED);
    forms
}

fn percent_forms(secret: &str) -> Vec<String> {
    let unreserved = |letter: char| letter.is_ascii_alphanumeric() || "-._~".contains(letter);
    let encode = |kept: &dyn Fn(char) -> bool, space: &str, upper: bool| {
        let mut output = String::with_capacity(secret.len());
        for letter in secret.chars() {
            match letter {
                ' ' => output.push_str(space),
                letter if kept(letter) => output.push(letter),
                letter => {
                    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                        output.push_str(&if upper {
                            format!("%{byte:02X}")
                        } else {
                            format!("%{byte:02x}")
                        });
                    }
                }
            }
        }
        output
    };
    let by_scripts = |letter| unreserved(letter) || KEPT_BY_SCRIPTS.contains(letter);
    vec![
        encode(&unreserved, "%20", true),
        encode(&unreserved, "%20", false),
        encode(&unreserved, "+", true),
        encode(&by_scripts, "%20", true),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Redactor;

    #[test]
    fn usual_encodings_are_found() {
        let redactor = Redactor::new(["pass/w&rd 17!"]).unwrap();
        for written in [
            "706173732f7726726420313721",
            "706173732F7726726420313721",
            "cGFzcy93JnJkIDE3IQ==",
            "pass%2Fw%26rd%2017%21",
            "pass%2fw%26rd%2017%21",
            "pass%2Fw%26rd+17%21",
            "pass%2Fw%26rd%2017!",
        ] {
            let redacted = redactor.text(written).replace('=', "");
            assert_eq!(redacted, "[REDACTED]", "{written}");
        }
    }

    proptest! {
        #[test]
        fn a_secret_inside_base64_is_found(
            secret in "[!-~]{12,40}", before in "[ -~]{0,9}", after in "[ -~]{0,9}",
        ) {
            let redactor = Redactor::new([&secret]).unwrap();
            let plain = format!("{before}{secret}{after}");
            for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let encoded = engine.encode(&plain);
                let redacted = redactor.text(&encoded);
                prop_assert!(redacted.contains(crate::MASK), "{encoded}");
                // The digits at its edges hold bits of its first and last byte.
                prop_assert!(redacted.len() <= (before.len() + after.len()) * 2 + 4 + crate::MASK.len());
            }
        }
    }
}
