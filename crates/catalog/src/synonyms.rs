//! Other words for a word of the query, from a list that is compiled in.

use std::sync::LazyLock;

use crate::hash::HashMap;
use crate::text;
use crate::word_list;

/// What a synonym counts for, next to the word that was asked for.
pub(crate) const SYNONYM_WEIGHT: f32 = 0.3;

static SYNONYMS: LazyLock<HashMap<String, Vec<String>>> =
    LazyLock::new(|| parse(include_str!("../data/synonyms.txt")));

/// The stems that may stand for `stem`, without itself.
pub(crate) fn of(stem: &str) -> &'static [String] {
    SYNONYMS.get(stem).map_or(&[], Vec::as_slice)
}

fn parse(list: &str) -> HashMap<String, Vec<String>> {
    let mut synonyms: HashMap<String, Vec<String>> = HashMap::default();
    for group in word_list::lines(list) {
        let stems: Vec<String> = group.map(text::stem).collect();
        for stem in &stems {
            let others = synonyms.entry(stem.clone()).or_default();
            for other in &stems {
                if other != stem && !others.contains(other) {
                    others.push(other.clone());
                }
            }
        }
    }
    synonyms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_group_stand_for_each_other() {
        assert!(of("folder").contains(&text::stem("directory")));
        assert!(of(&text::stem("directory")).contains(&"folder".to_owned()));
        assert!(of("xylophone").is_empty());
    }

    #[test]
    fn nothing_is_its_own_synonym_or_listed_twice() {
        for (stem, others) in SYNONYMS.iter() {
            assert!(!others.contains(stem), "{stem}");
            let mut unique = others.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), others.len(), "{stem}");
        }
    }

    #[test]
    fn every_listed_word_is_one_word_of_the_tokenizer() {
        for word in SYNONYMS.keys() {
            let mut words = Vec::new();
            text::for_each_word(word, |word, _| words.push(word.to_owned()));
            assert_eq!(words, [word.as_str()]);
        }
    }
}
