//! The name an upstream gives to one of its tools.

use std::str::FromStr;
use std::sync::Arc;

use super::text_type;

/// The name of a tool within its upstream: 1 to 128 characters without control characters.
///
/// Upstreams use dots, slashes, colons and spaces; refusing those would hide working tools.
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
    #[error("tool name {name:?} contains a control character; remove it")]
    Control { name: String },
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
        if text.chars().any(char::is_control) {
            return Err(ToolNameError::Control {
                name: text.to_owned(),
            });
        }
        Ok(Self(text.into()))
    }
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
        assert_eq!(
            fault("a\u{1b}[31m"),
            ToolNameError::Control {
                name: "a\u{1b}[31m".into()
            }
        );
        assert!(
            !fault("a\u{1b}").to_string().contains('\u{1b}'),
            "errors are safe to print"
        );
    }
}
