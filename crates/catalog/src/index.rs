//! Where each term and each name occurs among all tools, and what a term is worth there.
//!
//! The segments know which tools have a term. What that is worth depends on the mean lengths over
//! all upstreams, so it is worked out for each snapshot, once and not with every search.

use std::ops::Range;
use std::sync::Arc;

use crate::bm25::{self, Field, PerField};
use crate::hash::HashMap;
use crate::snapshot::Placed;

/// All terms of all tools.
#[derive(Debug, Default)]
pub(crate) struct Index {
    terms: HashMap<Arc<str>, Vec<Occurrence>>,
    /// The terms of all names, sorted, to find the one that was meant.
    name_terms: Box<[Arc<str>]>,
    /// The places of tools by their names in lower case.
    names: HashMap<Arc<str>, Vec<u32>>,
}

/// A tool that has a term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occurrence {
    /// The place of the tool among all.
    pub(crate) index: u32,
    pub(crate) frequencies: PerField<u8>,
    /// How much the tool is about the term; see [`bm25::saturate`].
    pub(crate) prominence: f32,
}

impl Index {
    pub(crate) fn new(placed: &[Placed]) -> Self {
        let factors = factors(placed);
        let mut terms: HashMap<Arc<str>, Vec<Occurrence>> = HashMap::default();
        let mut names: HashMap<Arc<str>, Vec<u32>> = HashMap::default();
        for placed in placed {
            for (index, name) in (placed.first..).zip(&placed.segment.folded_names) {
                names.entry(Arc::clone(name)).or_default().push(index);
            }
            let factors = &factors[placed.range()];
            for (term, postings) in placed.segment.terms() {
                let occurrences = match terms.get_mut(term) {
                    Some(occurrences) => occurrences,
                    None => terms.entry(Arc::clone(term)).or_default(),
                };
                occurrences.extend(postings.iter().map(|posting| Occurrence {
                    index: placed.first + posting.position,
                    frequencies: posting.frequencies,
                    prominence: bm25::saturate(
                        posting.frequencies,
                        &factors[posting.position as usize],
                    ),
                }));
            }
        }
        Self {
            name_terms: name_terms(&terms),
            terms,
            names,
        }
    }

    /// The tools that have `term`, in their order.
    pub(crate) fn occurrences(&self, term: &str) -> &[Occurrence] {
        self.terms.get(term).map_or(&[], Vec::as_slice)
    }

    /// The tools whose name in lower case is `folded`, in their order.
    pub(crate) fn named(&self, folded: &str) -> &[u32] {
        self.names.get(folded).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn name_terms(&self) -> &[Arc<str>] {
        &self.name_terms
    }
}

/// Those of `occurrences` that are within `tools`.
pub(crate) fn within(occurrences: &[Occurrence], tools: Range<usize>) -> &[Occurrence] {
    let place = |index: usize| {
        occurrences.partition_point(|occurrence| (occurrence.index as usize) < index)
    };
    &occurrences[place(tools.start)..place(tools.end)]
}

/// For each tool, what a word is worth in each of its fields.
#[expect(
    clippy::cast_precision_loss,
    reason = "a mean needs no more than 24 bits"
)]
fn factors(placed: &[Placed]) -> Vec<PerField<f32>> {
    let tools: usize = placed.iter().map(|placed| placed.segment.tools.len()).sum();
    let mean_lengths = std::array::from_fn(|field| {
        let words: u64 = placed
            .iter()
            .map(|placed| placed.segment.total_lengths[field])
            .sum();
        words as f32 / tools.max(1) as f32
    });
    let lengths = placed.iter().flat_map(|placed| placed.segment.lengths());
    lengths
        .map(|lengths| bm25::field_factors(lengths, mean_lengths))
        .collect()
}

fn name_terms(terms: &HashMap<Arc<str>, Vec<Occurrence>>) -> Box<[Arc<str>]> {
    let in_name = |occurrence: &Occurrence| occurrence.frequencies[Field::Name as usize] > 0;
    let named = terms.iter().filter(|(_, found)| found.iter().any(in_name));
    let mut named: Vec<_> = named.map(|(term, _)| Arc::clone(term)).collect();
    named.sort_unstable();
    named.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::tests::snapshot;

    #[test]
    fn occurrences_are_in_the_order_of_the_tools() {
        let snapshot = snapshot(&[
            ("b", &["get_zinc", "list"]),
            ("a", &["zinc"]),
            ("c", &["zinc_x"]),
        ]);
        let found = snapshot.index.occurrences("zinc");
        let indices = |found: &[Occurrence]| -> Vec<u32> {
            found.iter().map(|occurrence| occurrence.index).collect()
        };
        assert_eq!(indices(found), [0, 1, 3]);
        assert_eq!(indices(within(found, 1..3)), [1]);
        assert_eq!(indices(within(found, 4..4)), [0; 0]);
        assert!(found.iter().all(|occurrence| occurrence.prominence > 0.0));
        assert!(snapshot.index.occurrences("lead").is_empty());
    }

    #[test]
    fn names_are_found_whatever_their_case() {
        let snapshot = snapshot(&[("a", &["Get_Zinc"]), ("b", &["get_lead", "get_zinc"])]);
        assert_eq!(snapshot.index.named("get_zinc"), [0, 2]);
        assert!(snapshot.index.named("zinc").is_empty());
    }

    #[test]
    fn terms_of_names_are_known_without_those_of_descriptions() {
        let snapshot = snapshot(&[("a", &["zinc", "copper"]), ("b", &["zinc"])]);
        let terms: Vec<&str> = snapshot
            .index
            .name_terms()
            .iter()
            .map(AsRef::as_ref)
            .collect();
        assert_eq!(terms, ["copper", "zinc"]);
    }
}
