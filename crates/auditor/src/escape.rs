//! Making text from upstreams safe to look at.

use std::borrow::Cow;
use std::fmt::Write as _;

pub(crate) use policy::is_invisible;

/// The text with every invisible character written as `\u{200b}`, on one line.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_invisible(character) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// As [`visible`], cut to about `limit` characters.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut cut: String = text.chars().take(limit).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    visible(&cut).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(
            visible("a\u{200b}b\u{202e}\u{1b}[2J\n"),
            "a\\u{200b}b\\u{202e}\\u{1b}[2J\\u{a}"
        );
        assert!(matches!(visible("plain, naïve, 日本"), Cow::Borrowed(_)));
    }

    #[test]
    fn an_excerpt_says_that_it_is_one() {
        assert_eq!(excerpt("abcdef", 3), "abc…");
        assert_eq!(excerpt("abc", 3), "abc");
    }
}
