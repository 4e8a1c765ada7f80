//! Why a search found what it found: for people who tune descriptions, never for agents.

use serde::Serialize;

use crate::bm25::{ALL_FIELDS, Field};
use crate::lexical::{BestMatch, MatchKind};
use crate::query::ParsedQuery;
use crate::ranking::Ranking;
use crate::search::{Hit, Query};
use crate::snapshot::Snapshot;

/// A hit with what its score is made of.
#[derive(Debug, Clone)]
pub struct Explanation {
    pub hit: Hit,
    pub reasons: Reasons,
}

/// What a score is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reasons {
    /// From 0 to 1: how much of what the query asks for the tool has, word by word.
    pub words: f32,
    /// From 0 to 1: how near the tool is to the query in meaning.
    pub meaning: f32,
    pub fusion: Fusion,
    /// The words of the query that the tool has, in their order. Their shares add up to `words`.
    pub matches: Vec<Match>,
}

/// How the two become one: `(words_weight × words + meaning_weight × meaning) × action_factor`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fusion {
    pub words_weight: f32,
    pub meaning_weight: f32,
    /// Less than 1 if the tool does another kind of thing than the query asks for.
    pub action_factor: f32,
    /// The query names the tool, which lifts its score above all that merely match.
    pub named: bool,
}

/// A word of the query and the term of the tool that stands for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Match {
    pub word: String,
    /// Reduced to its stem.
    pub term: String,
    pub kind: MatchKind,
    /// Where the tool has the term.
    pub fields: Vec<Field>,
    pub share: f32,
}

impl Snapshot {
    /// The same hits as [`Snapshot::search`] finds, each with its reasons.
    pub fn explain(&self, query: &Query<'_>) -> Vec<Explanation> {
        let parsed = ParsedQuery::parse(query.text);
        let ranking = Ranking::new(self, &parsed, query);
        let best = ranking.best(query.limit).into_iter();
        best.filter_map(|ranked| ranking.explain(ranked)).collect()
    }
}

impl Fusion {
    /// The score of a tool that the query does not name.
    pub fn score(&self, words: f32, meaning: f32) -> f32 {
        (self.words_weight * words + self.meaning_weight * meaning) * self.action_factor
    }
}

impl Match {
    pub(crate) fn new(word: &str, best: &BestMatch<'_>) -> Self {
        let fields = ALL_FIELDS.into_iter().zip(best.frequencies);
        let having = fields.filter(|(_, frequency)| *frequency > 0);
        Self {
            word: word.to_owned(),
            term: best.term.to_owned(),
            kind: best.kind,
            fields: having.map(|(field, _)| field).collect(),
            share: best.score,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::tests::snapshot;

    fn explain(query: &str) -> Explanation {
        let snapshot = snapshot(&[
            ("files", &["move_folder", "read_file"]),
            ("notes", &["purge_bin", "list_notes"]),
        ]);
        let explained = snapshot.explain(&Query::new(query, 1));
        explained.into_iter().next().unwrap()
    }

    #[test]
    fn each_word_is_shown_with_what_stands_for_it() {
        let explanation = explain("relocate the foldr of xylophones");
        assert_eq!(explanation.hit.tool.id.as_str(), "files:move_folder");
        let matches = explanation.reasons.matches.iter();
        let kinds: Vec<_> = matches
            .map(|matched| (matched.word.as_str(), matched.term.as_str(), matched.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("relocate", "move", MatchKind::Synonym),
                ("foldr", "folder", MatchKind::Typo)
            ]
        );
        assert_eq!(
            explanation.reasons.matches[0].fields,
            [Field::Name, Field::Description]
        );
        let shares: f32 = explanation
            .reasons
            .matches
            .iter()
            .map(|matched| matched.share)
            .sum();
        assert!((shares - explanation.reasons.words).abs() < 1e-6);
        assert!(!explanation.reasons.fusion.named);
    }

    #[test]
    fn a_name_is_said_to_be_one() {
        let explanation = explain("notes:purge_bin");
        assert!(explanation.reasons.fusion.named && explanation.hit.score >= 1.0);
    }

    #[test]
    fn meaning_alone_can_find_a_tool() {
        let explanation = explain("throw garbage away");
        assert_eq!(explanation.hit.tool.id.as_str(), "notes:purge_bin");
        assert!(explanation.reasons.meaning > 0.0);
    }
}
