//! Splitting identifiers and prose into lower-case words.

/// How a word is set apart from the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Break {
    None,
    Comma,
    Sentence,
}

/// The words of a text, in lower case and without punctuation.
#[derive(Debug, Default)]
pub(crate) struct Words {
    buffer: String,
    spans: Vec<(usize, usize, Break)>,
}

impl Words {
    /// Reads at most about `limit` bytes of prose.
    pub(crate) fn of_prose(text: &str, limit: usize) -> Self {
        let mut words = Self::with_capacity(text.len().min(limit));
        words.read_prose(text, limit);
        words
    }

    /// As [`Words::of_prose`], in place of the words that were there.
    ///
    /// A hyphen separates, so that "read-only" and "read only" are the same two words; an
    /// apostrophe does not.
    pub(crate) fn read_prose(&mut self, text: &str, limit: usize) {
        self.buffer.clear();
        self.spans.clear();
        let mut pending = Break::None;
        let mut start = 0;
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            if at > limit {
                break;
            }
            if character.is_ascii_alphanumeric() {
                self.buffer.push(character.to_ascii_lowercase());
                continue;
            }
            let next = characters.peek().map(|(_, next)| *next);
            if character.is_alphanumeric() {
                self.push_lower(character);
            } else if matches!(character, '\'' | '’')
                && self.buffer.len() > start
                && next.is_some_and(char::is_alphanumeric)
            {
                self.buffer.push('\'');
            } else {
                start = self.finish(start, &mut pending);
                let at_end = next.is_none_or(char::is_whitespace);
                pending = pending.max(match character {
                    ',' | ';' | '/' | '&' | '(' => Break::Comma,
                    '.' | '!' | '?' if at_end => Break::Sentence,
                    '\n' if next == Some('\n') => Break::Sentence,
                    ':' if at_end => Break::Comma,
                    _ => Break::None,
                });
            }
        }
        self.finish(start, &mut pending);
    }

    /// Reads an identifier: `deleteUser`, `delete-user`, `HTTPDelete2` and `users.delete` alike.
    pub(crate) fn of_identifier(name: &str) -> Self {
        let mut words = Self::with_capacity(name.len());
        let mut pending = Break::None;
        let mut start = 0;
        let mut before = None;
        let mut characters = name.chars().peekable();
        while let Some(character) = characters.next() {
            if character.is_alphanumeric() {
                let hump = character.is_uppercase()
                    && (before.is_some_and(|c: char| c.is_lowercase() || c.is_numeric())
                        || before.is_some_and(char::is_uppercase)
                            && characters.peek().is_some_and(|c| c.is_lowercase()));
                if hump {
                    start = words.finish(start, &mut pending);
                }
                words.push_lower(character);
            } else {
                start = words.finish(start, &mut pending);
            }
            before = Some(character);
        }
        words.finish(start, &mut pending);
        words
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&str> {
        let (start, end, _) = self.spans.get(index)?;
        self.buffer.get(*start..*end)
    }

    pub(crate) fn break_before(&self, index: usize) -> Break {
        self.spans.get(index).map_or(Break::None, |span| span.2)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &str> {
        let word = |(start, end, _): &(usize, usize, Break)| self.buffer.get(*start..*end);
        self.spans.iter().filter_map(word)
    }

    /// How many words the first sentence has.
    pub(crate) fn first_sentence(&self) -> usize {
        let later = self.spans.iter().skip(1);
        later
            .take_while(|(_, _, before)| *before != Break::Sentence)
            .count()
            + usize::from(!self.spans.is_empty())
    }

    fn with_capacity(bytes: usize) -> Self {
        Self {
            buffer: String::with_capacity(bytes),
            spans: Vec::with_capacity(bytes / 6 + 1),
        }
    }

    fn push_lower(&mut self, character: char) {
        if character.is_ascii() {
            self.buffer.push(character.to_ascii_lowercase());
        } else {
            self.buffer.extend(character.to_lowercase());
        }
    }

    /// Ends the word that began at `start`, if there is one, and says where the next begins.
    fn finish(&mut self, start: usize, pending: &mut Break) -> usize {
        let end = self.buffer.len();
        if end > start {
            self.spans.push((start, end, *pending));
            *pending = Break::None;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identifier(name: &str) -> Vec<String> {
        Words::of_identifier(name)
            .iter()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn identifiers_of_every_style_split_alike() {
        for name in [
            "delete_user",
            "deleteUser",
            "delete-user",
            "Delete.User",
            "DELETE__user",
        ] {
            assert_eq!(identifier(name), ["delete", "user"], "{name}");
        }
        assert_eq!(identifier("HTTPDelete"), ["http", "delete"]);
        assert_eq!(identifier("r2BucketGet"), ["r2", "bucket", "get"]);
        assert_eq!(identifier("_"), [""; 0]);
    }

    #[test]
    fn prose_keeps_apostrophes_and_splits_hyphens() {
        let words = Words::of_prose("It's read-only; can't WRITE.", 100);
        let listed: Vec<_> = words.iter().collect();
        assert_eq!(listed, ["it's", "read", "only", "can't", "write"]);
        assert_eq!(words.break_before(3), Break::Comma);
    }

    #[test]
    fn the_first_sentence_ends_at_a_full_stop_that_is_followed_by_space() {
        assert_eq!(
            Words::of_prose("Reads v1.2 of it. Never writes.", 100).first_sentence(),
            5
        );
        assert_eq!(
            Words::of_prose("Reads\n\nNever writes", 100).first_sentence(),
            1
        );
        assert_eq!(Words::of_prose("", 100).first_sentence(), 0);
    }

    #[test]
    fn a_long_text_is_read_only_up_to_the_limit() {
        assert!(Words::of_prose(&"word ".repeat(10_000), 1_000).len() <= 201);
    }
}
