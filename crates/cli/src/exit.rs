//! How a command ends: the exit codes scripts rely on, and the one shape of every error.

use std::fmt;
use std::process::ExitCode;

use serde_json::{Value, json};

/// The exit codes, which are part of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    Unreachable = 3,
    Config = 4,
    Refused = 5,
    NotFound = 6,
    Findings = 20,
}

impl Exit {
    /// The exit of another process of this program.
    pub(crate) fn from_code(code: u8) -> Self {
        let all = [
            Self::Ok,
            Self::Usage,
            Self::Unreachable,
            Self::Config,
            Self::Refused,
            Self::NotFound,
            Self::Findings,
        ];
        let known = all.into_iter().find(|exit| *exit as u8 == code);
        known.unwrap_or(Self::Failed)
    }

    /// The code of an error that has none of its own.
    fn code(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Failed => "FAILED",
            Self::Usage => "USAGE",
            Self::Unreachable => "DAEMON_UNREACHABLE",
            Self::Config => "CONFIG_INVALID",
            Self::Refused => "REFUSED",
            Self::NotFound => "NOT_FOUND",
            Self::Findings => "FINDINGS",
        }
    }
}

/// An error as a person gets it: what, why, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    pub exit: Exit,
    pub what: String,
    /// By which programs and documents know it, if it has one.
    pub code: Option<String>,
    pub why: Option<String>,
    pub advice: Option<String>,
}

pub(crate) type Outcome = Result<Exit, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            code: None,
            why: None,
            advice: None,
        }
    }

    /// A failure with the causes of an error as its reason.
    pub(crate) fn from_error(
        exit: Exit,
        what: impl Into<String>,
        error: &dyn std::error::Error,
    ) -> Self {
        Self::new(exit, what).why(causes(error))
    }

    #[must_use]
    pub(crate) fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    #[must_use]
    pub(crate) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    #[must_use]
    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The same for programs. A failure without a code of its own has that of its exit code.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "error": {
                "code": self.code.as_deref().unwrap_or(self.exit.code()),
                "message": self.what,
                "why": self.why,
                "hint": self.advice,
            },
            "exit_code": self.exit as u8,
        })
    }

    /// What failed and why, where there is room for one line only.
    pub(crate) fn one_line(self) -> String {
        match self.why {
            Some(why) => format!("{}: {why}", self.what),
            None => self.what,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", self.what)?;
        if let Some(code) = &self.code {
            write!(formatter, "\n code: {code}")?;
        }
        if let Some(why) = &self.why {
            write!(formatter, "\n  why: {why}")?;
        }
        if let Some(advice) = &self.advice {
            write!(formatter, "\n   do: {advice}")?;
        }
        Ok(())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error and its causes in one line.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
