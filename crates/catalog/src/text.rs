//! Words: how names, descriptions and queries become the terms that are compared.
//!
//! Identifiers are split the way people read them (`listPullRequests`, `list_pull_requests` and
//! "list pull requests" are the same three words), then stemmed, so "listing" finds `list`.

use rust_stemmers::{Algorithm, Stemmer};

/// A longer word is an encoded blob or a key, and nobody types it to find a tool.
const LONGEST_WORD: usize = 64;

/// Where a word stands in what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It stands alone.
    Single,
    /// It is a part of the next [`Role::Whole`].
    Part,
    /// It is a compound, written as one.
    Whole,
}

/// How a character takes part in a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Letter,
    Digit,
    /// Scripts written without spaces, where a word is found by its pairs of characters.
    Unspaced,
}

impl Class {
    fn of(character: char) -> Option<Self> {
        match character {
            // Nearly all text is ASCII, and the tables for the rest are slow.
            'a'..='z' => Some(Self::Letter),
            'A'..='Z' => Some(Self::Upper),
            '0'..='9' => Some(Self::Digit),
            '\0'..='\x7f' => None,
            '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{2fa1f}' => Some(Self::Unspaced),
            _ if character.is_numeric() => Some(Self::Digit),
            _ if character.is_uppercase() => Some(Self::Upper),
            _ if character.is_alphabetic() => Some(Self::Letter),
            _ => None,
        }
    }
}

/// Calls `each` with every lower-case word of `text`, in order.
///
/// A compound such as `GitHub` or `base64` yields its parts and then itself, because the other
/// side may write it either way.
pub(crate) fn for_each_word(text: &str, mut each: impl FnMut(&str, Role)) {
    let mut buffer = String::new();
    let mut emit = |word: &str, role: Role| {
        buffer.clear();
        // Lower-casing can add marks that are no letters, and a word holds only letters.
        buffer.extend(
            word.chars()
                .flat_map(char::to_lowercase)
                .filter(|c| c.is_alphanumeric()),
        );
        if !buffer.is_empty() && buffer.len() <= LONGEST_WORD {
            each(&buffer, role);
        }
    };
    let mut rest = text;
    while let Some(start) = rest.find(|c| Class::of(c).is_some()) {
        rest = &rest[start..];
        let unspaced = rest.chars().next().and_then(Class::of) == Some(Class::Unspaced);
        let in_run = |c: char| Class::of(c).is_some_and(|c| (c == Class::Unspaced) == unspaced);
        let end = rest.find(|c| !in_run(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        if unspaced {
            emit_pairs(run, &mut emit);
        } else {
            emit_compound(run, &mut emit);
        }
        rest = after;
    }
}

fn emit_pairs(run: &str, emit: &mut impl FnMut(&str, Role)) {
    let starts = run.char_indices().map(|(at, _)| at);
    let ends = run.char_indices().map(|(at, c)| at + c.len_utf8()).skip(1);
    let mut paired = false;
    for (start, end) in starts.zip(ends) {
        paired = true;
        emit(&run[start..end], Role::Single);
    }
    if !paired {
        emit(run, Role::Single);
    }
}

fn emit_compound(run: &str, emit: &mut impl FnMut(&str, Role)) {
    let mut characters = run.char_indices().peekable();
    let mut start = 0;
    let mut before = None;
    while let Some((at, character)) = characters.next() {
        let class = Class::of(character);
        let next = characters.peek().and_then(|(_, next)| Class::of(*next));
        let boundary = match (before, class) {
            (Some(Class::Digit), Some(now)) => now != Class::Digit,
            (Some(_), Some(Class::Digit)) | (Some(Class::Letter), Some(Class::Upper)) => true,
            // The last capital of `HTTPServer` begins the next word.
            (Some(Class::Upper), Some(Class::Upper)) => next == Some(Class::Letter),
            _ => false,
        };
        if boundary {
            emit_part(&run[start..at], emit);
            start = at;
        }
        before = class;
    }
    if start > 0 {
        emit_part(&run[start..], emit);
        emit(run, Role::Whole);
    } else {
        emit(run, Role::Single);
    }
}

/// One character of `k8s` or `getX` says nothing that the whole does not say better.
fn emit_part(part: &str, emit: &mut impl FnMut(&str, Role)) {
    if part.chars().nth(1).is_some() {
        emit(part, Role::Part);
    }
}

/// Reduces a lower-case word to its Porter2 stem. Words of other scripts stay as they are.
pub(crate) fn stem(word: &str) -> String {
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        Stemmer::create(Algorithm::English).stem(word).into_owned()
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, |word, _| words.push(word.to_owned()));
        words
    }

    #[test]
    fn identifiers_split_the_way_they_are_read() {
        assert_eq!(words("list_pull-requests"), ["list", "pull", "requests"]);
        assert_eq!(words("listIssues"), ["list", "issues", "listissues"]);
        assert_eq!(words("HTTPServer"), ["http", "server", "httpserver"]);
        assert_eq!(words("userID"), ["user", "id", "userid"]);
        assert_eq!(words("files/read.text"), ["files", "read", "text"]);
    }

    #[test]
    fn compounds_are_found_by_their_parts_and_whole() {
        assert_eq!(words("GitHub"), ["git", "hub", "github"]);
        assert_eq!(words("base64"), ["base", "64", "base64"]);
        assert_eq!(words("k8s s3"), ["k8s", "s3"]);
        assert_eq!(words("2024"), ["2024"]);
    }

    #[test]
    fn unspaced_scripts_become_pairs() {
        assert_eq!(words("必应搜索"), ["必应", "应搜", "搜索"]);
        assert_eq!(words("查URL"), ["查", "url"]);
    }

    #[test]
    fn other_scripts_and_noise_are_harmless() {
        assert_eq!(words("Straße ÀÉ"), ["straße", "àé"]);
        assert_eq!(words("👩‍💻 \u{0}\u{1b}[\u{7f}"), [""; 0]);
        assert_eq!(words(&"x".repeat(65)), [""; 0]);
    }

    #[test]
    fn stems_join_the_forms_of_a_word() {
        assert_eq!(stem("repositories"), stem("repository"));
        assert_eq!(stem("listing"), stem("lists"));
        assert_eq!(stem("搜索"), "搜索");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_word_is_found_again_in_itself(text in "\\PC{0,60}") {
            for word in words(&text) {
                prop_assert!(words(&word).contains(&word), "{word:?} of {text:?}");
            }
        }

        #[test]
        fn words_without_digits_are_fixed(text in "[a-zA-Z _é.-]{0,60}") {
            for word in words(&text) {
                prop_assert_eq!(words(&word), [word]);
            }
        }

        #[test]
        fn stemming_never_panics(text in "\\PC{0,40}") {
            for word in words(&text) {
                prop_assert!(!stem(&word).is_empty());
            }
        }
    }
}
