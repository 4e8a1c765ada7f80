//! The config file as a document: small edits that keep order, unknown keys and form.

use std::fmt;
use std::path::{Path, PathBuf};

use policy::{OverrideError, Overrides, ServerName, Tier};
use serde_json::{Map, Value};

use super::entry::{Audience, server_entry, update_entry};
use super::text;
use super::{SaveError, write};
use crate::error::LoadError;
use crate::load;
use crate::server::ServerConfig;

const SERVERS: &str = "mcpServers";
const OVERRIDES: &str = "tool_overrides";

/// A config file that is being edited. Nothing is written before [`Document::save`].
#[derive(Clone)]
pub struct Document {
    file: PathBuf,
    /// What was read, to notice edits by others and to keep the text of what did not change.
    original: String,
    root: Map<String, Value>,
    /// The servers in `root`, kept in step with it.
    servers: Vec<ServerConfig>,
}

impl Document {
    /// Reads a config file, which has to be valid.
    pub fn load(file: &Path) -> Result<Self, LoadError> {
        let content = std::fs::read(file).map_err(|source| LoadError::Unreadable {
            file: file.to_owned(),
            source,
        })?;
        Self::parse(&content, file)
    }

    /// Reads the content of a config file; `file` is where it is saved.
    pub fn parse(content: &[u8], file: &Path) -> Result<Self, LoadError> {
        let servers = load::parse(content, file)?.config.mcp_servers;
        let tree = load::decode(content).and_then(|text| Ok((load::read_object(text)?, text)));
        let (root, text) = tree.map_err(|fault| LoadError::Invalid {
            file: file.to_owned(),
            fault,
        })?;
        Ok(Self {
            file: file.to_owned(),
            original: text.to_owned(),
            root,
            servers,
        })
    }

    /// The server of that name, edits included.
    pub fn server(&self, name: &ServerName) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| server.name == *name)
    }

    /// Adds a server at the end, or changes the one of that name: only what differs, so keys that
    /// nothing here knows stay.
    pub fn set_server(&mut self, server: &ServerConfig) {
        let mut servers = self.servers.iter_mut();
        if let Some(known) = servers.find(|known| known.name == server.name) {
            if let Some(entry) = entry_mut(self.root.get_mut(SERVERS), &server.name) {
                update_entry(entry, known, server);
            }
            *known = server.clone();
        } else {
            self.add_entry(server);
            self.servers.push(server.clone());
        }
    }

    /// The entry of a server in the list form with a JSON merge patch (RFC 7396) applied, as text
    /// for [`parse_server`](crate::parse_server); none if there is no such server.
    pub fn patched_entry(&self, name: &ServerName, patch: &Map<String, Value>) -> Option<String> {
        let mut entry = server_entry(self.server(name)?, Audience::File);
        merge(&mut entry, patch);
        entry.shift_insert(0, "name".into(), name.as_str().into());
        Some(Value::Object(entry).to_string())
    }

    fn add_entry(&mut self, server: &ServerConfig) {
        let mut entry = server_entry(server, Audience::File);
        if let Some(Value::Array(list)) = self.root.get_mut(SERVERS) {
            entry.shift_insert(0, "name".into(), server.name.as_str().into());
            list.push(Value::Object(entry));
        } else {
            self.put_member(SERVERS, server.name.as_str(), Value::Object(entry));
        }
    }

    /// Removes a server; says whether there was one.
    pub fn remove_server(&mut self, name: &ServerName) -> bool {
        match self.root.get_mut(SERVERS) {
            Some(Value::Array(list)) => list.retain(|entry| !is_named(entry, name)),
            Some(Value::Object(servers)) => {
                servers.shift_remove(name.as_str());
            }
            _ => {}
        }
        let before = self.servers.len();
        self.servers.retain(|server| server.name != *name);
        self.servers.len() < before
    }

    /// Sets the operator's tier for a tool or a pattern of tools.
    pub fn set_override(&mut self, pattern: &str, tier: Tier) -> Result<(), OverrideError> {
        Overrides::compile([(pattern, tier)])?;
        self.put_member(OVERRIDES, pattern, tier.as_str().into());
        Ok(())
    }

    /// Removes an override; says whether there was one.
    pub fn remove_override(&mut self, pattern: &str) -> bool {
        match self.root.get_mut(OVERRIDES) {
            Some(Value::Object(overrides)) => overrides.shift_remove(pattern).is_some(),
            _ => false,
        }
    }

    /// Sets a scalar setting: a member of the file, or of one of its sections.
    pub fn set_setting(&mut self, section: Option<&str>, key: &str, value: Value) {
        match section {
            Some(section) => self.put_member(section, key, value),
            None => drop(self.root.insert(key.to_owned(), value)),
        }
    }

    /// Puts a member into the object under `key`, which is made if it is missing or `null`.
    fn put_member(&mut self, key: &str, member: &str, value: Value) {
        if let Some(Value::Object(object)) = self.root.get_mut(key) {
            object.insert(member.to_owned(), value);
        } else {
            let object = Map::from_iter([(member.to_owned(), value)]);
            self.root.insert(key.to_owned(), Value::Object(object));
        }
    }

    /// The text that [`Document::save`] writes.
    pub fn to_text(&self) -> String {
        text::edited(&Value::Object(self.root.clone()), &self.original)
    }

    /// Replaces the file in one step, unless somebody else changed it since it was read.
    pub fn save(&mut self) -> Result<(), SaveError> {
        let text = self.to_text();
        // An edit cannot be allowed to write what the next start would refuse.
        load::parse(text.as_bytes(), &self.file).map_err(SaveError::Invalid)?;
        let current = std::fs::read(&self.file).map_err(|source| SaveError::Write {
            file: self.file.clone(),
            source,
        })?;
        if load::decode(&current).ok() != Some(&self.original) {
            return Err(SaveError::ChangedMeanwhile {
                file: self.file.clone(),
            });
        }
        write::replace(&self.file, &text)?;
        self.original = text;
        Ok(())
    }
}

/// A `null` removes, an object is merged into an object, everything else replaces.
fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.shift_remove(key);
            }
            Value::Object(patch) => {
                let member = target
                    .entry(key.as_str())
                    .or_insert_with(|| Map::new().into());
                if !member.is_object() {
                    *member = Map::new().into();
                }
                if let Value::Object(member) = member {
                    merge(member, patch);
                }
            }
            other => {
                target.insert(key.clone(), other.clone());
            }
        }
    }
}

fn entry_mut<'a>(
    servers: Option<&'a mut Value>,
    name: &ServerName,
) -> Option<&'a mut Map<String, Value>> {
    match servers? {
        Value::Array(list) => list.iter_mut().find(|entry| is_named(entry, name)),
        Value::Object(servers) => servers.get_mut(name.as_str()),
        _ => None,
    }?
    .as_object_mut()
}

fn is_named(entry: &Value, name: &ServerName) -> bool {
    entry.get("name").and_then(Value::as_str) == Some(name.as_str())
}

// The tree holds secrets, so only what servers show of themselves is shown.
impl fmt::Debug for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Document")
            .field("file", &self.file)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}
