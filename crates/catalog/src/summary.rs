//! Descriptions cut to a length without cutting a thought.

/// Shortens `description` to at most `max_characters`: whole sentences if at least one fits, else
/// whole words and `…`. Runs of white space become one space.
pub fn summary(description: &str, max_characters: usize) -> String {
    let mut text = String::new();
    let mut characters = 0;
    // Where the text may be cut, in bytes: after the last sentence and after the last word that
    // leaves room for the ellipsis.
    let (mut sentence_end, mut word_end) = (0, 0);
    for paragraph in description.split("\n\n") {
        for (word, next) in with_next(paragraph.split_whitespace()) {
            let length = word.chars().count() + usize::from(!text.is_empty());
            if characters + length > max_characters {
                return cut(text, sentence_end, word_end, max_characters);
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
            characters += length;
            if ends_sentence(word, next) {
                sentence_end = text.len();
            }
            if characters < max_characters {
                word_end = text.len();
            }
        }
    }
    text
}

fn cut(mut text: String, sentence_end: usize, word_end: usize, max_characters: usize) -> String {
    if sentence_end > 0 {
        text.truncate(sentence_end);
    } else {
        text.truncate(word_end);
        if max_characters > 0 {
            text.push('…');
        }
    }
    text
}

fn with_next<'a>(
    words: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
    let mut words = words.peekable();
    std::iter::from_fn(move || Some((words.next()?, words.peek().copied())))
}

/// Whether a sentence ends with `word`. The last word of a paragraph always ends one.
fn ends_sentence(word: &str, next: Option<&str>) -> bool {
    let Some(next) = next else {
        return true;
    };
    let bare = word.trim_end_matches([')', '"', '\'', '”', '`', '*']);
    let Some(stem) = bare.strip_suffix(['.', '!', '?', '。', '！', '？']) else {
        return false;
    };
    // "e.g." and "i.e." have a full stop inside, and no sentence goes on in lower case.
    !stem.contains('.') && !next.starts_with(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_descriptions_stay_whole() {
        assert_eq!(
            summary("Lists  notes.\n  Newest first.", 80),
            "Lists notes. Newest first."
        );
        assert_eq!(summary("", 80), "");
    }

    #[test]
    fn long_ones_end_with_a_sentence() {
        let text = "Lists notes. Newest first! Use the cursor to read on.";
        assert_eq!(summary(text, 40), "Lists notes. Newest first!");
        assert_eq!(summary(text, 20), "Lists notes.");
    }

    #[test]
    fn a_paragraph_ends_a_sentence() {
        assert_eq!(
            summary("Lists notes\n\nArgs:\n  cursor: where to go on", 30),
            "Lists notes"
        );
    }

    #[test]
    fn abbreviations_do_not_end_a_sentence() {
        let text = "Reads a page, e.g. Wikipedia or approx. ten others of them. More.";
        assert_eq!(
            summary(text, 60),
            "Reads a page, e.g. Wikipedia or approx. ten others of them."
        );
        assert_eq!(
            summary(text, 45),
            "Reads a page, e.g. Wikipedia or approx. ten…"
        );
    }

    #[test]
    fn without_a_sentence_words_stay_whole() {
        assert_eq!(summary("alpha beta gamma", 12), "alpha beta…");
        assert_eq!(summary("alphabetagamma", 5), "…");
        assert_eq!(summary("alpha", 0), "");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn never_longer_than_asked(text in "([a-z]{1,9}[.!]?[ \n]{1,2}|\\PC){0,20}", limit in 0..60usize) {
            prop_assert!(summary(&text, limit).chars().count() <= limit);
        }
    }
}
