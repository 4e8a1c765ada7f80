//! Pieces of text with rules: titles, bodies, tags and search queries.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

const TITLE_CHARACTERS: usize = 200;
const TAG_CHARACTERS: usize = 40;
/// Large enough for any note a person writes; small enough that a list of them stays readable.
const BODY_CHARACTERS: usize = 100_000;

/// One line, not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Title(String);

/// The text of a note; may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Body(String);

/// Text to put at the end of a body; not empty.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Addition(Body);

/// A lower-case word of letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Tag(String);

/// Words to look for; at least one.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Query(Vec<String>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TextError {
    #[error("a title must not be empty")]
    TitleEmpty,
    #[error("a title must be a single line")]
    TitleLines,
    #[error("a title may have at most {TITLE_CHARACTERS} characters, this one has {0}")]
    TitleLong(usize),
    #[error("a body may have at most {BODY_CHARACTERS} characters, this one has {0}")]
    BodyLong(usize),
    #[error("there is nothing to append")]
    AdditionEmpty,
    #[error("a tag must not be empty")]
    TagEmpty,
    #[error("a tag may have at most {TAG_CHARACTERS} characters, this one has {0}")]
    TagLong(usize),
    #[error("a tag is one word of letters, digits, `-` and `_`; it cannot hold {0:?}")]
    TagCharacter(char),
    #[error("a query needs at least one letter or digit")]
    QueryEmpty,
}

// === impl Title ===

impl TryFrom<String> for Title {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        let title = text.trim();
        if title.is_empty() {
            return Err(TextError::TitleEmpty);
        }
        if title.contains(char::is_control) {
            return Err(TextError::TitleLines);
        }
        let length = title.chars().count();
        if length > TITLE_CHARACTERS {
            return Err(TextError::TitleLong(length));
        }
        Ok(Self(title.to_owned()))
    }
}

// === impl Body, Addition ===

impl Body {
    /// This body with `addition` below it, on a line of its own.
    pub(crate) fn with(&self, addition: &Addition) -> Result<Self, TextError> {
        let separator = if self.0.is_empty() || self.0.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        Self::try_from(format!("{}{separator}{}", self.0, addition.0))
    }

    pub(crate) fn first_line(&self) -> &str {
        self.0.lines().next().unwrap_or_default()
    }
}

impl TryFrom<String> for Body {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        match text.chars().count() {
            0..=BODY_CHARACTERS => Ok(Self(text)),
            length => Err(TextError::BodyLong(length)),
        }
    }
}

impl TryFrom<String> for Addition {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        if text.trim().is_empty() {
            return Err(TextError::AdditionEmpty);
        }
        Body::try_from(text).map(Self)
    }
}

// === impl Tag ===

impl TryFrom<String> for Tag {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        let tag = text.trim().trim_start_matches('#').to_lowercase();
        if tag.is_empty() {
            return Err(TextError::TagEmpty);
        }
        let foreign =
            |character: &char| !(character.is_alphanumeric() || "-_".contains(*character));
        if let Some(character) = tag.chars().find(foreign) {
            return Err(TextError::TagCharacter(character));
        }
        match tag.chars().count() {
            0..=TAG_CHARACTERS => Ok(Self(tag)),
            length => Err(TextError::TagLong(length)),
        }
    }
}

// === impl Query ===

impl Query {
    /// The query in the words of SQLite's full-text search: every word, the last one perhaps not
    /// typed to its end.
    pub(crate) fn as_match(&self) -> String {
        let words: Vec<_> = self.0.iter().map(|word| format!("\"{word}\"")).collect();
        format!("{}*", words.join(" "))
    }
}

impl TryFrom<String> for Query {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        // Splitting here as the index does keeps its query operators out of reach of callers.
        let words: Vec<_> = text
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        if words.is_empty() {
            return Err(TextError::QueryEmpty);
        }
        Ok(Self(words))
    }
}

// === what they have in common ===

macro_rules! reads_as_text {
    ($($name:ident),*) => {$(
        impl $name {
            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&self.0)
            }
        }
    )*};
}

macro_rules! schema {
    ($name:ident, $($schema:tt)*) => {
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($($schema)*)
            }
        }
    };
}

reads_as_text!(Title, Body, Tag);

schema!(Title, { "type": "string", "minLength": 1, "maxLength": TITLE_CHARACTERS });
schema!(Body, { "type": "string", "maxLength": BODY_CHARACTERS });
schema!(Addition, { "type": "string", "minLength": 1, "maxLength": BODY_CHARACTERS });
schema!(Tag, { "type": "string", "minLength": 1 });
schema!(Query, { "type": "string", "minLength": 1 });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_trimmed_line() {
        let title = |text: &str| Title::try_from(text.to_owned());
        assert_eq!(title("  Tea ").unwrap().as_str(), "Tea");
        assert_eq!(title(" \n "), Err(TextError::TitleEmpty));
        assert_eq!(title("a\nb"), Err(TextError::TitleLines));
        // Characters, not bytes.
        assert!(title(&"é".repeat(TITLE_CHARACTERS)).is_ok());
        assert_eq!(title(&"é".repeat(201)), Err(TextError::TitleLong(201)));
    }

    #[test]
    fn tags_are_lower_case_words() {
        let tag = |text: &str| Tag::try_from(text.to_owned());
        assert_eq!(tag(" #To-Do_2 ").unwrap().as_str(), "to-do_2");
        assert_eq!(tag("#"), Err(TextError::TagEmpty));
        assert_eq!(tag("two words"), Err(TextError::TagCharacter(' ')));
        assert_eq!(tag(&"x".repeat(41)), Err(TextError::TagLong(41)));
    }

    #[test]
    fn an_addition_gets_a_line_of_its_own() {
        let body = |text: &str| Body::try_from(text.to_owned()).unwrap();
        let addition = Addition::try_from("two".to_owned()).unwrap();
        assert_eq!(body("one").with(&addition), Ok(body("one\ntwo")));
        assert_eq!(body("one\n").with(&addition), Ok(body("one\ntwo")));
        assert_eq!(body("").with(&addition), Ok(body("two")));
        let full = body(&"x".repeat(BODY_CHARACTERS));
        assert_eq!(full.with(&addition), Err(TextError::BodyLong(100_004)));
    }

    #[test]
    fn queries_lose_the_operators_of_the_index() {
        let query = |text: &str| Query::try_from(text.to_owned());
        assert_eq!(
            query("don't \"NEAR(x* AND").unwrap().as_match(),
            r#""don" "t" "NEAR" "x" "AND"*"#
        );
        assert_eq!(query("?! *").unwrap_err(), TextError::QueryEmpty);
    }
}
