//! Patterns over words: `cannot|can't be undone`, `ignore ~3 instructions`.
//!
//! Matching whole words instead of characters makes case, punctuation, hyphens and line breaks
//! irrelevant, and needs nothing that can fail when it is built.

use crate::hash::WordMap;
use crate::text::Words;

/// Many patterns, found by their first word.
#[derive(Debug)]
pub(crate) struct Patterns<T> {
    patterns: Vec<(Vec<Slot>, T)>,
    by_first_word: WordMap<&'static str, Vec<usize>>,
}

/// One word of a pattern.
#[derive(Debug)]
struct Slot {
    /// How many other words may stand before it.
    gap: usize,
    /// Whether none of the words may stand here, rather than one of them must.
    forbidden: bool,
    alternatives: Vec<&'static str>,
}

/// A place where a pattern matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Match<T> {
    pub(crate) label: T,
    /// The first word and the one after the last.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl<T> Default for Patterns<T> {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            by_first_word: WordMap::default(),
        }
    }
}

impl<T: Copy> Patterns<T> {
    /// Words are separated by spaces or hyphens, alternatives by `|`; `~3` lets up to three other
    /// words stand in between, and `!x` says that x must not follow.
    pub(crate) fn add(&mut self, pattern: &'static str, label: T) {
        let mut slots = Vec::new();
        let mut gap = 0;
        for part in pattern.split([' ', '-']).filter(|part| !part.is_empty()) {
            if let Some(count) = part.strip_prefix('~') {
                gap = count.parse().unwrap_or(0);
            } else {
                let forbidden = part.starts_with('!');
                slots.push(Slot {
                    gap,
                    forbidden,
                    alternatives: part.trim_start_matches('!').split('|').collect(),
                });
                gap = 0;
            }
        }
        let index = self.patterns.len();
        for word in slots.first().iter().flat_map(|slot| &slot.alternatives) {
            self.by_first_word.entry(word).or_default().push(index);
        }
        self.patterns.push((slots, label));
    }

    /// Every match, in the order of the text.
    pub(crate) fn find<'w>(&'w self, words: &'w Words) -> impl Iterator<Item = Match<T>> + 'w {
        words.iter().enumerate().flat_map(move |(start, word)| {
            let candidates = self.by_first_word.get(word);
            candidates.into_iter().flatten().filter_map(move |index| {
                let (slots, label) = self.patterns.get(*index)?;
                let end = match_slots(slots.get(1..)?, words, start + 1)?;
                Some(Match {
                    label: *label,
                    start,
                    end,
                })
            })
        })
    }
}

/// Where the slots end when they match from `position` on.
fn match_slots(slots: &[Slot], words: &Words, position: usize) -> Option<usize> {
    let Some((slot, rest)) = slots.split_first() else {
        return Some(position);
    };
    if slot.forbidden {
        let stands = words
            .get(position)
            .is_some_and(|word| slot.alternatives.contains(&word));
        return if stands {
            None
        } else {
            match_slots(rest, words, position)
        };
    }
    (position..=position + slot.gap).find_map(|at| {
        let word = words.get(at)?;
        let fits = slot.alternatives.contains(&word);
        fits.then(|| match_slots(rest, words, at + 1)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &'static str, text: &str) -> bool {
        let mut patterns = Patterns::default();
        patterns.add(pattern, ());
        patterns
            .find(&Words::of_prose(text, 1_000))
            .next()
            .is_some()
    }

    #[test]
    fn case_hyphens_and_line_breaks_do_not_matter() {
        assert!(matches("read-only", "This is READ\nonly."));
        assert!(!matches("read-only", "Reads only"));
    }

    #[test]
    fn any_alternative_may_stand_in_its_place() {
        for text in ["it can't be undone", "it cannot be reversed"] {
            assert!(matches("cannot|can't be undone|reversed", text));
        }
        assert!(!matches("cannot|can't be undone", "it can be undone"));
    }

    #[test]
    fn a_gap_is_bounded() {
        assert!(matches("ignore ~2 instructions", "ignore instructions"));
        assert!(matches(
            "ignore ~2 instructions",
            "ignore all previous instructions"
        ));
        assert!(!matches(
            "ignore ~2 instructions",
            "ignore a b c instructions"
        ));
    }

    #[test]
    fn a_forbidden_word_must_not_follow() {
        assert!(matches("id rsa !pub", "~/.ssh/id_rsa"));
        assert!(!matches("id rsa !pub", "~/.ssh/id_rsa.pub"));
    }

    #[test]
    fn a_gap_tries_every_place() {
        assert!(matches("a ~3 b c", "a b x b c"));
    }
}
