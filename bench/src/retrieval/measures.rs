//! Recall, reciprocal rank and nDCG, of one query or as means over many.

use std::fmt;

pub(crate) const CUTS: [usize; 4] = [1, 3, 5, 10];

/// The measures of one query, of a set as means over its queries, or of several sets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measures {
    /// The share of what was to be found that is among the first 1, 3, 5 and 10.
    pub(crate) recall: [f64; CUTS.len()],
    /// One over the place of the first right hit.
    pub(crate) reciprocal_rank: f64,
    /// nDCG@10 of the first right hit, which is either right or not.
    pub(crate) ndcg: f64,
}

impl Measures {
    /// `ranks` has one place per thing to be found, counted from 1; none if it was not found.
    #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
    pub(crate) fn of(ranks: &[Option<usize>]) -> Self {
        let found = |cut: usize| ranks.iter().flatten().filter(|rank| **rank <= cut).count();
        let best = ranks.iter().flatten().min().map(|rank| *rank as f64);
        let best_of_ten = best.filter(|rank| *rank <= 10.0);
        Self {
            recall: CUTS.map(|cut| found(cut) as f64 / ranks.len().max(1) as f64),
            reciprocal_rank: best.map_or(0.0, f64::recip),
            ndcg: best_of_ten.map_or(0.0, |rank| (rank + 1.0).log2().recip()),
        }
    }

    pub(crate) fn recall_at_5(&self) -> f64 {
        let [_, _, at_5, _] = self.recall;
        at_5
    }

    #[expect(clippy::cast_precision_loss, reason = "thousands of queries at most")]
    pub(crate) fn mean(measures: &[Self]) -> Self {
        let mean = |part: &dyn Fn(&Self) -> f64| {
            measures.iter().map(part).sum::<f64>() / measures.len().max(1) as f64
        };
        Self {
            recall: std::array::from_fn(|cut| mean(&|measure| measure.recall[cut])),
            reciprocal_rank: mean(&|measure| measure.reciprocal_rank),
            ndcg: mean(&|measure| measure.ndcg),
        }
    }
}

impl fmt::Display for Measures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for recall in self.recall {
            write!(formatter, "{recall:.3} ")?;
        }
        write!(formatter, "{:.3} {:>7.3}", self.reciprocal_rank, self.ndcg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_defined() {
        let measures = Measures::of(&[Some(3), None]);
        let expected = [0.0, 0.5, 0.5, 0.5, 1.0 / 3.0, 0.5];
        let mut figures = measures.recall.to_vec();
        figures.extend([measures.reciprocal_rank, measures.ndcg]);
        for (figure, expected) in figures.iter().zip(expected) {
            assert!((figure - expected).abs() < 1e-9, "{measures:?}");
        }
    }

    #[test]
    fn beyond_the_tenth_place_only_the_reciprocal_rank_counts() {
        let measures = Measures::of(&[Some(20)]);
        assert!(measures.ndcg.abs() < 1e-9);
        assert!((measures.reciprocal_rank - 0.05).abs() < 1e-9);
    }

    #[test]
    fn means_weigh_each_alike() {
        let mean = Measures::mean(&[Measures::of(&[Some(1)]), Measures::of(&[None])]);
        assert!((mean.recall[0] - 0.5).abs() < 1e-9 && (mean.ndcg - 0.5).abs() < 1e-9);
    }
}
