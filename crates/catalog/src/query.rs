//! What a query asks for: the terms to look up, and the tools it may be calling by name.

use crate::action::Action;
use crate::text::{self, Role};
use crate::word_list;

/// The bytes of a query that count. It is a sentence; what follows after this much is a pasted
/// document.
pub const LONGEST_QUERY: usize = 4096;

/// More distinct words than this add work and no meaning.
const MOST_WORDS: usize = 64;

/// A query that has been read but not yet compared with anything.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParsedQuery {
    pub(crate) words: Vec<QueryWord>,
    /// Lower-case texts that may be the name of a tool, alone or as `server:tool`.
    pub(crate) mentions: Vec<String>,
}

/// A word of a query, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryWord {
    pub(crate) written: String,
    pub(crate) stem: String,
    /// What to look for instead when no tool has the compound itself; empty if it is no compound.
    pub(crate) parts: Vec<QueryWord>,
}

impl ParsedQuery {
    pub(crate) fn parse(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(LONGEST_QUERY)];
        Self {
            words: words(text),
            mentions: mentions(text),
        }
    }

    /// What the query asks to be done: its first word that says so.
    pub(crate) fn action(&self) -> Option<Action> {
        let whole_or_parts = |word: &QueryWord| {
            let parts = word
                .parts
                .iter()
                .find_map(|part| Action::of_stem(&part.stem));
            parts.or_else(|| Action::of_stem(&word.stem))
        };
        self.words.iter().find_map(whole_or_parts)
    }
}

impl QueryWord {
    fn new(word: &str, parts: Vec<Self>) -> Self {
        Self {
            written: word.to_owned(),
            stem: text::stem(word),
            parts,
        }
    }
}

fn words(text: &str) -> Vec<QueryWord> {
    let mut meaningful = Vec::new();
    let mut conversational = Vec::new();
    let mut parts = Vec::new();
    text::for_each_word(text, |word, role| {
        if role == Role::Part {
            parts.push(QueryWord::new(word, Vec::new()));
            return;
        }
        let parts = std::mem::take(&mut parts);
        if word_list::is_function_word(word) {
            return;
        }
        let word = QueryWord::new(word, parts);
        let list = if word_list::is_conversational(&word.written) {
            &mut conversational
        } else {
            &mut meaningful
        };
        let known = |known: &QueryWord| known.stem == word.stem;
        if list.len() < MOST_WORDS && !list.iter().any(known) {
            list.push(word);
        }
    });
    if meaningful.is_empty() {
        conversational
    } else {
        meaningful
    }
}

fn mentions(text: &str) -> Vec<String> {
    let whole = text.trim();
    let mut mentions = vec![whole.to_lowercase()];
    for word in whole.split_whitespace().take(MOST_WORDS) {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        // A plain word such as `search` is prose; only an identifier is meant as a name.
        let identifier = word.contains(['_', '-', ':', '/', '.'])
            || word.chars().skip(1).any(char::is_uppercase);
        if identifier {
            mentions.push(word.to_lowercase());
        }
    }
    mentions.retain(|mention| !mention.is_empty());
    mentions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<String> {
        let words = ParsedQuery::parse(text).words;
        words.into_iter().map(|word| word.stem).collect()
    }

    #[test]
    fn only_meaning_is_left_of_a_polite_request() {
        let asked = "Hi, could you please help me to list the issues? I need them, thanks!";
        assert_eq!(stems(asked), ["list", "issu"]);
    }

    #[test]
    fn conversational_words_count_when_they_are_all_there_is() {
        assert_eq!(stems("help me"), ["help"]);
        assert_eq!(stems("the of"), [""; 0]);
    }

    #[test]
    fn words_count_once() {
        assert_eq!(stems("issues issue ISSUE"), ["issu"]);
    }

    #[test]
    fn a_compound_knows_its_parts() {
        let words = ParsedQuery::parse("GitHub").words;
        let [word] = words.as_slice() else {
            panic!("{words:?}")
        };
        assert_eq!((word.stem.as_str(), word.parts.len()), ("github", 2));
    }

    #[test]
    fn identifiers_and_the_whole_query_may_be_names() {
        let mentions = ParsedQuery::parse("call `github:create_issue` now").mentions;
        assert_eq!(
            mentions,
            ["call `github:create_issue` now", "github:create_issue"]
        );
        assert_eq!(ParsedQuery::parse(" Search ").mentions, ["search"]);
    }

    #[test]
    fn bad_input_is_cut_or_empty() {
        for text in ["", "  ", "👩‍💻🔥", "\u{0}\u{7}"] {
            assert!(ParsedQuery::parse(text).words.is_empty(), "{text:?}");
        }
        let numbers: Vec<_> = (0..50_000).map(|number| format!("é{number}")).collect();
        assert_eq!(
            ParsedQuery::parse(&numbers.join(" ")).words.len(),
            MOST_WORDS
        );
    }
}
