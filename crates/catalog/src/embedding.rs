//! What a text means, as a direction: the sum of the vectors of its words.
//!
//! Directions are kept as small integers. Comparing two of them is exact arithmetic on one byte
//! per dimension, which is both fast and the same on every machine.

use crate::token_table::{self, DIMENSIONS};

const LANES: usize = 8;

/// How nearly two texts point the same way that have nothing to do with each other.
const CHANCE: f32 = 0.1;

/// The direction of a text; the zero vector if no word of it is known.
#[derive(Debug, Clone)]
pub(crate) struct Embedding {
    values: [i8; DIMENSIONS],
    /// One over the length of `values`, or zero.
    inverse_length: f32,
}

/// A text as far as it has been read.
#[derive(Debug, Clone)]
pub(crate) struct EmbeddingSum([f32; DIMENSIONS]);

impl EmbeddingSum {
    pub(crate) fn new() -> Self {
        Self([0.0; DIMENSIONS])
    }

    /// Adds a token by its row in the table.
    pub(crate) fn add(&mut self, row: u32, weight: f32) {
        token_table::add_row(row, weight, &mut self.0);
    }

    pub(crate) fn finish(&self) -> Embedding {
        let largest = self
            .0
            .iter()
            .fold(0.0, |largest: f32, value| largest.max(value.abs()));
        let scale = if largest > 0.0 {
            f32::from(i8::MAX) / largest
        } else {
            0.0
        };
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 by the scale")]
        let values = self.0.map(|value| (value * scale).round() as i8);
        Embedding::new(values)
    }
}

impl Embedding {
    fn new(values: [i8; DIMENSIONS]) -> Self {
        let square = dot(&values, &values);
        let inverse_length = if square > 0 {
            exact(square).sqrt().recip()
        } else {
            0.0
        };
        Self {
            values,
            inverse_length,
        }
    }

    /// From 0 to 1: how much two texts have to do with each other.
    pub(crate) fn likeness(&self, other: &Self) -> f32 {
        let cosine =
            exact(dot(&self.values, &other.values)) * self.inverse_length * other.inverse_length;
        ((cosine - CHANCE) / (1.0 - CHANCE)).clamp(0.0, 1.0)
    }
}

/// Written in lanes of 16-bit products, which every processor multiplies eight at a time; the
/// plain sum of 32-bit products takes three times as long, and this is most of a search.
fn dot(a: &[i8; DIMENSIONS], b: &[i8; DIMENSIONS]) -> i32 {
    let mut sums = [0; LANES];
    let (a, b) = (a.as_chunks::<LANES>().0, b.as_chunks::<LANES>().0);
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += i32::from(i16::from(a[lane]) * i16::from(b[lane]));
        }
    }
    sums.iter().sum()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "256 products of seven bits each fit in 24 bits"
)]
fn exact(dot: i32) -> f32 {
    dot as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word_piece;

    fn embedding(text: &str) -> Embedding {
        let mut sum = EmbeddingSum::new();
        for word in text.split(' ') {
            for row in word_piece::rows(word) {
                sum.add(row, 1.0);
            }
        }
        sum.finish()
    }

    #[test]
    fn a_text_is_like_itself_and_nothing_is_like_nothing() {
        let (notes, nothing) = (embedding("list all notes"), embedding("搜索"));
        assert!((notes.likeness(&notes) - 1.0).abs() < 1e-6);
        assert!(notes.likeness(&nothing).abs() < f32::EPSILON);
        assert!(nothing.likeness(&nothing).abs() < f32::EPSILON);
    }

    #[test]
    fn meaning_counts_and_not_spelling() {
        let erase = embedding("erase a document");
        assert!(
            erase.likeness(&embedding("delete files"))
                > 2.0 * erase.likeness(&embedding("weather forecast"))
        );
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let extreme = Embedding::new([i8::MIN; DIMENSIONS]);
        assert!((extreme.likeness(&extreme) - 1.0).abs() < 1e-6);
    }
}
