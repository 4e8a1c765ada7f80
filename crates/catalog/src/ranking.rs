//! The order of tools for one query: words and meaning fused, names first, weak tails cut.
//!
//! A tool's score depends on the query, on the tool and on how rare words are among all tools,
//! and on nothing else. Filters therefore take tools out of the ranking and never change it, and
//! a score says the same for every query.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use policy::ServerName;

use crate::action::Action;
use crate::embedding::{Embedding, EmbeddingSum};
use crate::explain::{Explanation, Fusion, Match, Reasons};
use crate::lexical::Plan;
use crate::query::ParsedQuery;
use crate::search::{Hit, Query};
use crate::snapshot::{Placed, Snapshot};
use crate::word_piece;

/// Scores of tools that the query names begin here, those of all others end here.
pub(crate) const NAMED: f32 = 0.9;

/// The part of a score that is meaning; the rest is words.
const MEANING: f32 = 0.4;

/// What is left of the score of a tool that looks at what is to be changed, or the like.
const OTHER_ACTION: f32 = 0.9;

/// A tool that scores less has nothing to do with the query.
const WEAKEST: f32 = 0.04;

/// A tool that scores less than this share of the best one is not what was asked for.
const TAIL: f32 = 0.28;

/// However common a word is, it still says what a query is about: all tools of a server for notes
/// have the word, and whoever asks about a note means them.
const COMMON: f32 = 1.0;

/// The tools that answer a query, in no particular order yet.
#[derive(Debug)]
pub(crate) struct Ranking<'a> {
    snapshot: &'a Snapshot,
    plan: Plan<'a>,
    embedding: Embedding,
    action: Option<Action>,
    mentions: &'a [String],
    ranked: Vec<Ranked>,
}

/// A tool by its place among all, and what it scores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked {
    score: f32,
    index: u32,
}

impl<'a> Ranking<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, parsed: &'a ParsedQuery, query: &Query<'_>) -> Self {
        let plan = Plan::new(snapshot, &parsed.words);
        let mut ranking = Self {
            embedding: embedding(&plan),
            action: parsed.action(),
            snapshot,
            plan,
            mentions: &parsed.mentions,
            ranked: Vec::new(),
        };
        let scores = ranking.scores(query.server);
        for placed in snapshot.placed_in(query.server) {
            let scores = &scores[placed.range()];
            for ((index, score), tool) in (placed.first..).zip(scores).zip(&placed.segment.tools) {
                if *score >= WEAKEST && query.filter.is_none_or(|filter| filter(tool)) {
                    ranking.ranked.push(Ranked {
                        score: *score,
                        index,
                    });
                }
            }
        }
        ranking.cut_tail();
        ranking
    }

    /// For each tool of `server`, or of all.
    fn scores(&self, server: Option<&ServerName>) -> Vec<f32> {
        let placed = self.snapshot.placed_in(server);
        let mut scores = self.plan.scores(&range(placed));
        for placed in placed {
            let scores = &mut scores[placed.range()];
            let tools = placed
                .segment
                .embeddings
                .iter()
                .zip(&placed.segment.actions);
            for (score, (embedding, action)) in scores.iter_mut().zip(tools) {
                let meaning = self.embedding.likeness(embedding);
                *score = self.fusion(*action).score(*score, meaning);
            }
        }
        for mention in self.mentions {
            self.raise_named(mention, &mut scores);
        }
        scores
    }

    /// How words and meaning of a tool with this action become its score, if it is not named.
    fn fusion(&self, action: Option<Action>) -> Fusion {
        // Only if both the query and the tool say what is done can it be told apart.
        let both = self.action.zip(action);
        let other = both.is_some_and(|(asked, done)| asked != done);
        Fusion {
            words_weight: NAMED * (1.0 - MEANING),
            meaning_weight: NAMED * MEANING,
            action_factor: if other { OTHER_ACTION } else { 1.0 },
            named: false,
        }
    }

    /// Lifts the tools that `mention` names above all that merely match. Among tools of the same
    /// name the rest of the query still decides, so "gitlab create_issue" is about GitLab.
    fn raise_named(&self, mention: &str, scores: &mut [f32]) {
        let index = &self.snapshot.index;
        for named in index.named(mention) {
            let score = &mut scores[*named as usize];
            if *score < NAMED {
                *score = NAMED + *score * (1.0 - NAMED);
            }
        }
        let Some((server, name)) = mention.split_once(':') else {
            return;
        };
        for named in index.named(name) {
            let own = self.snapshot.at(*named).map(|(placed, _)| placed);
            if own.is_some_and(|own| own.segment.server.as_str().eq_ignore_ascii_case(server)) {
                scores[*named as usize] = 1.0;
            }
        }
    }

    /// After the filters and not before: whoever asks within one upstream wants its best, even if
    /// another upstream has better.
    fn cut_tail(&mut self) {
        let best = self
            .ranked
            .iter()
            .fold(0.0, |best: f32, ranked| best.max(ranked.score));
        self.ranked.retain(|ranked| ranked.score >= TAIL * best);
    }

    pub(crate) fn len(&self) -> usize {
        self.ranked.len()
    }

    /// The `limit` best, the best one first. Indices follow the order of ids, so they settle ties,
    /// and sorting a part gives the same as sorting all and cutting.
    pub(crate) fn best(&self, limit: usize) -> Vec<Ranked> {
        let order = |a: &Ranked, b: &Ranked| -> Ordering {
            b.score.total_cmp(&a.score).then(a.index.cmp(&b.index))
        };
        let mut best = self.ranked.clone();
        if limit < best.len() {
            best.select_nth_unstable_by(limit, order);
            best.truncate(limit);
        }
        best.sort_unstable_by(order);
        best
    }

    pub(crate) fn hit(&self, ranked: Ranked) -> Option<Hit> {
        let (placed, tool) = self.snapshot.at(ranked.index)?;
        Some(Hit {
            tool: Arc::clone(tool),
            score: ranked.score,
            stale: placed.stale,
        })
    }

    pub(crate) fn explain(&self, ranked: Ranked) -> Option<Explanation> {
        let (placed, _) = self.snapshot.at(ranked.index)?;
        let position = ranked.index - placed.first;
        let matches = self.plan.matches(ranked.index);
        let matches: Vec<_> = matches
            .map(|(word, best)| Match::new(word.written, &best))
            .collect();
        let embedding = placed.segment.embeddings.get(position as usize)?;
        let action = *placed.segment.actions.get(position as usize)?;
        Some(Explanation {
            hit: self.hit(ranked)?,
            reasons: Reasons {
                words: matches.iter().map(|matched| matched.share).sum(),
                meaning: self.embedding.likeness(embedding),
                fusion: Fusion {
                    named: ranked.score >= NAMED,
                    ..self.fusion(action)
                },
                matches,
            },
        })
    }
}

/// Where the tools of `placed`, which follow one another, stand among all.
fn range(placed: &[Placed]) -> Range<usize> {
    let start = placed.first().map_or(0, |placed| placed.range().start);
    start..placed.last().map_or(start, |placed| placed.range().end)
}

/// The direction of a query. Rare words say more about what is meant than common ones.
fn embedding(plan: &Plan<'_>) -> Embedding {
    let mut sum = EmbeddingSum::new();
    for word in &plan.words {
        for row in word_piece::rows(word.written) {
            sum.add(row, word.rarity.max(COMMON).sqrt());
        }
    }
    sum.finish()
}
