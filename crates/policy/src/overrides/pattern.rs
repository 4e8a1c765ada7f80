//! One pattern of `tool_overrides`: a tool by name, or a glob with `*` and `?`.

use std::str::FromStr;

use crate::{ServerName, ServerNameError, ToolId, ToolIdError};

/// A pattern that names one tool or, with wildcards, many.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    Exact(ToolId),
    Glob(Glob),
}

/// `server:tool` where `*` stands for any characters and `?` for one.
///
/// The halves are matched apart, so a wildcard never reaches across the colon and
/// `*:purge_*` means tools whose own name starts with `purge_`.
#[derive(Debug, Clone)]
pub(super) struct Glob {
    text: Box<str>,
    colon: usize,
}

/// Why a text is not a pattern for tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("it does not say which server; write it as server:tool, or *:tool for every server")]
    NoServer,
    #[error("it names no tool; write server:* for every tool of a server")]
    NoTool,
    #[error("no server can match it")]
    Server(#[source] ServerNameError),
    #[error("no tool can match it")]
    Exact(#[source] ToolIdError),
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (server, tool) = text.split_once(':').ok_or(PatternError::NoServer)?;
        if server.is_empty() {
            return Err(PatternError::NoServer);
        }
        if tool.is_empty() {
            return Err(PatternError::NoTool);
        }
        if !text.contains(['*', '?']) {
            return text.parse().map(Self::Exact).map_err(PatternError::Exact);
        }
        // With a letter in the place of each wildcard, a pattern some server could match is itself
        // a server name; anything else is a typing mistake that would silently never match.
        server
            .replace(['*', '?'], "x")
            .parse::<ServerName>()
            .map_err(PatternError::Server)?;
        Ok(Self::Glob(Glob {
            text: text.into(),
            colon: server.len(),
        }))
    }
}

impl Glob {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn literal_characters(&self) -> usize {
        self.text
            .chars()
            .filter(|character| !matches!(character, '*' | '?'))
            .count()
    }

    pub(super) fn matches(&self, tool: &ToolId) -> bool {
        glob_matches(&self.text[..self.colon], tool.server().as_str())
            && glob_matches(&self.text[self.colon + 1..], tool.tool().as_str())
    }
}

/// Matches without recursion. Only the last `*` is ever reconsidered: whatever an earlier one could
/// give up, the last one can take instead.
pub(crate) fn glob_matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    let mut after_star = None;
    loop {
        let text_here = text.clone();
        match (pattern.next(), text.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                text = text_here;
                after_star = Some((pattern.clone(), text.clone()));
            }
            (Some('?'), Some(_)) => {}
            (Some(expected), Some(found)) if expected == found => {}
            _ => {
                let Some((rest, taken)) = &mut after_star else {
                    return false;
                };
                if taken.next().is_none() {
                    return false;
                }
                (pattern, text) = (rest.clone(), taken.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition of a glob, written for obviousness.
    fn glob_matches_by_definition(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => {
                (0..=text.len()).any(|taken| glob_matches_by_definition(rest, &text[taken..]))
            }
            (['?', rest @ ..], [_, text @ ..]) => glob_matches_by_definition(rest, text),
            ([first, rest @ ..], [found, text @ ..]) if first == found => {
                glob_matches_by_definition(rest, text)
            }
            _ => false,
        }
    }

    #[test]
    fn wildcards_stay_in_their_half() {
        let matches = |pattern: &str, tool: &str| match pattern.parse().unwrap() {
            Pattern::Glob(glob) => glob.matches(&tool.parse().unwrap()),
            Pattern::Exact(_) => panic!("{pattern} has wildcards"),
        };
        assert!(matches("github:delete_*", "github:delete_repo"));
        assert!(matches("*:purge_*", "notes:purge_all"));
        assert!(matches("n?tes:*", "notes:ns:get"));
        assert!(!matches("*:purge_*", "notes:x:purge_all"));
        assert!(!matches("github:delete_*", "github2:delete_repo"));
        assert!(!matches("*b:c", "a:b:c"));
    }

    #[test]
    fn patterns_that_can_match_nothing_are_errors() {
        let fault = |pattern: &str| pattern.parse::<Pattern>().unwrap_err();
        assert_eq!(fault("delete_*"), PatternError::NoServer);
        assert_eq!(fault(":delete_*"), PatternError::NoServer);
        assert_eq!(fault("github:"), PatternError::NoTool);
        assert!(matches!(fault("git hub:*"), PatternError::Server(_)));
        assert!(matches!(fault("git/hub:get"), PatternError::Exact(_)));
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        assert!(!glob_matches(&"*a".repeat(60), &"a".repeat(59)));
        assert!(!glob_matches(
            &format!("{}b", "a*".repeat(60)),
            &"a".repeat(128)
        ));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn agrees_with_the_definition(pattern in "[abé*?]{0,8}", text in "[abé]{0,8}") {
            let (pattern_characters, text_characters): (Vec<_>, Vec<_>) =
                (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(
                glob_matches(&pattern, &text),
                glob_matches_by_definition(&pattern_characters, &text_characters)
            );
        }
    }
}
