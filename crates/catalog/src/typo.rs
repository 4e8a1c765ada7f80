//! Words that differ by one letter: swapped, missing, doubled or wrong.

use std::sync::Arc;

/// Shorter words have too many neighbours that mean something else.
const SHORTEST: usize = 5;

/// What must be left of it as a stem, which drops endings, and of the term that is meant.
const SHORTEST_STEM: usize = 3;
const SHORTEST_TERM: usize = 4;

/// The terms among `known` that are one slip of the finger away from the stem of what is written.
pub(crate) fn candidates<'a>(
    written: &str,
    stem: &str,
    known: &'a [Arc<str>],
) -> impl Iterator<Item = &'a str> {
    let at_least = |text: &str, characters: usize| text.chars().nth(characters - 1).is_some();
    let long_enough = at_least(written, SHORTEST) && at_least(stem, SHORTEST_STEM);
    let known = if long_enough { known } else { &[] };
    known
        .iter()
        .map(AsRef::as_ref)
        .filter(move |term| shares_an_end(stem, term) && one_edit_apart(stem, term))
        .filter(move |term| at_least(term, SHORTEST_TERM))
}

/// One slip leaves the beginning or the end of a word alone. Nearly all terms are told apart by
/// that, and a word that nobody knows is compared with all of them.
fn shares_an_end(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    a.first() == b.first() || a.last() == b.last()
}

fn one_edit_apart(a: &str, b: &str) -> bool {
    if a.len().abs_diff(b.len()) > char::MAX_LEN_UTF8 {
        return false;
    }
    // What is left between the common beginning and the common end is where they differ.
    let beginning = common_bytes(a.chars(), b.chars());
    let (a, b) = (&a[beginning..], &b[beginning..]);
    let end = common_bytes(a.chars().rev(), b.chars().rev());
    let (mut a, mut b) = (a[..a.len() - end].chars(), b[..b.len() - end].chars());
    match [a.next(), a.next(), a.next(), b.next(), b.next(), b.next()] {
        // One letter is wrong, too many, or missing.
        [_, None, _, _, None, _] => true,
        // Two letters are swapped.
        [first, second, None, other, another, None] => first == another && second == other,
        _ => false,
    }
}

fn common_bytes(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    let common = a.zip(b).take_while(|(a, b)| a == b);
    common.map(|(character, _)| character.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_slip_is_forgiven_and_two_are_not() {
        for slip in [
            "serch", "seaarch", "saerch", "seerch", "earch", "searc", "xsearch",
        ] {
            assert!(one_edit_apart(slip, "search"), "{slip}");
            assert!(one_edit_apart("search", slip), "{slip}");
        }
        for other in ["srch", "seracch", "research", "hcraes", ""] {
            assert!(!one_edit_apart(other, "search"), "{other}");
        }
    }

    #[test]
    fn short_words_have_no_candidates() {
        let known = ["list".into(), "lists".into()];
        assert_eq!(candidates("lisd", "lisd", &known).count(), 0);
        assert_eq!(
            candidates("listz", "listz", &known).collect::<Vec<_>>(),
            ["list", "lists"]
        );
    }

    #[test]
    fn the_length_of_what_was_written_counts_and_not_of_its_stem() {
        let known = ["issu".into(), "is".into()];
        let found: Vec<_> = candidates("isues", "isu", &known).collect();
        assert_eq!(found, ["issu"]);
        assert_eq!(candidates("using", "us", &known).count(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_candidate_is_missed(word in "[abé]{5,7}", known in "[abé]{4,8}") {
            let listed = [Arc::from(known.as_str())];
            let near = strsim::osa_distance(&word, &known) <= 1;
            prop_assert_eq!(candidates(&word, &word, &listed).count(), usize::from(near));
        }

        #[test]
        fn agrees_with_the_textbook_distance(a in "[abé]{0,6}", b in "[abé]{0,6}") {
            prop_assert_eq!(one_edit_apart(&a, &b), strsim::osa_distance(&a, &b) <= 1);
        }
    }
}
