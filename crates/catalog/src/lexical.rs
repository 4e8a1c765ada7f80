//! Which words of a query a tool has, and what that is worth.
//!
//! A query is first laid out as a plan: for each word the terms that stand for it and where they
//! occur. Scoring all tools and explaining one of them both follow that plan.

use std::ops::Range;

use serde::Serialize;

use crate::bm25::{self, PerField};
use crate::index::{self, Occurrence};
use crate::query::QueryWord;
use crate::snapshot::Snapshot;
use crate::synonyms::{self, SYNONYM_WEIGHT};
use crate::typo;

/// What a word counts for that matches the name of a tool but for one letter.
const TYPO_WEIGHT: f32 = 0.7;

/// How a term of a tool stands for a word of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchKind {
    /// It is the word, in some form.
    Word,
    /// It is the word but for one letter.
    Typo,
    /// It is another word for the same.
    Synonym,
}

/// The words of a query, looked up in all tools: rarity does not depend on filters.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    snapshot: &'a Snapshot,
    pub(crate) words: Vec<PlannedWord<'a>>,
    /// What a tool would score that had every word as prominently as can be.
    ceiling: f32,
}

#[derive(Debug)]
pub(crate) struct PlannedWord<'a> {
    /// In lower case, as it stands in the query.
    pub(crate) written: &'a str,
    /// How telling it is to have the word.
    pub(crate) rarity: f32,
    terms: Vec<PlannedTerm<'a>>,
}

#[derive(Debug)]
struct PlannedTerm<'a> {
    term: &'a str,
    kind: MatchKind,
    worth: f32,
    found: &'a [Occurrence],
}

/// The best way in which a tool has a word of the query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BestMatch<'a> {
    pub(crate) term: &'a str,
    pub(crate) kind: MatchKind,
    pub(crate) frequencies: PerField<u8>,
    /// What it adds to the tool's score.
    pub(crate) score: f32,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, words: &'a [QueryWord]) -> Self {
        let mut plan = Self {
            snapshot,
            words: Vec::with_capacity(words.len()),
            ceiling: 0.0,
        };
        for word in words {
            plan.add(word);
        }
        plan
    }

    fn add(&mut self, word: &'a QueryWord) {
        let index = &self.snapshot.index;
        let found = index.occurrences(&word.stem);
        if found.is_empty() && !word.parts.is_empty() {
            for part in &word.parts {
                self.add(part);
            }
            return;
        }
        let rarity = self.rarity(found);
        let mut terms = Vec::new();
        if found.is_empty() {
            for term in typo::candidates(&word.written, &word.stem, index.name_terms()) {
                let found = index.occurrences(term);
                terms.push(PlannedTerm {
                    term,
                    kind: MatchKind::Typo,
                    worth: TYPO_WEIGHT * self.rarity(found),
                    found,
                });
            }
        } else {
            terms.push(PlannedTerm {
                term: &word.stem,
                kind: MatchKind::Word,
                worth: rarity,
                found,
            });
        }
        for term in synonyms::of(&word.stem) {
            let found = index.occurrences(term);
            terms.push(PlannedTerm {
                term,
                kind: MatchKind::Synonym,
                // A rare synonym of a common word is not worth more than the word itself.
                worth: SYNONYM_WEIGHT * self.rarity(found).min(rarity),
                found,
            });
        }
        self.ceiling += rarity * bm25::CEILING;
        self.words.push(PlannedWord {
            written: &word.written,
            rarity,
            terms,
        });
    }

    fn rarity(&self, found: &[Occurrence]) -> f32 {
        bm25::rarity(self.snapshot.len(), found.len())
    }

    /// For each tool, from 0 to 1, how much of what the query asks for it has. Those outside of
    /// `tools` are left at 0.
    pub(crate) fn scores(&self, tools: &Range<usize>) -> Vec<f32> {
        let mut scores = vec![0.0_f32; self.snapshot.len()];
        // What the current word is worth: the best of the ways in which it matches.
        let mut word_scores = vec![0.0_f32; self.snapshot.len()];
        let mut touched = Vec::new();
        for word in &self.words {
            for term in &word.terms {
                for occurrence in index::within(term.found, tools.clone()) {
                    let index = occurrence.index as usize;
                    let best = &mut word_scores[index];
                    if *best == 0.0 {
                        touched.push(index);
                    }
                    *best = best.max(term.worth * occurrence.prominence);
                }
            }
            for index in touched.drain(..) {
                scores[index] += std::mem::take(&mut word_scores[index]);
            }
        }
        let scale = self.scale();
        scores.into_iter().map(|score| score * scale).collect()
    }

    /// How the tool at `index` comes to its score, for each word that it has.
    pub(crate) fn matches(
        &self,
        index: u32,
    ) -> impl Iterator<Item = (&PlannedWord<'a>, BestMatch<'a>)> {
        self.words.iter().filter_map(move |word| {
            let matches = word.terms.iter().filter_map(|term| {
                let occurrence = term.occurrence_in(index)?;
                Some(BestMatch {
                    term: term.term,
                    kind: term.kind,
                    frequencies: occurrence.frequencies,
                    score: term.worth * occurrence.prominence * self.scale(),
                })
            });
            let better = |best: BestMatch<'a>, other: BestMatch<'a>| {
                if other.score > best.score {
                    other
                } else {
                    best
                }
            };
            Some((word, matches.reduce(better)?))
        })
    }

    fn scale(&self) -> f32 {
        if self.ceiling > 0.0 {
            self.ceiling.recip()
        } else {
            0.0
        }
    }
}

impl<'a> PlannedTerm<'a> {
    fn occurrence_in(&self, index: u32) -> Option<&'a Occurrence> {
        let at = self.found.binary_search_by_key(&index, |found| found.index);
        self.found.get(at.ok()?)
    }
}
