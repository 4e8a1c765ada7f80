//! Rows that stay on one line each: columns are narrowed or left out until they fit the terminal,
//! and those that somebody wants to copy from are kept whole.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands between two columns.
pub(crate) const GAP: &str = "  ";

/// Ends a text that was cut.
const CUT: char = '…';

/// What gives way where there is not enough room, in the order in which it does. Columns are named
/// by their index.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// As far as is needed, but not below this width.
    Narrow(usize, usize),
    Drop(usize),
}

/// How wide each column is; nothing for one that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    widths: Vec<Option<usize>>,
    /// Whether text that does not fit is cut, or moves what comes after it.
    cuts: bool,
}

impl Layout {
    /// Columns of these widths, or less where the terminal is not wide enough for them.
    pub(crate) fn new(widths: Vec<usize>, terminal: Option<usize>, steps: &[Step]) -> Self {
        let mut layout = Self {
            widths: widths.into_iter().map(Some).collect(),
            cuts: terminal.is_some(),
        };
        if let Some(columns) = terminal {
            layout.fit(columns, steps);
        }
        layout
    }

    fn fit(&mut self, columns: usize, steps: &[Step]) {
        for step in steps {
            let excess = self.total().saturating_sub(columns);
            if excess == 0 {
                return;
            }
            match *step {
                Step::Narrow(column, least) => {
                    if let Some(Some(width)) = self.widths.get_mut(column) {
                        *width = width.saturating_sub(excess).max(least.min(*width));
                    }
                }
                Step::Drop(column) => {
                    if let Some(width) = self.widths.get_mut(column) {
                        *width = None;
                    }
                }
            }
        }
    }

    fn total(&self) -> usize {
        let shown = self.widths.iter().flatten();
        let gaps = shown.clone().count().saturating_sub(1) * GAP.len();
        shown.sum::<usize>() + gaps
    }

    /// The cells that are shown, each as its text and the space behind it.
    pub(crate) fn cells<'a, T>(
        &'a self,
        row: impl IntoIterator<Item = (T, String)> + 'a,
    ) -> impl Iterator<Item = (T, String, usize)> + 'a {
        let widths = self.widths.iter().copied();
        row.into_iter()
            .zip(widths)
            .filter_map(|((of, text), width)| {
                let width = width?;
                let text = if self.cuts { cut(text, width) } else { text };
                let space = width.saturating_sub(text.width());
                Some((of, text, space))
            })
    }
}

fn cut(text: String, width: usize) -> String {
    if text.width() <= width {
        return text;
    }
    let mut room = width.saturating_sub(1);
    let mut kept = String::new();
    for character in text.chars() {
        let Some(rest) = room.checked_sub(character.width().unwrap_or(0)) else {
            break;
        };
        room = rest;
        kept.push(character);
    }
    kept.push(CUT);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step; 3] = [Step::Narrow(1, 4), Step::Drop(2), Step::Narrow(1, 2)];

    fn shown(columns: Option<usize>) -> String {
        let layout = Layout::new(vec![5, 8, 3], columns, &STEPS);
        let row = ["whole", "narrowed", "end"].map(|text| ((), text.to_owned()));
        let cells = layout.cells(row);
        let cells: Vec<_> = cells.map(|((), text, _)| text).collect();
        cells.join(GAP)
    }

    #[test]
    fn columns_give_way_in_order_and_no_further_than_needed() {
        assert_eq!(shown(None), "whole  narrowed  end");
        assert_eq!(shown(Some(20)), "whole  narrowed  end");
        assert_eq!(shown(Some(19)), "whole  narrow…  end");
        assert_eq!(shown(Some(16)), "whole  nar…  end");
        assert_eq!(shown(Some(15)), "whole  nar…");
        assert_eq!(shown(Some(10)), "whole  na…");
        assert_eq!(shown(Some(1)), "whole  n…");
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let layout = Layout::new(vec![3, 3], None, &STEPS);
        let row = [((), "longer".to_owned()), ((), "x".to_owned())];
        let cells: Vec<_> = layout.cells(row).collect();
        assert_eq!(
            cells,
            [((), "longer".to_owned(), 0), ((), "x".to_owned(), 2)]
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(cut("日本語".to_owned(), 5), "日本…");
        assert_eq!(cut("日本語".to_owned(), 4), "日…");
        assert_eq!(cut("日本語".to_owned(), 6), "日本語");
    }
}
