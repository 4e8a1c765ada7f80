//! One entry of a client in the words of our config.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Obstacle, Usable};
use crate::adapter::TRANSPORT_KEYS;
use crate::client::Client;
use crate::references::{Dialect, Folders};

/// The keys that are understood besides [`TRANSPORT_KEYS`].
const OTHER_KEYS: [&str; 5] = [
    "disabled",
    "enabled",
    "env_vars",
    "env_http_headers",
    "name",
];

/// What an entry is called while it has no name of ours.
const STAND_IN: &str = "imported";

pub(super) fn usable(
    entry: &Value,
    client: Client,
    folders: Folders<'_>,
) -> Result<Usable, Obstacle> {
    let mut translation = Translation {
        dialect: client.adapter().dialect(),
        folders,
        notes: Vec::new(),
    };
    let entry = translation.entry(entry, client)?;
    // The same reader that reads our own file says whether it would take this.
    let file = serde_json::json!({"mcpServers": {STAND_IN: entry}}).to_string();
    let loaded = config::parse(file.as_bytes(), Path::new(STAND_IN)).map_err(Obstacle::Invalid)?;
    let config = loaded.config.mcp_servers.into_iter().next();
    Ok(Usable {
        config: config.ok_or(Obstacle::NoTransport)?,
        entry,
        notes: translation.notes,
    })
}

struct Translation<'a> {
    dialect: Dialect,
    folders: Folders<'a>,
    notes: Vec<String>,
}

impl Translation<'_> {
    fn entry(&mut self, entry: &Value, client: Client) -> Result<Map<String, Value>, Obstacle> {
        let Value::Object(written) = entry else {
            return Err(malformed("the entry", "an object"));
        };
        let mut ours = Map::new();
        let url = ["httpUrl", "serverUrl", "url"]
            .into_iter()
            .find_map(|key| Some((key, present(written, key)?)));
        match (present(written, "command"), url) {
            (Some(command), _) => self.program(command, written, &mut ours)?,
            (None, Some((key, url))) => {
                ours.insert("url".into(), self.text(key, url)?);
                if is_event_stream(written, key, client) {
                    ours.insert("type".into(), "sse".into());
                }
                let headers = self.headers(written)?;
                if !headers.is_empty() {
                    ours.insert("headers".into(), Value::Object(headers));
                }
            }
            (None, None) => return Err(Obstacle::NoTransport),
        }
        if is_disabled(entry) {
            ours.insert("enabled".into(), false.into());
        }
        self.note_what_is_left_out(written);
        Ok(ours)
    }

    /// Names the members that have no counterpart in our config, for example a list of allowed tools.
    fn note_what_is_left_out(&mut self, written: &Map<String, Value>) {
        let left_out: Vec<&str> = written
            .iter()
            .filter(|(name, value)| !is_known(name) && says_something(value))
            .map(|(name, _)| name.as_str())
            .collect();
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            self.notes.push(format!("not taken over: {names}"));
        }
    }

    fn program(
        &mut self,
        command: &Value,
        written: &Map<String, Value>,
        ours: &mut Map<String, Value>,
    ) -> Result<(), Obstacle> {
        ours.insert("command".into(), self.text("command", command)?);
        if let Some(args) = present(written, "args") {
            let args = args.as_array().ok_or_else(|| malformed("args", "a list"))?;
            let args: Result<Vec<_>, _> = args.iter().map(|arg| self.text("args", arg)).collect();
            ours.insert("args".into(), Value::Array(args?));
        }
        let mut env = self.texts(written, "env")?;
        // Codex hands these through from its own environment.
        for name in strings(written, "env_vars") {
            env.insert(name.to_owned(), format!("${{env:{name}}}").into());
        }
        if !env.is_empty() {
            ours.insert("env".into(), Value::Object(env));
        }
        let folder = match present(written, "cwd") {
            Some(cwd) => {
                let cwd = self.text("cwd", cwd)?;
                let cwd = Path::new(cwd.as_str().unwrap_or_default());
                Some(
                    self.folders
                        .project
                        .map_or_else(|| cwd.to_owned(), |project| project.join(cwd)),
                )
            }
            // A program of a project runs in the project.
            None => self.folders.project.map(Path::to_owned),
        };
        if let Some(folder) = folder {
            ours.insert("working_dir".into(), folder.to_string_lossy().into());
        }
        Ok(())
    }

    fn headers(&mut self, written: &Map<String, Value>) -> Result<Map<String, Value>, Obstacle> {
        let mut headers = self.texts(written, "headers")?;
        headers.extend(self.texts(written, "http_headers")?);
        for (name, variable) in self.texts(written, "env_http_headers")? {
            let variable = variable.as_str().unwrap_or_default();
            headers.insert(name, format!("${{env:{variable}}}").into());
        }
        if let Some(variable) = written.get("bearer_token_env_var").and_then(Value::as_str) {
            let value = format!("Bearer ${{env:{variable}}}");
            headers.insert("Authorization".into(), value.into());
        }
        Ok(headers)
    }

    /// The members of an object as texts.
    fn texts(
        &mut self,
        written: &Map<String, Value>,
        key: &str,
    ) -> Result<Map<String, Value>, Obstacle> {
        let Some(members) = present(written, key) else {
            return Ok(Map::new());
        };
        let members = members
            .as_object()
            .ok_or_else(|| malformed(key, "an object"))?;
        members
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.text(&format!("{key}.{name}"), value)?)))
            .collect()
    }

    fn text(&mut self, key: &str, value: &Value) -> Result<Value, Obstacle> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(malformed(key, "a text")),
        };
        let translated = self.dialect.translate(&text, self.folders);
        let translated = translated.map_err(|error| Obstacle::Reference(error.to_string()))?;
        for name in translated.defaults {
            self.notes.push(format!(
                "{name} has no default here; set it where the daemon runs"
            ));
        }
        Ok(translated.text.into())
    }
}

/// Whether the client has switched an entry off.
pub(super) fn is_disabled(entry: &Value) -> bool {
    entry["disabled"] == true || entry["enabled"] == false
}

/// Whether the older of the two HTTP transports is meant. In Gemini CLI, `url` alone means it.
fn is_event_stream(written: &Map<String, Value>, key: &str, client: Client) -> bool {
    let kind = ["type", "transport"]
        .into_iter()
        .find_map(|key| written.get(key)?.as_str());
    match kind {
        Some(kind) => kind == "sse",
        None => client == Client::Gemini && key == "url",
    }
}

/// Whether a member of an entry is understood here.
fn is_known(name: &str) -> bool {
    TRANSPORT_KEYS.contains(&name) || OTHER_KEYS.contains(&name)
}

/// Whether a value differs from an empty one. Some clients write empty lists into every entry.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// A member that says something: some clients write `null` or nothing into every entry.
fn present<'a>(written: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    written
        .get(key)
        .filter(|value| !value.is_null() && *value != "")
}

fn strings<'a>(written: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a str> {
    let list = written.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

fn malformed(key: &str, expected: &'static str) -> Obstacle {
    Obstacle::Malformed {
        key: key.to_owned(),
        expected,
    }
}
