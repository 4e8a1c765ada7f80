//! Text that must not reach a log, a terminal or an answer by accident.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::template::Template;

/// What is shown in place of a secret.
pub(crate) const MASK: &str = "***";

/// A secret text: wiped from memory when dropped, and `***` to every formatter.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// The text itself. Every call is a place where the secret can leak.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

// Needed to notice that a config changed. Whoever checks a key that a client sent has to compare
// in constant time instead.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

/// A value as it may be shown: a reference gives nothing away.
pub(crate) fn mask_unless_reference(value: &str) -> &str {
    let is_reference = value
        .parse::<Template>()
        .is_ok_and(|template| template.is_reference());
    if is_reference || value.is_empty() {
        value
    } else {
        MASK
    }
}
