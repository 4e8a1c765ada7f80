//! What differs between clients.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::client::Client;
use crate::document::{Syntax, path};
use crate::edit::Edit;
use crate::endpoint::Endpoint;
use crate::error::ClientFileError;
use crate::permissions::Permissions;
use crate::places::Places;
use crate::references::Dialect;
use crate::servers::Scope;
use crate::{OWN_TOOLS, SERVER_NAME};

/// The keys of an entry that say how a server is reached, in any client.
pub(crate) const TRANSPORT_KEYS: [&str; 12] = [
    "type",
    "transport",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "http_headers",
    "bearer_token_env_var",
];

/// One client's way of doing things.
pub(crate) trait Adapter: Sync {
    /// The file that we put ourselves into: the user's, for all projects.
    fn main_file(&self, places: &Places) -> ServerFile;

    /// Other files from which the client takes servers.
    fn other_files(&self, _places: &Places) -> Vec<ServerFile> {
        Vec::new()
    }

    /// How the client's files refer to the environment.
    fn dialect(&self) -> Dialect;

    /// The members that describe us.
    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError>;

    /// What makes the client run our reading tools without asking, and ask for the others.
    fn approve_reads(&self, places: &Places) -> Result<Rules, ClientFileError>;

    /// What the client would do with each of our tools.
    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError>;
}

/// A file that lists servers.
#[derive(Debug, Clone)]
pub(crate) struct ServerFile {
    pub(crate) path: PathBuf,
    pub(crate) syntax: Syntax,
    /// Where in the file they are.
    pub(crate) servers: Vec<String>,
    pub(crate) scope: Scope,
}

/// What is to be changed in one file.
#[derive(Debug, Clone)]
pub(crate) struct FileEdits {
    pub(crate) path: PathBuf,
    pub(crate) syntax: Syntax,
    pub(crate) edits: Vec<Edit>,
}

/// Permission rules: in files, or for the person to set.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) files: Vec<FileEdits>,
    /// More members of our own entry.
    pub(crate) entry: Vec<Edit>,
    pub(crate) notes: Vec<String>,
}

impl ServerFile {
    pub(crate) fn json(path: PathBuf, servers: &str) -> Self {
        Self {
            path,
            syntax: Syntax::Json,
            servers: vec![servers.to_owned()],
            scope: Scope::User,
        }
    }

    #[must_use]
    pub(crate) fn of_project(mut self) -> Self {
        self.scope = Scope::Project;
        self
    }

    /// The path of our own entry.
    pub(crate) fn own_entry(&self) -> Vec<String> {
        [self.servers.as_slice(), &path([SERVER_NAME])].concat()
    }
}

impl Rules {
    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self {
            notes: vec![text.into()],
            ..Self::default()
        }
    }
}

/// An entry for a program that the client starts, which looks the same everywhere.
pub(crate) fn stdio_entry(command: &str, args: &[String]) -> Map<String, Value> {
    object([("command", command.into()), ("args", args.into())])
}

/// An entry for an address, with the key as the client looks it up.
pub(crate) fn http_entry(
    url_key: &'static str,
    endpoint: &Endpoint,
    client: Client,
    reference: Option<&str>,
) -> Result<Map<String, Value>, ClientFileError> {
    match endpoint {
        Endpoint::Stdio { command, args } => Ok(stdio_entry(command, args)),
        Endpoint::Http { url, needs_key } => {
            let mut entry = object([(url_key, url.as_str().into())]);
            if *needs_key {
                let reference = reference.ok_or(ClientFileError::KeyNeeded { client })?;
                let header = object([("Authorization", format!("Bearer {reference}").into())]);
                entry.insert("headers".into(), Value::Object(header));
            }
            Ok(entry)
        }
    }
}

/// The entry with its kind before everything else.
pub(crate) fn with_type(kind: &str, entry: Map<String, Value>) -> Map<String, Value> {
    let mut whole = object([("type", kind.into())]);
    whole.extend(entry);
    whole
}

pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Our tools that only read, by name.
pub(crate) fn reading_tools() -> impl Iterator<Item = &'static str> {
    OWN_TOOLS
        .into_iter()
        .filter(|tool| tool.reads)
        .map(|tool| tool.name)
}

/// Our tools that may change something, by name.
pub(crate) fn changing_tools() -> impl Iterator<Item = &'static str> {
    OWN_TOOLS
        .into_iter()
        .filter(|tool| !tool.reads)
        .map(|tool| tool.name)
}
