//! A file that somebody else wrote, edited so that everything we do not touch stays as it was.

mod json;
mod toml;

use serde_json::Value;

use self::json::JsonDocument;
use self::toml::TomlDocument;

/// The languages of config files. JSON may have comments and trailing commas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json,
    Toml,
}

/// Where and why a text is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseFault {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// A place in a document that is not what it has to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeFault {
    #[error("`{path}` is not {expected}")]
    WrongKind {
        path: String,
        expected: &'static str,
    },
    #[error("`{path}` is given more than once")]
    Twice { path: String },
}

/// A parsed file. Paths are the names of members, from the root.
pub(crate) enum Document {
    Json(JsonDocument),
    Toml(TomlDocument),
}

impl Document {
    /// Reads a text; an empty one is a document without members.
    pub(crate) fn parse(syntax: Syntax, text: &str) -> Result<Self, ParseFault> {
        match syntax {
            Syntax::Json => JsonDocument::parse(text).map(Self::Json),
            Syntax::Toml => TomlDocument::parse(text).map(Self::Toml),
        }
    }

    pub(crate) fn get(&self, path: &[String]) -> Result<Option<Value>, ShapeFault> {
        match self {
            Self::Json(document) => document.get(path),
            Self::Toml(document) => Ok(document.get(path)),
        }
    }

    /// Sets a member; objects that are missing on the way to it are made.
    pub(crate) fn set(&mut self, path: &[String], value: &Value) -> Result<(), ShapeFault> {
        match self {
            Self::Json(document) => document.set(path, value),
            Self::Toml(document) => document.set(path, value),
        }
    }

    pub(crate) fn remove(&mut self, path: &[String]) -> Result<(), ShapeFault> {
        match self {
            Self::Json(document) => document.remove(path),
            Self::Toml(document) => {
                document.remove(path);
                Ok(())
            }
        }
    }

    /// Adds an element at the end of a list, which is made if it is missing.
    pub(crate) fn push(&mut self, path: &[String], value: &Value) -> Result<(), ShapeFault> {
        match self {
            Self::Json(document) => document.push(path, value),
            Self::Toml(document) => document.push(path, value),
        }
    }

    /// Takes the last such element out of a list.
    pub(crate) fn take_out(&mut self, path: &[String], value: &Value) -> Result<(), ShapeFault> {
        match self {
            Self::Json(document) => document.take_out(path, value),
            Self::Toml(document) => {
                document.take_out(path, value);
                Ok(())
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Json(document) => document.text(),
            Self::Toml(document) => document.text(),
        }
    }

    /// The whole as data, comments left out.
    pub(crate) fn value(&self) -> Value {
        let whole = self.get(&[]).ok().flatten();
        whole.unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }
}

/// A path from the names on it.
pub(crate) fn path<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Vec<String> {
    names.into_iter().map(Into::into).collect()
}

fn wrong_kind(path: &[String], expected: &'static str) -> ShapeFault {
    ShapeFault::WrongKind {
        path: shown(path),
        expected,
    }
}

fn shown(path: &[String]) -> String {
    match path {
        [] => "the file".to_owned(),
        names => names.join("."),
    }
}
