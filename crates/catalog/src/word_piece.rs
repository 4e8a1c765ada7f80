//! Words as rows of the token table: the longest known pieces, from left to right.

use std::sync::LazyLock;

use crate::hash::HashMap;

/// Pieces that begin a word, and those that go on with one, each with its row.
struct Pieces {
    first: HashMap<&'static str, u32>,
    next: HashMap<&'static str, u32>,
    /// The length of the longest of all, to not try longer ones.
    longest: usize,
}

static PIECES: LazyLock<Pieces> =
    LazyLock::new(|| Pieces::parse(include_str!("../data/tokens.txt")));

impl Pieces {
    /// One piece a line, in the order of the rows; `##` marks those that go on with a word.
    fn parse(list: &'static str) -> Self {
        let mut pieces = Self {
            first: HashMap::default(),
            next: HashMap::default(),
            longest: 0,
        };
        for (row, line) in (0..).zip(list.lines()) {
            let (known, piece) = match line.strip_prefix("##") {
                Some(piece) => (&mut pieces.next, piece),
                None => (&mut pieces.first, line),
            };
            known.insert(piece, row);
            pieces.longest = pieces.longest.max(piece.len());
        }
        pieces
    }

    fn longest_at(&self, word: &str, start: usize) -> Option<(u32, usize)> {
        let known = if start == 0 { &self.first } else { &self.next };
        let furthest = word.len().min(start + self.longest);
        (start + 1..=furthest).rev().find_map(|end| {
            let row = known.get(word.get(start..end)?)?;
            Some((*row, end))
        })
    }
}

/// The rows of a lower-case word; none if any part of it is in no piece, because what the other
/// parts say alone has nothing to do with the word. Numbers have none either: they stand near each
/// other and near nothing that a tool is for.
pub(crate) fn rows(word: &str) -> Vec<u32> {
    if word.starts_with(|first: char| first.is_ascii_digit()) {
        return Vec::new();
    }
    let mut rows = Vec::new();
    let mut start = 0;
    while start < word.len() {
        let Some((row, end)) = PIECES.longest_at(word, start) else {
            return Vec::new();
        };
        rows.push(row);
        start = end;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(word: &str) -> Vec<&'static str> {
        let lines: Vec<_> = include_str!("../data/tokens.txt").lines().collect();
        let rows = rows(word).into_iter();
        rows.map(|row| lines[row as usize]).collect()
    }

    #[test]
    fn the_longest_piece_wins() {
        assert_eq!(pieces("calendar"), ["calendar"]);
        assert_eq!(pieces("geocode"), ["geo", "##code"]);
    }

    #[test]
    fn words_with_unknown_parts_have_no_rows() {
        for word in ["", "搜索", "straße", "café", "2024", "31m"] {
            assert_eq!(rows(word), [0; 0], "{word}");
        }
    }

    #[test]
    fn every_piece_has_a_row() {
        let lines = include_str!("../data/tokens.txt").lines().count();
        assert_eq!(PIECES.first.len() + PIECES.next.len(), lines);
        assert_eq!(crate::token_table::rows(), lines);
    }
}
