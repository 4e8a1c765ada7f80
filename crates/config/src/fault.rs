//! What can be wrong inside a config file: where, why, and what to do about it.

use policy::{PatternError, ServerGlobError, ServerNameError};

use crate::duration::DurationError;
use crate::json::{JsonPath, Kind, Position};
use crate::model::SHORTEST_API_KEY;
use crate::template::TemplateError;
use crate::url::UrlError;

/// A problem and its place in the file.
#[derive(Debug, thiserror::Error)]
#[error("{position}: {problem}")]
pub struct Fault {
    pub path: JsonPath,
    pub position: Position,
    // Boxed to keep every `Result` of the reader small.
    #[source]
    pub problem: Box<Problem>,
}

/// Why a value is refused.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("the file is empty")]
    Empty,
    #[error("the text is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    #[error("{}", without_position(.0))]
    Syntax(#[source] serde_json::Error),
    #[error("this key is given twice, first at {first}")]
    DuplicateKey { first: Position },
    #[error("expected {expected}, found {found}")]
    WrongKind { expected: &'static str, found: Kind },
    #[error("{found} is not a whole number of at least 0")]
    NotWhole { found: String },
    #[error("{found} is out of range")]
    OutOfRange {
        found: u64,
        lowest: u32,
        highest: u32,
    },
    #[error("unknown value {found:?}")]
    UnknownValue {
        found: String,
        allowed: Vec<&'static str>,
    },
    #[error("the text is empty")]
    EmptyText,
    #[error("{found:?} is not an IP address with a port")]
    Address {
        found: String,
        #[source]
        source: std::net::AddrParseError,
    },
    #[error("a key cannot be a reference")]
    ReferenceAsKey,
    #[error("a key of {length} characters can be guessed; {SHORTEST_API_KEY} are the least")]
    ShortKey { length: usize },
    #[error(transparent)]
    Duration(#[from] DurationError),
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(transparent)]
    ServerGlob(#[from] ServerGlobError),
    #[error(transparent)]
    ServerName(#[from] ServerNameError),
    #[error("the server has no `name`")]
    MissingName,
    #[error("another server has this name, at {first}")]
    DuplicateServer { first: Position },
    #[error("`{first}` and `{second}` mean the same and are both given")]
    SameMeaning {
        first: &'static str,
        second: &'static str,
    },
    #[error("the server has both `command` and `url`")]
    TwoTransports,
    #[error("the server has neither `command` nor `url`")]
    NoTransport,
    #[error("this type of server needs `{needed}`, and there is none")]
    TransportType { needed: &'static str },
    #[error("`enabled` and `disabled` contradict each other")]
    EnabledAndDisabled,
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("{found:?} is not the name of an HTTP header")]
    HeaderName { found: String },
    #[error("{found:?} is not the name of an environment variable")]
    VariableName { found: String },
}

impl Fault {
    pub(crate) fn new(path: JsonPath, position: Position, problem: Problem) -> Self {
        Self {
            path,
            position,
            problem: Box::new(problem),
        }
    }
}

impl Problem {
    /// What to do about it.
    pub fn help(&self) -> String {
        let text = match self {
            Self::Empty => "write at least {} into it",
            Self::NotUtf8(_) => "save the file as UTF-8",
            Self::Syntax(error) => return syntax_help(error),
            Self::DuplicateKey { .. } | Self::SameMeaning { .. } => "keep one of the two",
            Self::WrongKind { expected, .. } => return format!("write {expected} here"),
            Self::NotWhole { .. } => "write a whole number, without a sign or a fraction",
            Self::OutOfRange {
                lowest, highest, ..
            } => {
                return format!("write a whole number from {lowest} to {highest}");
            }
            Self::UnknownValue { allowed, .. } => {
                return format!("use one of: {}", allowed.join(", "));
            }
            Self::EmptyText => "write a text here, or leave the key out",
            Self::Address { .. } => "write an address such as 127.0.0.1:8080",
            Self::ReferenceAsKey => {
                "leave it out and set the environment variable MCPPROXY_API_KEY instead"
            }
            Self::ShortKey { .. } => "leave it out, and mcpproxy makes one",
            Self::Duration(_) => "write seconds, or a text such as \"30s\", \"500ms\" or \"2m\"",
            Self::Pattern(_) => "write server:tool, where * stands for any characters",
            Self::ServerGlob(_) => "use server names with * and ? as wildcards",
            Self::ServerName(_) | Self::DuplicateServer { .. } => "give the server another name",
            Self::MissingName => "add a `name`, or use the object form {\"name\": {…}}",
            Self::TwoTransports => {
                "keep `command` for a program to start, or `url` for a server to connect to"
            }
            Self::NoTransport => {
                "add `command` for a program to start, or `url` for a server to connect to"
            }
            Self::TransportType { needed } => {
                return format!("add `{needed}`, or leave `type` out");
            }
            Self::EnabledAndDisabled => "keep `enabled`",
            Self::Template(_) => "write ${env:NAME}, or $${env: for the text itself",
            Self::Url(_) => "write a url such as https://example.com/mcp",
            Self::HeaderName { .. } => "use letters, digits and hyphens",
            Self::VariableName { .. } => "use a name without = and without control characters",
        };
        text.to_owned()
    }
}

/// serde_json ends its messages with the position, which a [`Fault`] already says.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn syntax_help(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let text = if error.is_eof() {
        "the file ends too early: close what is still open"
    } else if message.starts_with("trailing comma") {
        "remove the comma before the closing bracket"
    } else if message.starts_with("recursion limit") {
        "nest arrays and objects less deeply"
    } else {
        "correct the JSON at this place; comments and single quotes are not allowed"
    };
    text.to_owned()
}
