//! The servers that other programs know, in the words of our own config.

mod translate;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use config::{LoadError, ServerConfig, Transport};
use serde_json::{Map, Value};
use url::{Host, Url};

use crate::SERVER_NAME;
use crate::adapter::ServerFile;
use crate::client::Client;
use crate::error::ClientFileError;
use crate::file;
use crate::moving::Origin;
use crate::places::Places;
use crate::references::Folders;

/// Whether a file counts everywhere or in one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    User,
    Project,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Survey {
    pub found: Vec<Found>,
    /// Files that could not be read, which does not keep the others from being read.
    pub failures: Vec<(Client, ClientFileError)>,
}

/// One entry of one file.
#[derive(Debug)]
pub struct Found {
    pub origin: Origin,
    /// The server as ours, or what is in the way.
    pub server: Result<Usable, Obstacle>,
}

/// A server that we can run.
#[derive(Debug)]
pub struct Usable {
    /// The entry in the form of our config file.
    pub entry: Map<String, Value>,
    /// The same, understood. Its name is a stand-in.
    pub config: ServerConfig,
    /// What is not quite the same.
    pub notes: Vec<String>,
}

/// Why an entry cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    #[error("{0}")]
    Reference(String),
    #[error("`{key}` is not {expected}")]
    Malformed { key: String, expected: &'static str },
    #[error("it has neither a command nor a url")]
    NoTransport,
    #[error("{0}")]
    Invalid(#[source] LoadError),
}

/// What we are known by, so that we are not imported into ourselves.
#[derive(Debug, Clone)]
pub struct OwnAddress {
    pub listen: SocketAddr,
    pub program: Option<PathBuf>,
}

/// Reads the servers of these clients. What cannot be read is told beside what can.
pub fn survey(clients: impl IntoIterator<Item = Client>, places: &Places) -> Survey {
    let mut survey = Survey::default();
    for client in clients {
        let adapter = client.adapter();
        let mut files = vec![adapter.main_file(places)];
        files.extend(adapter.other_files(places));
        for file in files {
            match read_servers(client, &file, places) {
                Ok(found) => survey.found.extend(found),
                Err(error) => survey.failures.push((client, error)),
            }
        }
    }
    survey
}

fn read_servers(
    client: Client,
    file: &ServerFile,
    places: &Places,
) -> Result<Vec<Found>, ClientFileError> {
    let Some(document) = file::read_document(&file.path, file.syntax)? else {
        return Ok(Vec::new());
    };
    let servers = document.get(&file.servers);
    let servers = servers.map_err(|source| ClientFileError::Shape {
        path: file.path.clone(),
        source,
    })?;
    let folders = Folders {
        home: &places.home,
        project: match file.scope {
            Scope::User => None,
            Scope::Project => places.project.as_deref(),
        },
    };
    let entries = servers
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let project = places.project.as_deref();
    let shared = project.is_some_and(|project| file.path.starts_with(project));
    let found = entries.map(|(name, entry)| Found {
        origin: Origin {
            client,
            file: file.path.clone(),
            name: name.clone(),
            shared,
            enabled: !translate::is_disabled(entry),
            syntax: file.syntax,
            path: [file.servers.as_slice(), std::slice::from_ref(name)].concat(),
            written: entry.clone(),
        },
        server: translate::usable(entry, client, folders),
    });
    Ok(found.collect())
}

impl OwnAddress {
    /// Whether an entry leads back to us.
    pub(crate) fn is_us(&self, name: &str, transport: &Transport) -> bool {
        match transport {
            Transport::Stdio { command, args, .. } => {
                let command = Path::new(command.written());
                let ours = command.file_name().is_some_and(|file| file == SERVER_NAME)
                    || self.program.as_deref() == Some(command);
                ours && args.first().is_some_and(|first| first.written() == "stdio")
            }
            Transport::Http { url, .. } => {
                let Ok(url) = Url::parse(url.written()) else {
                    return false;
                };
                let here = match url.host() {
                    Some(Host::Domain(name)) => name == "localhost",
                    Some(Host::Ipv4(address)) => address.is_loopback(),
                    Some(Host::Ipv6(address)) => address.is_loopback(),
                    None => false,
                };
                let same_port = url.port_or_known_default() == Some(self.listen.port());
                here && (same_port || name == SERVER_NAME) && url.path().starts_with("/mcp")
            }
        }
    }
}
