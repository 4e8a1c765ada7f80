//! Hashing for tables of our own words.
//!
//! Every word of every description is looked up, in tables whose keys nobody else chooses: there
//! is nothing to defend against, so a short hash serves better than the standard one.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type WordMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;
pub(crate) type WordSet<K> = HashSet<K, BuildHasherDefault<WordHasher>>;

/// FNV-1a, which for words of a few letters is little more than a multiplication each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordHasher(u64);

impl Default for WordHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_again() {
        let set: WordSet<&str> = ["get", "list", "delete"].into_iter().collect();
        assert!(set.contains("list") && !set.contains("lists"));
    }
}
