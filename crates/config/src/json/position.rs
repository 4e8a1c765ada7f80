//! Lines and columns, as editors count them.

use std::fmt;

/// A place in a text. Both count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    /// The position of the byte at `offset`; an offset inside a character counts as its start.
    pub(crate) fn of_offset(text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// The position serde_json reports: it counts bytes, and 0 is the end of the line before.
    pub(crate) fn of_error(text: &str, error: &serde_json::Error) -> Self {
        let line_start: usize = text
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum();
        Self::of_offset(text, line_start + error.column().saturating_sub(1))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "{\n  \"ä\": x}";
        let offset = text.find('x').unwrap();
        assert_eq!(
            Position::of_offset(text, offset),
            Position { line: 2, column: 8 }
        );
        let error = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
        assert_eq!(
            Position::of_error(text, &error),
            Position { line: 2, column: 8 }
        );
    }

    #[test]
    fn any_offset_has_a_position() {
        let text = "é\n";
        let all: Vec<Position> = (0..6)
            .map(|offset| Position::of_offset(text, offset))
            .collect();
        assert!(all.is_sorted());
        assert_eq!(all[1], Position::START);
        assert_eq!(all[5], Position { line: 2, column: 1 });
    }
}
