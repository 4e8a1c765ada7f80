//! Remembers which era each upstream speaks, so that it is asked once and not at every start.
//!
//! It is a cache: whatever is wrong with the file costs a question to each server and nothing else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use config::{HttpProtocol, SecretTemplate, ServerConfig, Template, Transport};
use mcp::client::Era;
use policy::ServerName;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The eras of all upstreams. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct EraMemory {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Where they outlive the process; without it they do not.
    file: Option<PathBuf>,
    known: Mutex<BTreeMap<ServerName, Known>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    era: Option<Era>,
    /// Stands for the transport that was spoken over: another one may lead to another server.
    transport: String,
    /// Whether it has asked its clients something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asks: bool,
}

// === impl EraMemory ===

impl EraMemory {
    /// What an earlier process found out, and a place for what this one does.
    pub fn at(file: &Path) -> Self {
        let known = read(file).unwrap_or_else(|error| {
            tracing::warn!(file = %file.display(), %error, "the eras of upstreams are asked for anew");
            BTreeMap::new()
        });
        Self {
            inner: Arc::new(Inner {
                file: Some(file.to_owned()),
                known: Mutex::new(known),
            }),
        }
    }

    pub(crate) fn recall(&self, server: &ServerConfig) -> Option<Era> {
        let known = self.inner.known.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&server.name)?;
        known.era.filter(|_| known.transport == fingerprint(server))
    }

    pub(crate) fn keep(&self, server: &ServerConfig, era: Era) {
        self.update(server, |known| known.era = Some(era));
    }

    /// The server did not speak as it did before.
    pub(crate) fn forget(&self, server: &ServerConfig) {
        self.change(|known| known.remove(&server.name).is_some());
    }

    /// Whether the server is known to have asked its clients something.
    pub(crate) fn asks(&self, server: &ServerConfig) -> bool {
        let known = self.inner.known.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&server.name);
        known.is_some_and(|known| known.asks && known.transport == fingerprint(server))
    }

    pub(crate) fn note_asks(&self, server: &ServerConfig) {
        self.update(server, |known| known.asks = true);
    }

    /// Changes what is known of a server. What was known of another transport does not count.
    fn update(&self, server: &ServerConfig, update: impl FnOnce(&mut Known)) {
        let transport = fingerprint(server);
        self.change(|known| {
            let before = known.get(&server.name);
            let mut new = before
                .filter(|known| known.transport == transport)
                .cloned()
                .unwrap_or(Known {
                    era: None,
                    transport,
                    asks: false,
                });
            update(&mut new);
            let changed = before != Some(&new);
            known.insert(server.name.clone(), new);
            changed
        });
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<ServerName, Known>) -> bool) {
        let known = self.inner.known.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if !change(&mut known) {
            return;
        }
        let Some(file) = &self.inner.file else {
            return;
        };
        if let Err(error) = write(file, &known) {
            tracing::warn!(file = %file.display(), %error, "the eras of upstreams are not kept");
        }
    }
}

/// The same in every release, and silent about the secrets that a transport may hold.
fn fingerprint(server: &ServerConfig) -> String {
    let parts = match &server.transport {
        Transport::Stdio {
            command,
            args,
            env,
            working_dir,
        } => json!([
            "stdio",
            command.written(),
            args.iter().map(Template::written).collect::<Vec<_>>(),
            masked(env),
            working_dir,
        ]),
        Transport::Http {
            url,
            headers,
            protocol,
        } => json!([
            "http",
            url.written(),
            masked(headers),
            *protocol == HttpProtocol::Sse,
        ]),
    };
    let digest = Sha256::digest(parts.to_string());
    digest.iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn masked(secrets: &BTreeMap<String, SecretTemplate>) -> BTreeMap<&str, &str> {
    let masked = secrets
        .iter()
        .map(|(name, value)| (name.as_str(), value.masked()));
    masked.collect()
}

fn read(file: &Path) -> io::Result<BTreeMap<ServerName, Known>> {
    match fs::read(file) {
        Ok(content) => Ok(serde_json::from_slice(&content)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

/// Replaces the file as a whole: a reader finds the old one or the new one.
fn write(file: &Path, known: &BTreeMap<ServerName, Known>) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(&serde_json::to_vec_pretty(known)?)?;
    new.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, command: &str) -> ServerConfig {
        ServerConfig::new(name.parse().unwrap(), Transport::program(command, []))
    }

    #[test]
    fn an_era_outlives_the_process_but_not_the_transport() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eras.json");
        let memory = EraMemory::at(&file);
        assert_eq!(memory.recall(&server("a", "x")), None);
        memory.keep(&server("a", "x"), Era::Modern);
        memory.keep(&server("b", "x"), Era::Legacy);
        memory.forget(&server("b", "x"));
        let later = EraMemory::at(&file);
        assert_eq!(later.recall(&server("a", "x")), Some(Era::Modern));
        assert_eq!(later.recall(&server("a", "y")), None);
        assert_eq!(later.recall(&server("b", "x")), None);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn the_fingerprint_is_the_same_in_every_release() {
        assert_eq!(fingerprint(&server("a", "x")), "4879bec228f39c57");
    }

    #[test]
    fn a_broken_file_is_as_good_as_none_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eras.json");
        fs::write(&file, "{oops").unwrap();
        let memory = EraMemory::at(&file);
        assert_eq!(memory.recall(&server("a", "x")), None);
        memory.keep(&server("a", "x"), Era::Legacy);
        let later = EraMemory::at(&file);
        assert_eq!(later.recall(&server("a", "x")), Some(Era::Legacy));
    }
}
