//! Text in a header: as it is where HTTP can carry it, else as `=?base64?…?=`.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// A value that says it is Base64 and is not, or does not hold text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not valid Base64 of UTF-8 text")]
pub struct BadEncoding;

pub fn encode_header_value(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{PREFIX}{}{SUFFIX}", BASE64_STANDARD.encode(text)))
    }
}

/// Reads what [`encode_header_value`] wrote. Anything without the whole wrapping is literal.
pub fn decode_header_value(value: &str) -> Result<Cow<'_, str>, BadEncoding> {
    let Some(encoded) = wrapped(value) else {
        return Ok(Cow::Borrowed(value));
    };
    let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| BadEncoding)?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| BadEncoding)
}

/// Whether HTTP carries the text unchanged and no reader takes it for something encoded.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    // White space at either end is not part of a header's value.
    bytes.iter().all(|byte| (b' '..=b'~').contains(byte))
        && bytes.first() != Some(&b' ')
        && bytes.last() != Some(&b' ')
        && wrapped(text).is_none()
}

fn wrapped(value: &str) -> Option<&str> {
    value.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_http_would_change_is_encoded() {
        let table = [
            ("us-west1", "us-west1"),
            ("", ""),
            ("a b", "a b"),
            ("=?base64?SGk=", "=?base64?SGk="),
            (" a", "=?base64?IGE=?="),
            ("a ", "=?base64?YSA=?="),
            ("a\tb", "=?base64?YQli?="),
            ("ü", "=?base64?w7w=?="),
            ("=?base64?SGk=?=", "=?base64?PT9iYXNlNjQ/U0drPT89?="),
        ];
        for (text, encoded) in table {
            assert_eq!(encode_header_value(text), encoded);
        }
    }

    #[test]
    fn broken_base64_is_an_error_and_half_a_wrapping_is_literal() {
        for broken in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs!!!bG8=?=",
            "=?base64?/w==?=",
        ] {
            assert_eq!(decode_header_value(broken), Err(BadEncoding), "{broken}");
        }
        for literal in ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?="] {
            assert_eq!(decode_header_value(literal).unwrap(), literal);
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back_and_is_a_legal_header(text in ".*") {
            let encoded = encode_header_value(&text);
            prop_assert!(http::HeaderValue::from_str(&encoded).is_ok());
            prop_assert_eq!(encoded.trim(), &*encoded);
            let decoded = decode_header_value(&encoded).unwrap();
            prop_assert_eq!(&*decoded, text.as_str());
        }
    }
}
