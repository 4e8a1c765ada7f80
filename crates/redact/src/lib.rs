//! Finds and strikes out secrets in text and JSON, before anything is stored or shown.
//!
//! Three kinds are found: values that the operator configured, wherever they turn up and however
//! they are encoded; tokens that are known by their shape; and values of members whose name says
//! that they are secret. All searches are automata, so the time is linear in the text whatever a
//! hostile upstream sends.

mod json;
mod lines;
mod literals;
mod prefilter;
mod secrets;
mod shapes;
mod shared;
mod written;

use std::borrow::Cow;

use secrets::Secrets;
use shapes::Shapes;

pub use lines::KeyBlock;
pub use prefilter::Prefilter;
pub use shared::SharedRedactor;

/// What stands where a secret stood.
pub const MASK: &str = "[REDACTED]";

/// Configured values shorter than this are not searched for: they would turn up by chance
/// everywhere, and nobody is protected by hiding every `true`.
pub const SHORTEST_SECRET: usize = 6;

/// Beyond the end of a cut, this much more is looked at, so that a secret across the cut is seen.
const LONGEST_SHAPE: usize = 8 * 1024;

/// Searches for secrets. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Redactor {
    /// Nothing when no value is configured.
    secrets: Option<Secrets>,
    shapes: Shapes,
    longest: usize,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum RedactorError {
    #[error("the configured secrets are too many or too long to search for")]
    Secrets(#[from] aho_corasick::BuildError),
    #[error("the token shapes do not compile")]
    Shapes(#[from] regex::Error),
}

/// Text after redaction, and whether its end was cut off.
#[derive(Debug, PartialEq, Eq)]
pub struct Redacted<'a> {
    pub text: Cow<'a, str>,
    pub truncated: bool,
}

impl Redactor {
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, RedactorError> {
        let values: Vec<S> = secrets.into_iter().collect();
        let values = values.iter().filter_map(|value| searched(value.as_ref()));
        let secrets = Secrets::new(values)?;
        Ok(Self {
            longest: LONGEST_SHAPE.max(secrets.as_ref().map_or(0, Secrets::longest)),
            secrets,
            shapes: Shapes::compiled()?,
        })
    }

    /// Redacts plain text: messages and reasons.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let without_secrets = match &self.secrets {
            Some(secrets) => secrets.replace(text),
            None => Cow::Borrowed(text),
        };
        match without_secrets {
            Cow::Borrowed(text) => self.shapes.replace(text),
            Cow::Owned(text) => Cow::Owned(self.shapes.replace(&text).into_owned()),
        }
    }

    /// Redacts JSON text; what was valid JSON stays valid JSON.
    pub fn json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut prefilter = self.prefilter();
        prefilter.json(text);
        if prefilter.finds_nothing() {
            return Cow::Borrowed(text);
        }
        json::redact(self, text)
    }

    /// The same without the quick look first, to compare the two.
    #[doc(hidden)]
    pub fn json_unfiltered<'a>(&self, text: &'a str) -> Cow<'a, str> {
        json::redact(self, text)
    }

    /// Begins a quick look at several texts, to find out whether they need redaction at all.
    pub fn prefilter(&self) -> Prefilter<'_> {
        Prefilter::new(self)
    }

    /// Redacts JSON text and keeps at most `limit` bytes of it, cut between two characters.
    ///
    /// Only the part that can be kept is searched, plus enough to recognise a secret that lies
    /// across the cut. The end of what was searched may hold half a secret, so it is never kept.
    pub fn json_up_to<'a>(&self, text: &'a str, limit: usize) -> Redacted<'a> {
        let window = self.window(text, limit);
        self.json_window(window, window.len() < text.len(), limit)
    }

    /// The same for the [`window`](Self::window) of a text, which may go on behind it.
    pub fn json_window<'a>(&self, window: &'a str, goes_on: bool, limit: usize) -> Redacted<'a> {
        self.cut_redacted(self.json(window), goes_on, limit)
    }

    /// The same for text in whose [`window`](Self::window) a prefilter found nothing.
    pub fn clean_json_up_to<'a>(&self, text: &'a str, limit: usize) -> Redacted<'a> {
        let window = self.window(text, limit);
        self.cut_redacted(Cow::Borrowed(window), window.len() < text.len(), limit)
    }

    /// As much of the text as is looked at if at most `limit` bytes of it are kept.
    pub fn window<'a>(&self, text: &'a str, limit: usize) -> &'a str {
        cut(text, limit.saturating_add(self.longest))
    }

    fn cut_redacted<'a>(
        &self,
        redacted: Cow<'a, str>,
        goes_on: bool,
        limit: usize,
    ) -> Redacted<'a> {
        let certain = if goes_on {
            redacted.len().saturating_sub(self.longest)
        } else {
            redacted.len()
        };
        let kept = cut(&redacted, limit.min(certain)).len();
        let truncated = kept < redacted.len() || goes_on;
        let text = match redacted {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..kept]),
            Cow::Owned(mut text) => {
                text.truncate(kept);
                Cow::Owned(text)
            }
        };
        Redacted { text, truncated }
    }

    /// Redacted text without the end that may hold half a secret, because more text followed.
    pub fn without_cut_end(&self, mut redacted: String) -> String {
        let certain = redacted.len().saturating_sub(self.longest);
        redacted.truncate(redacted.floor_char_boundary(certain));
        redacted
    }

    fn finds_something(&self, text: &str) -> bool {
        self.secrets
            .as_ref()
            .is_some_and(|secrets| secrets.is_match(text))
            || self.shapes.may_match(text)
    }
}

/// The part of a configured value that is searched for, if it is long enough.
fn searched(secret: &str) -> Option<&str> {
    Some(secret.trim()).filter(|secret| secret.len() >= SHORTEST_SECRET)
}

/// The longest beginning of the text that fits and ends between two characters.
pub fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        Redactor::new(secrets).unwrap()
    }

    #[test]
    fn configured_values_go_longest_first() {
        let redactor = redactor(&["hunter2", "hunter2-and-more", "short"]);
        assert_eq!(
            redactor.text("a hunter2-and-more b hunter2 c short"),
            "a [REDACTED] b [REDACTED] c short"
        );
    }

    #[test]
    fn clean_text_is_not_copied() {
        let redactor = redactor(&["hunter2"]);
        assert!(matches!(redactor.text("nothing here"), Cow::Borrowed(_)));
        assert!(matches!(
            redactor.json(r#"{"a":"nothing"}"#),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn a_cut_falls_between_two_characters() {
        let redactor = redactor(&[]);
        let cut = redactor.json_up_to("\"ääää\"", 4);
        assert_eq!(cut.text, "\"ä");
        assert!(cut.truncated);
        let whole = redactor.json_up_to("\"ä\"", 4);
        assert_eq!(whole.text, "\"ä\"");
        assert!(!whole.truncated);
    }

    #[test]
    fn a_secret_across_the_cut_leaves_no_half() {
        let redactor = redactor(&["correct-horse-battery"]);
        let text = format!(
            "\"{}correct-horse-battery{}\"",
            "x".repeat(95),
            "y".repeat(50_000)
        );
        for limit in 90..130 {
            let cut = redactor.json_up_to(&text, limit);
            assert!(cut.truncated);
            assert!(!cut.text.contains("corr"), "{limit}: {}", cut.text);
        }
    }

    #[test]
    fn shrinking_never_pulls_half_a_secret_into_what_is_kept() {
        let secret = "s".repeat(3_000);
        let redactor = redactor(&[&secret]);
        let text = format!("\"{}\"", secret.repeat(20));
        for limit in [10, 100, 5_000, 20_000, 30_000] {
            let cut = redactor.json_up_to(&text, limit);
            assert!(!cut.text.contains("sss"), "{limit}");
        }
    }
}
