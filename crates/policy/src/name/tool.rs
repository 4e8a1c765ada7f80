//! The name an upstream gives to one of its tools.

use std::str::FromStr;
use std::sync::Arc;

use super::text_type;
use crate::is_invisible;

/// The name of a tool within its upstream: 1 to 128 characters, all of them visible.
///
/// Upstreams use dots, slashes, colons and spaces; refusing those would hide working tools. A
/// character that is not shown has no honest use: two names that look the same would be two tools.
#[derive(Clone)]
pub struct ToolName(Arc<str>);

/// Why a text is not the name of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolNameError {
    #[error("tool name is empty; give the tool's name as its server lists it")]
    Empty,
    #[error(
        "tool name has {length} characters, more than the {max} allowed; give the tool's name as \
         its server lists it",
        max = ToolName::MAX_LENGTH
    )]
    TooLong { length: usize },
    #[error(
        "tool name {name:?} contains U+{:04X}, a character that is not shown; a tool of such a name \
         is not offered and cannot be called",
        u32::from(*character)
    )]
    Invisible {
        /// With what is not shown written out.
        name: String,
        character: char,
    },
}

text_type!(ToolName);

impl ToolName {
    pub const MAX_LENGTH: usize = 128;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ToolName {
    type Err = ToolNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(ToolNameError::Empty);
        }
        let length = text.chars().count();
        if length > Self::MAX_LENGTH {
            return Err(ToolNameError::TooLong { length });
        }
        if let Some(character) = text.chars().find(|character| is_invisible(*character)) {
            return Err(ToolNameError::Invisible {
                name: written_out(text),
                character,
            });
        }
        Ok(Self(text.into()))
    }
}

fn written_out(text: &str) -> String {
    text.chars()
        .map(|character| {
            if is_invisible(character) {
                format!("<U+{:04X}>", u32::from(character))
            } else {
                character.to_string()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_of_real_upstreams_are_accepted() {
        for name in [
            "get",
            "issues/list",
            "ns:get",
            "Read File",
            "日本",
            &"é".repeat(128),
        ] {
            assert_eq!(name.parse::<ToolName>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn each_fault_has_its_own_error() {
        let fault = |text: &str| text.parse::<ToolName>().unwrap_err();
        assert_eq!(fault(""), ToolNameError::Empty);
        assert_eq!(
            fault(&"é".repeat(129)),
            ToolNameError::TooLong { length: 129 }
        );
        for character in [
            '\u{1b}',
            '\u{7f}',
            '\u{ad}',
            '\u{200b}',
            '\u{200d}',
            '\u{202e}',
            '\u{2066}',
            '\u{3164}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            let fault = fault(&format!("se{character}arch"));
            assert!(matches!(fault, ToolNameError::Invisible { .. }));
            let message = fault.to_string();
            assert!(!message.contains(character), "errors are safe to print");
            let code = format!("se<U+{:04X}>arch", u32::from(character));
            assert!(message.contains(&code), "{message}");
        }
    }
}
