//! What is wrong with a tool's definition, as codes that stay the same from version to version.

mod characters;
mod hints;
mod instructions;
mod lookalike;
mod names;
mod prose;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use self::hints::check_hints;
pub(crate) use self::names::NameIndex;
pub(crate) use self::prose::check_prose;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Likely to mislead somebody.
    Warning,
    /// Makes a lane dishonest or an agent unsafe.
    Error,
}

/// From which severity on an audit counts as failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FailOn {
    #[default]
    Error,
    Warning,
    /// Never.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown threshold; use error, warning or none")]
pub struct UnknownFailOn;

/// Something that is wrong, or odd, about one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Finding {
    pub code: FindingCode,
    pub severity: Severity,
    /// One line, safe to print.
    pub message: String,
}

/// The kinds of findings. Scripts and ignore lists rely on the codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FindingCode {
    MissingHints,
    ReadOnlyHintOnMutatingTool,
    DestructiveDeclaredHarmless,
    DestructiveHintMissing,
    ContradictoryHints,
    MalformedHints,
    DuplicateName,
    ShadowedName,
    ConfusableName,
    ReservedName,
    HiddenCharacters,
    InstructionsInDescription,
    MentionsForeignTool,
    LongDescription,
}

impl FindingCode {
    pub const ALL: [Self; 14] = [
        Self::MissingHints,
        Self::ReadOnlyHintOnMutatingTool,
        Self::DestructiveDeclaredHarmless,
        Self::DestructiveHintMissing,
        Self::ContradictoryHints,
        Self::MalformedHints,
        Self::DuplicateName,
        Self::ShadowedName,
        Self::ConfusableName,
        Self::ReservedName,
        Self::HiddenCharacters,
        Self::InstructionsInDescription,
        Self::MentionsForeignTool,
        Self::LongDescription,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::MissingHints => "MISSING_HINTS",
            Self::ReadOnlyHintOnMutatingTool => "READ_ONLY_HINT_ON_MUTATING_TOOL",
            Self::DestructiveDeclaredHarmless => "DESTRUCTIVE_DECLARED_HARMLESS",
            Self::DestructiveHintMissing => "DESTRUCTIVE_HINT_MISSING",
            Self::ContradictoryHints => "CONTRADICTORY_HINTS",
            Self::MalformedHints => "MALFORMED_HINTS",
            Self::DuplicateName => "DUPLICATE_NAME",
            Self::ShadowedName => "SHADOWED_NAME",
            Self::ConfusableName => "CONFUSABLE_NAME",
            Self::ReservedName => "RESERVED_NAME",
            Self::HiddenCharacters => "HIDDEN_CHARACTERS",
            Self::InstructionsInDescription => "INSTRUCTIONS_IN_DESCRIPTION",
            Self::MentionsForeignTool => "MENTIONS_FOREIGN_TOOL",
            Self::LongDescription => "LONG_DESCRIPTION",
        }
    }

    /// How severe a finding of this kind is when nothing makes it less so.
    pub fn severity(self) -> Severity {
        match self {
            Self::ReadOnlyHintOnMutatingTool
            | Self::DestructiveDeclaredHarmless
            | Self::DuplicateName
            | Self::ConfusableName
            | Self::ReservedName
            | Self::HiddenCharacters
            | Self::InstructionsInDescription => Severity::Error,
            Self::MissingHints
            | Self::DestructiveHintMissing
            | Self::ContradictoryHints
            | Self::MalformedHints
            | Self::ShadowedName
            | Self::MentionsForeignTool => Severity::Warning,
            Self::LongDescription => Severity::Note,
        }
    }

    /// What it means, in one sentence.
    pub fn summary(self) -> &'static str {
        match self {
            Self::MissingHints => "The server does not say whether the tool reads or writes.",
            Self::ReadOnlyHintOnMutatingTool => {
                "The tool is declared read-only, but everything else about it says that it changes something."
            }
            Self::DestructiveDeclaredHarmless => {
                "The tool is declared harmless, but everything else about it says that it destroys."
            }
            Self::DestructiveHintMissing => {
                "The tool is declared as not read-only without saying that it destroys."
            }
            Self::ContradictoryHints => "The tool is declared both read-only and destructive.",
            Self::MalformedHints => {
                "A hint has a value of the wrong type; it counts as absent, or as true if it is destructiveHint."
            }
            Self::DuplicateName => "The server lists two tools of the same name.",
            Self::ShadowedName => "Another server has a tool of the same name.",
            Self::ConfusableName => "The name looks like another one without being it.",
            Self::ReservedName => "The name is that of one of the proxy's own tools.",
            Self::HiddenCharacters => "The definition has characters that a person cannot see.",
            Self::InstructionsInDescription => {
                "The definition talks to the model instead of describing the tool."
            }
            Self::MentionsForeignTool => "The description talks about a tool of another server.",
            Self::LongDescription => "The description is longer than clients pass on.",
        }
    }

    /// What to do about it.
    pub fn help(self) -> &'static str {
        match self {
            Self::MissingHints | Self::DestructiveHintMissing => {
                "Set readOnlyHint, or destructiveHint, in the tool's annotations, or set a tier with a tool override."
            }
            Self::ReadOnlyHintOnMutatingTool | Self::DestructiveDeclaredHarmless => {
                "Correct the hint, or set the tier with a tool override; the description may also need to say what the tool really does."
            }
            Self::ContradictoryHints => {
                "Set only the hint that is true; the destructive one counts."
            }
            Self::MalformedHints => "Hints are booleans: write true or false without quotes.",
            Self::DuplicateName | Self::ShadowedName => {
                "Rename one of the tools, or make sure that callers name the server."
            }
            Self::ConfusableName => {
                "Find out which tool is the real one, and remove the server of the other."
            }
            Self::ReservedName => "Rename the tool; agents could take it for the proxy's own.",
            Self::HiddenCharacters => {
                "Look at the definition with the characters written out before using the server; remove them."
            }
            Self::InstructionsInDescription => {
                "Read the definition before using the server; a description says what a tool does and nothing else."
            }
            Self::MentionsForeignTool => {
                "Check that the description does not change how the other server's tool is used."
            }
            Self::LongDescription => {
                "Say what the tool does in the first sentences and drop the rest."
            }
        }
    }

    pub(crate) fn finding(self, message: impl Into<String>) -> Finding {
        self.with_severity(self.severity(), message)
    }

    pub(crate) fn with_severity(self, severity: Severity, message: impl Into<String>) -> Finding {
        Finding {
            code: self,
            severity,
            message: message.into(),
        }
    }
}

impl Severity {
    pub const ALL: [Self; 3] = [Self::Note, Self::Warning, Self::Error];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl FailOn {
    pub fn is_failure(self, severity: Severity) -> bool {
        match self {
            Self::Error => severity >= Severity::Error,
            Self::Warning => severity >= Severity::Warning,
            Self::None => false,
        }
    }
}

impl FromStr for FailOn {
    type Err = UnknownFailOn;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "error" => Ok(Self::Error),
            "warning" => Ok(Self::Warning),
            "none" => Ok(Self::None),
            _ => Err(UnknownFailOn),
        }
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_severities_are_the_same_as_text_and_as_json() {
        for code in FindingCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert!(!code.summary().is_empty() && !code.help().is_empty());
        }
        for severity in Severity::ALL {
            assert_eq!(serde_json::to_value(severity).unwrap(), severity.as_str());
        }
        assert!(Severity::ALL.is_sorted());
    }

    #[test]
    fn a_threshold_fails_what_is_at_least_as_severe() {
        assert!(
            "warning"
                .parse::<FailOn>()
                .unwrap()
                .is_failure(Severity::Error)
        );
        assert!(!FailOn::Error.is_failure(Severity::Warning));
        assert!(!FailOn::None.is_failure(Severity::Error));
        assert_eq!("notes".parse::<FailOn>(), Err(UnknownFailOn));
    }
}
