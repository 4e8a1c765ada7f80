//! The words that decided, and the line that names them.

use std::fmt;

use policy::Tier;

/// One word that spoke for a tier. All are words of the lexicon, so none can smuggle anything
/// from an upstream into a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clue {
    Name(&'static str),
    Title(&'static str),
    Description(&'static str),
    Parameter(&'static str),
    Choice {
        verb: &'static str,
        parameter: &'static str,
    },
    Server(&'static str),
    Nothing,
}

impl fmt::Display for Clue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(word) => write!(formatter, "\"{word}\" in the name"),
            Self::Title(word) => write!(formatter, "\"{word}\" in the title"),
            Self::Description(word) => write!(formatter, "\"{word}\" in the description"),
            Self::Parameter(word) => write!(formatter, "the parameter \"{word}\""),
            Self::Choice { verb, parameter } => {
                write!(formatter, "\"{verb}\" among the choices of \"{parameter}\"")
            }
            Self::Server(word) => write!(formatter, "\"{word}\" in the server's name"),
            Self::Nothing => formatter.write_str("no word that tells, so a write is assumed"),
        }
    }
}

/// "destructive: "delete" in the name, "permanently" in the description".
pub(super) fn reason(tier: Tier, clues: &[Clue]) -> String {
    let mut line = format!("{tier}:");
    for (index, clue) in clues.iter().enumerate() {
        let separator = if index == 0 { " " } else { ", " };
        line.push_str(separator);
        line.push_str(&clue.to_string());
    }
    line
}
