//! Tokens as models count them.

use anyhow::Result;
use serde::Serialize;
use tiktoken_rs::CoreBPE;

/// The vocabulary `cl100k`, which comes with the library.
pub(super) struct Counter(CoreBPE);

impl Counter {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(tiktoken_rs::cl100k_base()?))
    }

    /// Markers of the vocabulary are plain text here: what servers write is no instruction.
    pub(super) fn text(&self, text: &str) -> usize {
        self.0.encode_ordinary(text).len()
    }

    /// The tokens of a value as JSON without spaces.
    pub(super) fn json(&self, value: &impl Serialize) -> Result<usize> {
        Ok(self.text(&serde_json::to_string(value)?))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_as_published() {
        let counter = Counter::new().unwrap();
        assert_eq!(counter.text(""), 0);
        assert_eq!(counter.text("tiktoken is great!"), 6);
        assert_eq!(counter.text("<|endoftext|>"), 7);
        let value = json!({"a": 1});
        assert_eq!(counter.json(&value).unwrap(), counter.text(r#"{"a":1}"#));
    }
}
