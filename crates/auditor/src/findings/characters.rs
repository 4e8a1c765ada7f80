//! Characters that a person reading a definition does not see, but a model does.

use crate::escape::excerpt;

/// A run of blanks this long pushes what follows out of sight.
const PADDING: usize = 300;

/// What is hidden in a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// The first hidden character, and how many there are.
    first: Option<char>,
    count: usize,
    /// What tag characters spell.
    spelled: String,
    padded: bool,
}

impl Hidden {
    pub(crate) fn in_text(text: &str) -> Option<Self> {
        let mut hidden = Self::default();
        if text.is_ascii() {
            hidden.note_ascii(text);
        } else {
            hidden.note_all(text);
        }
        hidden.padded = has_padding(text);
        (hidden.count > 0 || hidden.padded).then_some(hidden)
    }

    /// What is hidden, as the end of the sentence "there is …".
    pub(crate) fn describe(&self) -> String {
        let Some(first) = self.first else {
            return format!("a gap of more than {PADDING} blanks that pushes text out of sight");
        };
        let more = match self.count {
            1 => String::new(),
            count => format!(" and {} more like it", count - 1),
        };
        let spelled = if self.spelled.is_empty() {
            String::new()
        } else {
            format!(" spelling {:?}", excerpt(&self.spelled, 60))
        };
        format!(
            "U+{:04X} ({}){more}{spelled}",
            u32::from(first),
            kind(first)
        )
    }

    fn note_ascii(&mut self, text: &str) {
        let control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\r' | b'\t');
        for byte in text.bytes().filter(control) {
            self.note(char::from(byte));
        }
    }

    fn note_all(&mut self, text: &str) {
        let right_to_left = text.contains(is_right_to_left);
        let mut before = '\0';
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let next = characters.peek().copied().unwrap_or('\0');
            // The flags of England, Scotland and Wales are a flag and tags.
            if character == '\u{1f3f4}' && is_tag(next) {
                while characters.next_if(|c| is_tag(*c)).is_some() {}
            } else if is_hidden(character, before, next, right_to_left) {
                self.note(character);
            }
            before = character;
        }
    }

    fn note(&mut self, character: char) {
        self.first.get_or_insert(character);
        self.count += 1;
        if is_tag(character) {
            let letter = u32::from(character) - 0xe0000;
            self.spelled
                .extend(char::from_u32(letter).filter(|c| !c.is_control()));
        }
    }
}

/// The text as a model may understand it: tag characters spelled, what is invisible left out,
/// look-alike letters read as what they look like.
pub(crate) fn unmask(text: &str) -> String {
    let unmasked = text.chars().filter_map(|character| {
        if is_tag(character) {
            char::from_u32(u32::from(character) - 0xe0000)
        } else if matches!(character, '\n' | '\t' | '\r') {
            Some(character)
        } else if crate::escape::is_invisible(character) {
            None
        } else {
            Some(super::lookalike::latin(character).unwrap_or(character))
        }
    });
    unmasked.collect()
}

fn is_hidden(character: char, before: char, next: char, right_to_left: bool) -> bool {
    match character {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => false,
        // Joiners belong to emoji and to scripts that join; between Latin letters they hide.
        '\u{200c}' | '\u{200d}' => before.is_ascii() && next.is_ascii(),
        // Marks of direction are right where text runs both ways.
        '\u{200e}' | '\u{200f}' | '\u{61c}' => !right_to_left,
        // One selector follows an emoji; more spell something.
        '\u{fe00}'..='\u{fe0e}' => matches!(next, '\u{fe00}'..='\u{fe0f}'),
        '\u{180b}'..='\u{180d}' | '\u{17b4}' | '\u{17b5}' => before.is_ascii(),
        _ => crate::escape::is_invisible(character),
    }
}

fn is_tag(character: char) -> bool {
    matches!(character, '\u{e0020}'..='\u{e007f}')
}

fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        && character != '\u{61c}'
}

fn has_padding(text: &str) -> bool {
    if text.len() < PADDING {
        return false;
    }
    let mut run = 0;
    for character in text.trim_end().chars() {
        run = if character.is_whitespace() {
            run + 1
        } else {
            0
        };
        if run >= PADDING {
            return true;
        }
    }
    false
}

fn kind(character: char) -> &'static str {
    match character {
        '\u{e0000}'..='\u{e007f}' => "tag character",
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => "changes the direction of text",
        '\u{200e}' | '\u{200f}' | '\u{61c}' => "mark of direction",
        '\u{1b}' => "escape, as in terminal sequences",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => "variation selector",
        _ if character.is_control() => "control character",
        _ => "zero-width or blank character",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(text: &str) -> bool {
        Hidden::in_text(text).is_some()
    }

    #[test]
    fn characters_nobody_sees_are_found() {
        for text in [
            "a\u{200b}b",
            "a\u{2060}",
            "\u{feff}a",
            "a\u{202e}b",
            "a\u{2066}b",
            "a\u{1b}[2J",
            "a\u{0}",
            "a\u{e0041}",
            "a\u{ad}b",
            "a\u{3164}",
            "a\u{fe01}\u{fe02}",
            "a\u{e0101}",
            "a\u{200d}b",
            "a\u{200e}b",
            "a\u{9b}31m",
        ] {
            assert!(hides(text), "{text:?}");
        }
    }

    #[test]
    fn ordinary_text_in_any_script_hides_nothing() {
        for text in [
            "line\nline\ttab\r\n",
            "naïve — “quoted” … €",
            "日本語の説明",
            "👩\u{200d}💻 ✔\u{fe0f} ⚠️",
            "می\u{200c}خواهم",
            "שלום\u{200f}!",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "a\u{a0}b",
            "क\u{94d}\u{200d}ष",
        ] {
            assert!(!hides(text), "{text:?}");
        }
    }

    #[test]
    fn what_tags_spell_is_told() {
        let text: String = "hi"
            .chars()
            .filter_map(|c| char::from_u32(u32::from(c) + 0xe0000))
            .collect();
        let told = Hidden::in_text(&text).unwrap().describe();
        assert_eq!(
            told,
            "U+E0068 (tag character) and 1 more like it spelling \"hi\""
        );
        assert_eq!(unmask(&text), "hi");
    }

    #[test]
    fn text_pushed_out_of_sight_is_found() {
        assert!(hides(&format!("Adds.{}Also send", " ".repeat(400))));
        assert!(!hides(&format!("Adds.{}", "\n".repeat(400))));
    }

    #[test]
    fn disguises_come_off() {
        assert_eq!(unmask("ign\u{200b}оre"), "ignore");
    }
}
