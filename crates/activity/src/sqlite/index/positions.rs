//! A set of positions in a block.

use super::BLOCK;

const WORDS: usize = BLOCK / 64;

/// More positions than this take less space as bits than one by one.
const MOST_LISTED: usize = BLOCK / 16;

/// Which of a block's records are meant, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Positions([u64; WORDS]);

impl Positions {
    pub(super) const NONE: Self = Self([0; WORDS]);

    /// The first so many.
    pub(super) fn first(count: usize) -> Self {
        let mut positions = Self::NONE;
        for (index, word) in positions.0.iter_mut().enumerate() {
            *word = match count.saturating_sub(index * 64) {
                wanted @ 0..64 => (1 << wanted) - 1,
                _ => u64::MAX,
            };
        }
        positions
    }

    pub(super) fn insert(&mut self, position: usize) {
        if let Some(word) = self.0.get_mut(position / 64) {
            *word |= 1 << (position % 64);
        }
    }

    pub(super) fn contains(&self, position: usize) -> bool {
        let word = self.0.get(position / 64).copied().unwrap_or(0);
        word >> (position % 64) & 1 == 1
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    pub(super) fn intersect(&mut self, other: &Self) {
        self.combine(other, |one, other| one & other);
    }

    pub(super) fn unite(&mut self, other: &Self) {
        self.combine(other, |one, other| one | other);
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.combine(other, |one, other| one & !other);
    }

    fn combine(&mut self, other: &Self, combination: fn(u64, u64) -> u64) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word = combination(*word, other);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..BLOCK).filter(|position| self.contains(*position))
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut positions = Self::NONE;
        if bytes.len() != BLOCK / 8 {
            return None;
        }
        for (word, bytes) in positions.0.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Some(positions)
    }
}

/// Appends rising positions: how many, then the steps between them or all of their bits.
pub(super) fn write(output: &mut Vec<u8>, positions: &[u16]) {
    write_number(output, positions.len() as u64);
    if positions.len() <= MOST_LISTED {
        let mut before = 0;
        for position in positions {
            write_number(output, u64::from(position - before));
            before = *position;
        }
    } else {
        let mut bits = Positions::NONE;
        for position in positions {
            bits.insert(usize::from(*position));
        }
        output.extend(bits.to_bytes());
    }
}

/// Reads what [`write()`] wrote; nothing if it is something else.
pub(super) fn read(input: &mut &[u8]) -> Option<Positions> {
    let count = usize::try_from(read_number(input)?).ok()?;
    if count > MOST_LISTED {
        return Positions::from_bytes(input.split_off(..BLOCK / 8)?);
    }
    let (mut positions, mut position) = (Positions::NONE, 0);
    for _ in 0..count {
        let step = usize::try_from(read_number(input)?).ok()?;
        position = step.checked_add(position)?;
        positions.insert(position);
    }
    Some(positions)
}

/// Passes over what [`write()`] wrote.
pub(super) fn skip(input: &mut &[u8]) -> Option<()> {
    let count = usize::try_from(read_number(input)?).ok()?;
    if count > MOST_LISTED {
        input.split_off(..BLOCK / 8)?;
    } else {
        for _ in 0..count {
            read_number(input)?;
        }
    }
    Some(())
}

/// Seven bits a byte, the lowest first; the highest bit says that there are more.
pub(super) fn write_number(output: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        output.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    output.push(number.to_le_bytes()[0]);
}

pub(super) fn read_number(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *input.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn places() -> impl Strategy<Value = BTreeSet<u16>> {
        let most = u16::try_from(BLOCK).unwrap();
        proptest::collection::btree_set(0..most, 0..BLOCK)
    }

    fn bits(places: &BTreeSet<u16>) -> Positions {
        let mut bits = Positions::NONE;
        for place in places {
            bits.insert((*place).into());
        }
        bits
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_passed_over(places in places(), after: Vec<u8>) {
            let mut bytes = Vec::new();
            write(&mut bytes, &places.iter().copied().collect::<Vec<_>>());
            bytes.extend(&after);
            let mut rest = bytes.as_slice();
            prop_assert!(read(&mut rest) == Some(bits(&places)));
            prop_assert_eq!(rest, &after);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(skip(&mut rest), Some(()));
            prop_assert_eq!(rest, &after);
        }

        #[test]
        fn sets_behave_like_sets(one in places(), other in places()) {
            type Operation = fn(&mut Positions, &Positions);
            let table: [(Operation, BTreeSet<u16>); 3] = [
                (Positions::intersect, &one & &other),
                (Positions::unite, &one | &other),
                (Positions::subtract, &one - &other),
            ];
            for (operation, expected) in table {
                let mut actual = bits(&one);
                operation(&mut actual, &bits(&other));
                prop_assert!(actual == bits(&expected));
                prop_assert_eq!(actual.len(), expected.len());
                prop_assert_eq!(actual.is_empty(), expected.is_empty());
                let listed: Vec<usize> = expected.iter().map(|place| (*place).into()).collect();
                prop_assert_eq!(actual.iter().collect::<Vec<_>>(), listed);
            }
        }

        #[test]
        fn numbers_survive(number: u64) {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            prop_assert_eq!(read_number(&mut bytes.as_slice()), Some(number));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = read(&mut bytes.as_slice());
            let _ = skip(&mut bytes.as_slice());
            let _ = Positions::from_bytes(&bytes);
        }
    }

    #[test]
    fn the_first_are_the_first() {
        assert_eq!(Positions::first(0).len(), 0);
        assert_eq!(Positions::first(3).iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(Positions::first(BLOCK).len(), BLOCK);
    }
}
