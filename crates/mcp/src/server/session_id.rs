//! The name of a session.

use std::fmt::{self, Write};
use std::sync::Arc;

/// Names a session; unguessable, because a client that knows it may use the session.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(Arc<str>);

/// The operating system gave no randomness; without it what must not be guessed could be.
#[derive(Debug, thiserror::Error)]
#[error("no randomness for a session id or a request state")]
pub struct NoRandomness(#[source] getrandom::Error);

impl SessionId {
    pub(crate) fn random() -> Result<Self, NoRandomness> {
        unguessable().map(|text| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// 128 random bits as hexadecimal digits.
pub(super) fn unguessable() -> Result<String, NoRandomness> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(NoRandomness)?;
    let mut text = String::with_capacity(32);
    for byte in bits {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// So that a table of sessions can be asked with the text of a header.
impl std::borrow::Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Logs are read by more people than may speak in the session.
        let head = self.0.get(..8).unwrap_or_default();
        write!(formatter, "SessionId({head}…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_128_bits_of_visible_ascii_and_differ() {
        let one = SessionId::random().unwrap();
        let two = SessionId::random().unwrap();
        assert_ne!(one, two);
        assert_eq!(one.as_str().len(), 32);
        assert!(one.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn debug_output_does_not_give_the_session_away() {
        let id = SessionId::random().unwrap();
        assert!(!format!("{id:?}").contains(id.as_str()));
    }
}
