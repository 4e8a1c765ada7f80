//! A server as an entry of `mcpServers`, new or merged into the entry that is there.

use std::collections::BTreeMap;

use policy::Trust;
use serde_json::{Map, Value};

use crate::duration;
use crate::load::{URL_KEYS, WORKING_DIR_KEYS};
use crate::secret_option;
use crate::server::{HttpProtocol, ServerConfig, Sharing, Transport};
use crate::template::{SecretTemplate, Template};
use crate::url;

/// Whom an entry is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Audience {
    /// The file: secrets as written.
    File,
    /// People: secrets masked.
    People,
}

/// A fresh entry with what differs from the defaults.
pub(crate) fn server_entry(server: &ServerConfig, audience: Audience) -> Map<String, Value> {
    let mut entry = Map::new();
    put_transport(&mut entry, &server.transport, audience);
    put_enabled(&mut entry, server.enabled);
    put_or_drop(&mut entry, "timeout", timeout_of(server));
    put_or_drop(&mut entry, "max_concurrency", concurrency_of(server));
    put_or_drop(&mut entry, "refresh_interval", refresh_of(server));
    put_or_drop(&mut entry, "trust", trust_of(server));
    put_or_drop(&mut entry, "sharing", sharing_of(server));
    entry
}

/// Changes in `entry` only what differs between `old`, which it describes, and `new`.
pub(super) fn update_entry(entry: &mut Map<String, Value>, old: &ServerConfig, new: &ServerConfig) {
    if old.transport != new.transport {
        update_transport(entry, &old.transport, &new.transport);
    }
    if old.enabled != new.enabled {
        put_enabled(entry, new.enabled);
    }
    if old.timeout != new.timeout {
        put_or_drop(entry, "timeout", timeout_of(new));
    }
    if old.max_concurrency != new.max_concurrency {
        put_or_drop(entry, "max_concurrency", concurrency_of(new));
    }
    if old.refresh_interval != new.refresh_interval {
        put_or_drop(entry, "refresh_interval", refresh_of(new));
    }
    if old.trust != new.trust {
        put_or_drop(entry, "trust", trust_of(new));
    }
    if old.sharing != new.sharing {
        put_or_drop(entry, "sharing", sharing_of(new));
    }
}

fn update_transport(entry: &mut Map<String, Value>, old: &Transport, new: &Transport) {
    let foreign_keys: &[&str] = match (old, new) {
        (Transport::Stdio { .. }, Transport::Http { .. }) => {
            &["type", "command", "args", "env", "working_dir", "cwd"]
        }
        (Transport::Http { .. }, Transport::Stdio { .. }) => {
            &["type", "url", "httpUrl", "serverUrl", "headers"]
        }
        (Transport::Stdio { .. }, Transport::Stdio { .. })
        | (Transport::Http { .. }, Transport::Http { .. }) => &[],
    };
    for key in foreign_keys {
        entry.shift_remove(*key);
    }
    put_transport(entry, new, Audience::File);
}

fn put_transport(entry: &mut Map<String, Value>, transport: &Transport, audience: Audience) {
    match transport {
        Transport::Stdio {
            command,
            args,
            env,
            working_dir,
        } => {
            entry.insert("command".into(), command.written().into());
            let args: Vec<&str> = args.iter().map(Template::written).collect();
            let args = match audience {
                Audience::File => args.into_iter().map(str::to_owned).collect(),
                Audience::People => secret_option::masked(&args),
            };
            put_or_drop(entry, "args", (!args.is_empty()).then(|| args.into()));
            put_secrets(entry, "env", env, audience);
            let key = key_in_use(entry, &WORKING_DIR_KEYS);
            let working_dir = working_dir
                .as_ref()
                .map(|path| path.to_string_lossy().into());
            put_or_drop(entry, key, working_dir);
        }
        Transport::Http {
            url,
            headers,
            protocol,
        } => {
            put_protocol(entry, *protocol);
            let shown = match audience {
                Audience::File => url.written().to_owned(),
                Audience::People => url::masked(url),
            };
            entry.insert(key_in_use(entry, &URL_KEYS).into(), shown.into());
            put_secrets(entry, "headers", headers, audience);
        }
    }
}

/// Streamable HTTP is what a url means without a `type`, so an entry that says so keeps its word
/// and others get none.
fn put_protocol(entry: &mut Map<String, Value>, protocol: HttpProtocol) {
    match protocol {
        HttpProtocol::Sse => {
            entry.insert("type".into(), "sse".into());
        }
        HttpProtocol::Streamable => {
            if entry.get("type").is_some_and(|declared| declared == "sse") {
                entry.insert("type".into(), "http".into());
            }
        }
    }
}

fn put_secrets(
    entry: &mut Map<String, Value>,
    key: &str,
    values: &BTreeMap<String, SecretTemplate>,
    audience: Audience,
) {
    let mut object = match entry.get_mut(key).map(Value::take) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    // Names that stay keep their place.
    let dropped: Vec<String> = object
        .keys()
        .filter(|name| !values.contains_key(*name))
        .cloned()
        .collect();
    for name in dropped {
        object.shift_remove(&name);
    }
    for (name, value) in values {
        let shown = match audience {
            Audience::File => value.written(),
            Audience::People => value.masked(),
        };
        object.insert(name.clone(), shown.into());
    }
    put_or_drop(
        entry,
        key,
        (!object.is_empty()).then_some(Value::Object(object)),
    );
}

fn put_enabled(entry: &mut Map<String, Value>, enabled: bool) {
    // Both may be there if they agree.
    let uses_disabled = entry.contains_key("disabled");
    if uses_disabled {
        entry.insert("disabled".into(), (!enabled).into());
    }
    if entry.contains_key("enabled") || (!uses_disabled && !enabled) {
        entry.insert("enabled".into(), enabled.into());
    }
}

fn put_or_drop(entry: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            entry.insert(key.to_owned(), value);
        }
        None => {
            entry.shift_remove(key);
        }
    }
}

/// The one of several keys with the same meaning that the entry uses, or the first.
fn key_in_use<'k>(entry: &Map<String, Value>, keys: &[&'k str]) -> &'k str {
    let in_use = keys
        .iter()
        .find(|key| entry.get(**key).is_some_and(|value| !value.is_null()));
    in_use.or(keys.first()).copied().unwrap_or_default()
}

fn timeout_of(server: &ServerConfig) -> Option<Value> {
    (server.timeout != ServerConfig::DEFAULT_TIMEOUT).then(|| duration::to_json(server.timeout))
}

fn concurrency_of(server: &ServerConfig) -> Option<Value> {
    (server.max_concurrency != ServerConfig::DEFAULT_MAX_CONCURRENCY)
        .then(|| server.max_concurrency.get().into())
}

fn refresh_of(server: &ServerConfig) -> Option<Value> {
    server.refresh_interval.map(duration::to_json)
}

fn trust_of(server: &ServerConfig) -> Option<Value> {
    (server.trust != Trust::default()).then(|| server.trust.as_str().into())
}

fn sharing_of(server: &ServerConfig) -> Option<Value> {
    (server.sharing != Sharing::default()).then(|| server.sharing.as_str().into())
}
