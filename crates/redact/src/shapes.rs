//! Tokens that are known by their shape, whoever configured them.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::MASK;

/// Each shape begins with text that does not turn up by chance and is long enough to be a token.
/// A private key that was cut off is taken to the end of the text. The group `keep` stays: it
/// says what kind of secret stood there.
const SHAPES: &[&str] = &[
    // GitHub.
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    // GitLab.
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    // Slack.
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\bxapp-[A-Za-z0-9-]{10,}",
    // AWS access key identifiers.
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    // OpenAI, Anthropic and those who followed them; Stripe writes it with underscores.
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}",
    // Google.
    r"\bAIza[A-Za-z0-9_-]{35}",
    // npm.
    r"\bnpm_[A-Za-z0-9]{30,}",
    // JSON Web Tokens: a base64 object, a dot, more base64.
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?",
    // Private keys in PEM armour, of any kind.
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)",
    // HTTP credentials.
    r"(?i-u:(?P<keep>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,})",
];

/// Compiling takes far longer than searching; a change of the secrets need not repeat it.
pub(super) fn compiled() -> Result<Regex, regex::Error> {
    static COMPILED: LazyLock<Result<Regex, regex::Error>> = LazyLock::new(compile);
    COMPILED.clone()
}

fn compile() -> Result<Regex, regex::Error> {
    // ASCII classes keep the automaton small; nothing here needs more of Unicode.
    let ascii: Vec<String> = SHAPES
        .iter()
        .map(|shape| shape.replace(r"\b", r"(?-u:\b)"))
        .collect();
    Regex::new(&ascii.join("|").replace(r"\s", r"[\t ]"))
}

pub(super) fn replace<'a>(shapes: &Regex, text: &'a str) -> Cow<'a, str> {
    // Most text has none, and to find that out needs no captures.
    if !shapes.is_match(text) {
        return Cow::Borrowed(text);
    }
    shapes.replace_all(text, |found: &Captures<'_>| {
        let keep = found.name("keep").map_or("", |keep| keep.as_str());
        format!("{keep}{MASK}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(text: &str) -> String {
        replace(&compile().unwrap(), text).into_owned()
    }

    #[test]
    fn every_shape_is_found() {
        for token in [
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
            "glpat-abcdefghij0123456789",
            "xoxb-123456789012-abcdefghijkl",
            "AKIAIOSFODNN7EXAMPLE",
            "sk-abcdefghijklmnopqrstuvwx",
            "sk-ant-api03-abcdefghijklmnopqrstuvwx",
            "sk_live_abcdefghijklmnop",
            "AIzaSyA1234567890abcdefghijklmnopqrstuv",
            "npm_abcdefghijklmnopqrstuvwxyz012345",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nthe rest was cut off",
        ] {
            assert_eq!(redact(&format!("a {token}")), "a [REDACTED]", "{token}");
        }
        assert_eq!(
            redact("Authorization: Bearer abc.def-123456"),
            "Authorization: Bearer [REDACTED]"
        );
        assert_eq!(redact("BASIC dXNlcjpwYXNzd29yZA=="), "BASIC [REDACTED]");
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "a risk-averse task-force",
            "disk-usage-report-for-the-month",
            "bearer of news",
            "ghp_short",
            "version 1.2.3 of eyJ",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
