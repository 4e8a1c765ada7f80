//! The lists of words compiled in from `data/`: words that do not count, or not always.

use std::collections::HashSet;
use std::sync::LazyLock;

static FUNCTION_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    lines(include_str!("../data/function_words.txt"))
        .flatten()
        .collect()
});

static CONVERSATIONAL_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    lines(include_str!("../data/conversational_words.txt"))
        .flatten()
        .collect()
});

/// Whether `word` carries no meaning anywhere.
pub(crate) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.contains(word)
}

/// Whether `word` is said to an assistant rather than about a tool.
pub(crate) fn is_conversational(word: &str) -> bool {
    CONVERSATIONAL_WORDS.contains(word)
}

/// The words of each line of a list, without its comments.
pub(crate) fn lines(list: &str) -> impl Iterator<Item = impl Iterator<Item = &str>> {
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::split_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_read_without_their_comments() {
        assert!(is_function_word("the"));
        assert!(is_conversational("please"));
        assert!(!is_function_word("#") && !is_function_word("delete"));
        assert!(!is_conversational("") && !is_conversational("delete"));
    }

    #[test]
    fn no_word_is_in_both() {
        assert!(FUNCTION_WORDS.is_disjoint(&CONVERSATIONAL_WORDS));
    }
}
