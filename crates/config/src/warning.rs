//! Things in a config file that do no harm and probably do not do what was meant.

use std::fmt;

use crate::json::{JsonPath, Position};

/// One doubtful thing in a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub path: JsonPath,
    pub position: Position,
    pub kind: WarningKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarningKind {
    /// Nothing reads this key.
    UnknownKey { suggestion: Option<&'static str> },
    /// The key has no meaning beside another one that was given.
    NoEffect { beside: &'static str },
    /// `${NAME}` is passed on as it stands.
    NotExpanded { name: String },
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            position,
            kind,
        } = self;
        match kind {
            WarningKind::UnknownKey { suggestion } => {
                write!(formatter, "unknown key `{path}` ({position})")?;
                match suggestion {
                    Some(key) => write!(formatter, "; did you mean `{key}`?"),
                    None => formatter.write_str("; it is ignored"),
                }
            }
            WarningKind::NoEffect { beside } => {
                write!(
                    formatter,
                    "`{path}` ({position}) has no effect beside `{beside}`"
                )
            }
            WarningKind::NotExpanded { name } => write!(
                formatter,
                "`{path}` ({position}) holds `${{{name}}}`, which is passed on as it stands; write `${{env:{name}}}` for the variable"
            ),
        }
    }
}
