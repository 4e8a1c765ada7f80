//! The table of token vectors that is compiled in: for each token, where it points in a space in
//! which texts of like meaning point alike. `tools/static_table` made it.

pub(crate) const DIMENSIONS: usize = 256;

/// Values have four bits, so a byte holds one of the first half and one of the second.
const HALF: usize = DIMENSIONS / 2;

/// A row is the length of a step as a little-endian `f32`, then the values in steps, plus eight.
const ROW_BYTES: usize = size_of::<f32>() + HALF;

static TABLE: &[u8] = include_bytes!("../data/token_vectors.bin");

const _: () = assert!(
    include_bytes!("../data/token_vectors.bin")
        .len()
        .is_multiple_of(ROW_BYTES)
);

/// Adds `weight` times a row to `sum`. The additions of each dimension happen in the order of the
/// calls, so every machine gets the same sum to the last bit.
pub(crate) fn add_row(row: u32, weight: f32, sum: &mut [f32; DIMENSIONS]) {
    let (rows, _) = TABLE.as_chunks::<ROW_BYTES>();
    let Some((step, values)) = rows
        .get(row as usize)
        .and_then(|row| row.split_first_chunk())
    else {
        return;
    };
    let factor = f32::from_le_bytes(*step) * weight;
    let (low, high) = sum.split_at_mut(HALF);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(values) {
        *low += f32::from((byte & 0x0f).cast_signed() - 8) * factor;
        *high += f32::from((byte >> 4).cast_signed() - 8) * factor;
    }
}

#[cfg(test)]
pub(crate) fn rows() -> usize {
    TABLE.len() / ROW_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up() {
        let (mut once, mut twice) = ([0.0; DIMENSIONS], [0.0; DIMENSIONS]);
        add_row(100, 2.0, &mut once);
        add_row(100, 1.0, &mut twice);
        add_row(100, 1.0, &mut twice);
        assert_eq!(once.map(f32::to_bits), twice.map(f32::to_bits));
        assert!(once.iter().any(|value| *value > 0.0) && once.iter().any(|value| *value < 0.0));
    }

    #[test]
    fn a_row_that_is_not_there_adds_nothing() {
        let mut sum = [0.0; DIMENSIONS];
        add_row(u32::MAX, 1.0, &mut sum);
        assert!(sum.iter().all(|value| value.abs() < f32::EPSILON));
    }
}
