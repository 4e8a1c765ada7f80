//! Text of upstreams on its way to a terminal: nothing in it may act on the terminal, hide itself
//! or turn the line around.

use std::fmt::Write;

/// One line: line breaks and tabs become spaces, everything that acts or hides becomes visible.
pub(crate) fn line(text: &str) -> String {
    escape(text, |character| {
        matches!(character, '\n' | '\r' | '\t').then_some(' ')
    })
}

/// Several lines: line breaks and tabs stay.
pub(crate) fn lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    escape(&text, |character| {
        matches!(character, '\n' | '\t').then_some(character)
    })
}

/// JSON that means the same and shows nothing to a terminal that acts or hides. Outside of
/// strings there is nothing to escape, and inside of them an escape is the character.
pub(crate) fn json(text: &str) -> String {
    data(text, |safe, character| {
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            // Writing to a String cannot fail.
            let _ = write!(safe, "\\u{unit:04x}");
        }
    })
}

/// The same for our YAML, which quotes such strings as JSON does but has no surrogates.
pub(crate) fn yaml(text: &str) -> String {
    data(text, |safe, character| {
        let _ = write!(safe, "\\U{:08x}", u32::from(character));
    })
}

fn data(text: &str, write_escape: impl Fn(&mut String, char)) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        let acts = character.is_control() && character != '\n';
        if acts || is_invisible(character) {
            write_escape(&mut safe, character);
        } else {
            safe.push(character);
        }
    }
    safe
}

fn escape(text: &str, keep: impl Fn(char) -> Option<char>) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if let Some(kept) = keep(character) {
            safe.push(kept);
        } else if character.is_control() || is_invisible(character) {
            // Writing to a String cannot fail.
            let _ = write!(safe, "{}", character.escape_unicode());
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Characters that show nothing or change the direction of what follows.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_shown_instead() {
        assert_eq!(line("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(line("x\u{202e}y\u{200b}z"), "x\\u{202e}y\\u{200b}z");
        assert_eq!(line("one\r\ntwo\tthree"), "one  two three");
        assert_eq!(lines("one\r\ntwo\tthree\u{7}"), "one\ntwo\tthree\\u{7}");
        assert_eq!(line("Grüße, 世界 🎉"), "Grüße, 世界 🎉");
    }

    proptest! {
        #[test]
        fn json_means_the_same_and_hides_nothing(text in any::<String>()) {
            let hostile = format!("{text}\u{202e}\u{9b}\u{e0041}");
            let value = serde_json::json!({ &hostile: [&hostile] });
            let safe = json(&format!("{value:#}"));
            prop_assert!(!safe.chars().any(|it| it != '\n' && (it.is_control() || is_invisible(it))));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        }

        #[test]
        fn nothing_that_acts_is_left(text in any::<String>()) {
            let safe = line(&text);
            prop_assert!(!safe.chars().any(|it| it.is_control() || is_invisible(it)));
        }
    }
}
