//! The BM25F+ formula: how often a term occurs in which field becomes a number.
//!
//! Frequencies are weighted and length-normalised per field, added up, and saturated once, so a
//! word in the name and in the description is one good match and not two.

use serde::Serialize;

/// The parts of a tool that are searched apart, because a word counts differently in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    Name,
    Description,
    Server,
    ParameterName,
    ParameterDescription,
}

pub(crate) const FIELDS: usize = 5;

pub(crate) const ALL_FIELDS: PerField<Field> = [
    Field::Name,
    Field::Description,
    Field::Server,
    Field::ParameterName,
    Field::ParameterDescription,
];

/// One number per [`Field`], in the order of its variants.
pub(crate) type PerField<T> = [T; FIELDS];

const WEIGHT: PerField<f32> = [2.0, 1.0, 0.5, 0.5, 0.25];

/// How much a long field dilutes its words. A name is short by nature and a server's name is the
/// same for all its tools, so their length says little or nothing.
const LENGTH_PENALTY: PerField<f32> = [0.3, 0.75, 0.0, 0.75, 0.75];

/// How soon repeating a word stops helping (k1).
const SATURATION: f32 = 1.2;

/// What a term that occurs at all is worth beyond its frequency (the "plus" of BM25+), so that a
/// thorough description is not punished below one that never mentions the term.
const OCCURRENCE: f32 = 0.5;

/// The most that [`saturate`] can approach.
pub(crate) const CEILING: f32 = SATURATION + 1.0 + OCCURRENCE;

/// What one occurrence is worth in each field of a document with these field lengths.
pub(crate) fn field_factors(lengths: PerField<u32>, mean_lengths: PerField<f32>) -> PerField<f32> {
    std::array::from_fn(|field| {
        let penalty = LENGTH_PENALTY[field];
        let relative_length = if mean_lengths[field] > 0.0 {
            to_f32(lengths[field]) / mean_lengths[field]
        } else {
            1.0
        };
        WEIGHT[field] / (1.0 - penalty + penalty * relative_length)
    })
}

/// The weighted frequency of a term in a document, saturated.
pub(crate) fn saturate(frequencies: PerField<u8>, factors: &PerField<f32>) -> f32 {
    let frequency: f32 = frequencies
        .iter()
        .zip(factors)
        .map(|(&frequency, factor)| f32::from(frequency) * factor)
        .sum();
    frequency * (SATURATION + 1.0) / (frequency + SATURATION) + OCCURRENCE
}

/// How telling it is that a document has a term which `containing` of `documents` have.
pub(crate) fn rarity(documents: usize, containing: usize) -> f32 {
    let (documents, containing) = (to_f32(documents), to_f32(containing));
    (1.0 + (documents - containing + 0.5) / (containing + 0.5)).ln()
}

/// Counts here are far below 2^24, where `f32` stops being exact.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of tools and words fit exactly"
)]
fn to_f32(count: impl TryInto<u32>) -> f32 {
    count.try_into().unwrap_or(u32::MAX) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: PerField<f32> = [2.0, 10.0, 1.0, 3.0, 12.0];

    fn score(frequencies: PerField<u8>, lengths: PerField<u32>) -> f32 {
        saturate(frequencies, &field_factors(lengths, MEAN))
    }

    #[test]
    fn a_word_counts_by_the_field_it_is_in() {
        let typical = [2, 10, 1, 3, 12];
        let in_field = |field: Field| {
            let mut frequencies = PerField::default();
            frequencies[field as usize] = 1;
            score(frequencies, typical)
        };
        assert!(in_field(Field::Name) > in_field(Field::Description));
        assert!(in_field(Field::Description) > in_field(Field::ParameterName));
        assert!(in_field(Field::ParameterName) > in_field(Field::ParameterDescription));
    }

    #[test]
    fn repeating_a_word_helps_less_each_time_and_never_beyond_the_ceiling() {
        let [one, two, three, most] =
            [1, 2, 3, 255].map(|frequency| score([0, frequency, 0, 0, 0], [2, 10, 1, 3, 12]));
        assert!(one < two && two < three && three < most);
        assert!(three - two < two - one);
        assert!(most < CEILING);
    }

    #[test]
    fn a_long_description_dilutes_its_words_but_a_servers_name_does_not() {
        let described = |length| score([0, 1, 0, 0, 0], [2, length, 1, 3, 12]);
        assert!(described(5) > described(50));
        let served = |length| score([0, 0, 1, 0, 0], [2, 10, length, 3, 12]);
        assert!((served(1) - served(9)).abs() < f32::EPSILON);
    }

    #[test]
    fn rarer_words_tell_more() {
        assert!(rarity(100, 0) > rarity(100, 1));
        assert!(rarity(100, 1) > rarity(100, 50));
        assert!(rarity(100, 100) > 0.0);
        assert!(rarity(0, 0).is_finite());
    }

    #[test]
    fn fields_that_no_tool_has_are_harmless() {
        let factors = field_factors(PerField::default(), PerField::default());
        assert!(factors.iter().all(|factor| factor.is_finite()));
    }
}
