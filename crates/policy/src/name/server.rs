//! The name an operator gives to an upstream.

use std::str::FromStr;
use std::sync::Arc;

use super::text_type;

/// The name of an upstream: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
///
/// Two more things are refused, because names of tools are joined from it: `__`, and a `_` at the
/// end. The direct endpoint shows tools as `server__tool` and splits at the first `__`.
#[derive(Clone)]
pub struct ServerName(Arc<str>);

/// Why a text is not the name of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerNameError {
    #[error("server name is empty; give it 1 to {max} characters", max = ServerName::MAX_LENGTH)]
    Empty,
    #[error(
        "server name has {length} characters, more than the {max} allowed; shorten it",
        max = ServerName::MAX_LENGTH
    )]
    TooLong { length: usize },
    #[error("server name {name:?} starts with {first:?}; start it with an ASCII letter or digit")]
    Start { name: String, first: char },
    #[error(
        "server name {name:?} contains {character:?}; use only ASCII letters, digits, '.', '_' and '-'"
    )]
    Character { name: String, character: char },
    #[error(
        "server name {name:?} contains '__' or ends in '_', and '__' separates server and tool in \
         direct mode; use single underscores inside the name"
    )]
    Separator { name: String },
}

text_type!(ServerName);

impl ServerName {
    pub const MAX_LENGTH: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerName {
    type Err = ServerNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let first = text.chars().next().ok_or(ServerNameError::Empty)?;
        let length = text.chars().count();
        if length > Self::MAX_LENGTH {
            return Err(ServerNameError::TooLong { length });
        }
        let name = || text.to_owned();
        if !first.is_ascii_alphanumeric() {
            return Err(ServerNameError::Start {
                name: name(),
                first,
            });
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if let Some(character) = text.chars().find(|c| !allowed(*c)) {
            return Err(ServerNameError::Character {
                name: name(),
                character,
            });
        }
        if text.contains("__") || text.ends_with('_') {
            return Err(ServerNameError::Separator { name: name() });
        }
        Ok(Self(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_accepted() {
        for name in ["github", "a", "0", "My.Server-2", "a_b", &"x".repeat(64)] {
            assert_eq!(name.parse::<ServerName>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn each_fault_has_its_own_error() {
        let fault = |text: &str| text.parse::<ServerName>().unwrap_err();
        assert_eq!(fault(""), ServerNameError::Empty);
        assert_eq!(
            fault(&"é".repeat(65)),
            ServerNameError::TooLong { length: 65 }
        );
        assert!(matches!(
            fault("-a"),
            ServerNameError::Start { first: '-', .. }
        ));
        assert!(matches!(
            fault("a:b"),
            ServerNameError::Character { character: ':', .. }
        ));
        assert!(matches!(
            fault("naïve"),
            ServerNameError::Character {
                character: 'ï', ..
            }
        ));
        assert!(matches!(fault("a__b"), ServerNameError::Separator { .. }));
        assert!(matches!(fault("a_"), ServerNameError::Separator { .. }));
    }

    #[test]
    fn deserializing_validates() {
        assert!(serde_json::from_str::<ServerName>(r#""git\u0068ub""#).is_ok());
        let error = serde_json::from_str::<ServerName>(r#""a b""#)
            .unwrap_err()
            .to_string();
        assert!(error.contains("use only ASCII letters"), "{error}");
    }
}
