//! A set of literals to search for all at once: with vector instructions where there are few enough of
//! them and the machine has such instructions, else by an automaton.

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, packed};

/// Bytes of literals up to which the automaton is deterministic: half a kilobyte of memory each.
const LARGEST_DFA: usize = 8 * 1024;

#[derive(Debug, Clone)]
pub(super) enum Literals {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

impl Literals {
    /// None of the literals may be empty.
    pub(super) fn new<L: AsRef<[u8]>>(literals: &[L]) -> Result<Self, BuildError> {
        if let Some(searcher) = packed::Searcher::new(literals) {
            return Ok(Self::Packed(searcher));
        }
        let bytes: usize = literals.iter().map(|literal| literal.as_ref().len()).sum();
        let kind = if bytes <= LARGEST_DFA {
            AhoCorasickKind::DFA
        } else {
            AhoCorasickKind::ContiguousNFA
        };
        let builder = AhoCorasick::builder().kind(Some(kind)).build(literals)?;
        Ok(Self::Automaton(builder))
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Packed(searcher) => searcher.find(text).is_some(),
            Self::Automaton(automaton) => automaton.is_match(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_ways_find_the_same(
            literals in prop::collection::vec("[ab_]{2,5}", 1..70),
            text in "[ab_c]{0,60}",
        ) {
            let expected = literals.iter().any(|literal| text.contains(literal.as_str()));
            prop_assert_eq!(Literals::new(&literals).unwrap().is_match(&text), expected);
        }
    }
}
