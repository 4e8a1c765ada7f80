//! Servers named by pattern, such as those the operator does not trust.

use crate::overrides::glob_matches;
use crate::{ServerName, ServerNameError};

/// Patterns of server names, where `*` stands for any characters and `?` for one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerGlobs(Vec<Box<str>>);

/// A pattern that no server name can match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no server can match {pattern:?}")]
pub struct ServerGlobError {
    pub pattern: String,
    pub source: ServerNameError,
}

impl ServerGlobs {
    pub fn compile<P: AsRef<str>>(
        patterns: impl IntoIterator<Item = P>,
    ) -> Result<Self, ServerGlobError> {
        let checked = patterns.into_iter().map(|pattern| {
            let pattern = pattern.as_ref();
            // With a letter in the place of each wildcard, a pattern some server could match is
            // itself a server name.
            let stand_in = pattern.replace(['*', '?'], "x").parse::<ServerName>();
            stand_in
                .map(|_| pattern.into())
                .map_err(|source| ServerGlobError {
                    pattern: pattern.to_owned(),
                    source,
                })
        });
        checked.collect::<Result<_, _>>().map(Self)
    }

    pub fn matches(&self, server: &ServerName) -> bool {
        self.0
            .iter()
            .any(|pattern| glob_matches(pattern, server.as_str()))
    }

    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_wildcards_match() {
        let globs = ServerGlobs::compile(["github", "acme-*"]).unwrap();
        for (server, expected) in [("github", true), ("github2", false), ("acme-crm", true)] {
            assert_eq!(
                globs.matches(&server.parse().unwrap()),
                expected,
                "{server}"
            );
        }
        assert!(!ServerGlobs::default().matches(&"github".parse().unwrap()));
    }

    #[test]
    fn a_pattern_that_can_match_nothing_is_an_error() {
        for pattern in ["", "a:b", "with space"] {
            assert_eq!(
                ServerGlobs::compile([pattern]).unwrap_err().pattern,
                pattern
            );
        }
    }
}
