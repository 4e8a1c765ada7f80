//! The skeleton of a name: what is left when look-alike characters are written as what they
//! look like.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::escape::is_invisible;

const CONFUSABLES: &str = include_str!("../../data/confusables.txt");

/// A name as it is typed: without case and separators, which people do not tell apart.
pub(crate) fn plain(name: &str) -> String {
    let kept = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | '.' | ' ' | '/'));
    kept.flat_map(char::to_lowercase).collect()
}

/// A name as it is seen.
pub(crate) fn skeleton(name: &str) -> String {
    let mut seen = String::with_capacity(name.len());
    for character in name.chars().filter(|c| !is_invisible(*c)) {
        match latin(character) {
            Some(letter) => seen.push(letter),
            None => seen.extend(character.to_lowercase()),
        }
    }
    let seen = plain(&seen).replace('0', "o").replace(['1', '|'], "l");
    seen.replace("rn", "m").replace("vv", "w")
}

/// The Latin letter that a character of another alphabet is taken for.
pub(crate) fn latin(character: char) -> Option<char> {
    static TABLE: OnceLock<HashMap<char, char>> = OnceLock::new();
    if character.is_ascii() {
        return None;
    }
    let code = u32::from(character);
    match code {
        // Fullwidth forms stand in the order of ASCII.
        0xff01..=0xff5e => char::from_u32(code - 0xff01 + 0x21).map(|c| c.to_ascii_lowercase()),
        // Mathematical letters stand in alphabets of 26 capitals and 26 small letters.
        0x1d400..=0x1d6a3 => {
            let letter = u8::try_from((code - 0x1d400) % 26).ok()?;
            Some(char::from(b'a' + letter))
        }
        _ => TABLE.get_or_init(table).get(&character).copied(),
    }
}

fn table() -> HashMap<char, char> {
    let lines = CONFUSABLES.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| {
        let (letter, others) = line.split_once(' ')?;
        let letter = letter.chars().next()?;
        Some(others.chars().map(move |other| (other, letter)))
    });
    pairs
        .flatten()
        .filter(|(other, _)| !other.is_ascii())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_have_the_same_skeleton() {
        for name in [
            "sеarch",
            "ѕearch",
            "ｓｅａｒｃｈ",
            "se\u{200b}arch",
            "𝐬𝐞𝐚𝐫𝐜𝐡",
            "SEARCH",
        ] {
            assert_eq!(skeleton(name), skeleton("search"), "{name}");
            assert!(name == "SEARCH" || plain(name) != "search");
        }
        assert_eq!(skeleton("list_i1"), skeleton("list-il"));
    }

    #[test]
    fn different_names_have_different_skeletons() {
        assert_ne!(skeleton("search"), skeleton("serch"));
        assert_ne!(skeleton("日本"), skeleton("日木"));
    }

    #[test]
    fn every_line_of_the_table_maps_letters_of_other_alphabets() {
        assert!(table().len() > 100);
        assert!(table().values().all(char::is_ascii_lowercase));
    }
}
