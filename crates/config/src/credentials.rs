//! What of an upstream's entry must be struck out wherever it would be recorded or shown.
//!
//! A server is told a whole value, but uses, logs and returns parts of it: the token behind
//! `Bearer`, the password inside `Basic` or inside a URL, one line of a key, one member of a JSON
//! object. So the parts are secrets, too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::secret::Secret;
use crate::secret_option::{is_secret_name, is_secret_option};
use crate::server::{ServerConfig, Transport};
use crate::template::Template;

/// Words before credentials, in whatever header or variable they stand.
const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "apikey", "api-key", "key"];

/// Shorter lines of a value say nothing that is secret by itself: braces, names, short words.
const SHORTEST_LINE: usize = 12;

/// Shorter parts of a path are names; longer ones with digits in them may be keys.
const SHORTEST_KEY: usize = 16;

/// What begins the lines around a key in PEM. They are in every key, and struck out they would
/// keep the others from being recognised.
const ARMOUR: &str = "-----";

/// Variables that are known to hold places and names. Everything else that the config refers to
/// is a secret.
const ORDINARY_VARIABLES: [&str; 12] = [
    "HOME", "USER", "LOGNAME", "PATH", "PWD", "SHELL", "LANG", "TERM", "TMPDIR", "TEMP", "TMP",
    "HOSTNAME",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Env,
    Header,
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

impl ServerConfig {
    /// The values of env and headers, what url and args hold of secrets, and the parts of all these
    /// that are secrets by themselves. What cannot be resolved takes nothing else with it.
    pub fn secrets(&self, lookup: Lookup<'_>) -> Vec<Secret> {
        let mut found = Found::default();
        let (values, kind) = match &self.transport {
            Transport::Stdio {
                command, args, env, ..
            } => {
                found.references(command, lookup);
                found.arguments(args, lookup);
                (env, Kind::Env)
            }
            Transport::Http { url, headers, .. } => {
                found.references(url, lookup);
                if let Ok(url) = url.resolve(lookup) {
                    found.url(&url);
                }
                (headers, Kind::Header)
            }
        };
        for (name, value) in values {
            found.references(value.template(), lookup);
            if let Ok(value) = value.template().resolve(lookup) {
                found.value(name, &value, kind);
            }
        }
        found.secrets
    }
}

/// The secrets that were found so far.
#[derive(Default)]
struct Found {
    secrets: Vec<Secret>,
}

impl Found {
    fn add(&mut self, text: &str) {
        self.secrets.push(text.into());
    }

    /// The variables that a value refers to.
    fn references(&mut self, value: &Template, lookup: Lookup<'_>) {
        let names = value.variables();
        for name in names.filter(|name| !is_ordinary_variable(name)) {
            if let Some(value) = lookup(name) {
                self.value(name, &value, Kind::Env);
            }
        }
    }

    /// What arguments of a program hold of secrets: `--token x`, `--token=x` and `TOKEN=x`.
    fn arguments(&mut self, arguments: &[Template], lookup: Lookup<'_>) {
        let mut secret_follows = false;
        for argument in arguments {
            self.references(argument, lookup);
            let Ok(argument) = argument.resolve(lookup) else {
                secret_follows = false;
                continue;
            };
            self.url(&argument);
            match argument.split_once('=') {
                _ if secret_follows => self.value("", &argument, Kind::Env),
                Some((name, value)) if is_secret_name(name) => self.value(name, value, Kind::Env),
                _ => {}
            }
            secret_follows =
                !secret_follows && !argument.contains('=') && is_secret_option(&argument);
        }
    }

    /// A whole value and its parts.
    fn value(&mut self, name: &str, value: &str, kind: Kind) {
        self.add(value);
        if let Some((scheme, credentials)) = credentials(name, value, kind) {
            self.add(credentials);
            if let Some(password) = password(scheme, credentials) {
                self.add(&password);
            }
        }
        let lines = value.lines().map(str::trim).filter(|line| {
            line.len() >= SHORTEST_LINE && line.len() < value.len() && !line.starts_with(ARMOUR)
        });
        lines.for_each(|line| self.add(line));
        self.url(value);
        if value.trim_start().starts_with(['{', '['])
            && let Ok(json) = serde_json::from_str(value)
        {
            self.members(&json);
        }
    }

    /// Every string inside a value that is JSON.
    fn members(&mut self, json: &Value) {
        match json {
            Value::String(text) => self.value("", text, Kind::Env),
            Value::Array(items) => items.iter().for_each(|item| self.members(item)),
            Value::Object(members) => members.values().for_each(|member| self.members(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The password of a URL, the values in its query, and what may be a key in its path. Anything
    /// else is left alone: hosts and paths turn up everywhere.
    fn url(&mut self, text: &str) {
        let Some((_, rest)) = text.split_once("://") else {
            return;
        };
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if let Some((user_info, _)) = authority.rsplit_once('@') {
            // A user without a password is a token.
            let (_, password) = user_info.split_once(':').unwrap_or(("", user_info));
            self.encoded(password);
        }
        for part in path.split('/').filter(|part| may_be_key(part)) {
            self.encoded(part);
        }
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some((name, value)) if is_secret_name(name) || may_be_key(value) => {
                    self.encoded(value);
                }
                None if may_be_key(pair) => self.encoded(pair),
                _ => {}
            }
        }
    }

    /// A part of a URL as it is and as it is meant.
    fn encoded(&mut self, part: &str) {
        self.add(part);
        if let Some(decoded) = percent_decoded(part) {
            self.add(&decoded);
        }
    }
}

/// Whether a part of a URL looks like a key: long, with letters and digits.
fn may_be_key(part: &str) -> bool {
    part.len() >= SHORTEST_KEY
        && part.bytes().any(|byte| byte.is_ascii_digit())
        && part.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn is_ordinary_variable(name: &str) -> bool {
    ORDINARY_VARIABLES.contains(&name) || name.starts_with("XDG_") || name.starts_with("LC_")
}

/// What percent-encoded text means, if that is something else.
fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = if let (b'%', Some(byte)) = (first, byte) {
            bytes.push(byte);
            &after[2..]
        } else {
            bytes.push(*first);
            after
        };
    }
    String::from_utf8(bytes).ok()
}

/// What follows the scheme in a value such as `Bearer x`, with the scheme.
fn credentials<'a>(name: &str, value: &'a str, kind: Kind) -> Option<(&'a str, &'a str)> {
    let (scheme, credentials) = value.trim().split_once([' ', '\t'])?;
    let is_known = SCHEMES
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    let is_authorization =
        kind == Kind::Header && name.to_ascii_lowercase().ends_with("authorization");
    (is_known || is_authorization).then(|| (scheme, credentials.trim()))
}

/// The password inside the credentials of `Basic`.
fn password(scheme: &str, credentials: &str) -> Option<String> {
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(credentials).ok()?).ok()?;
    pair.split_once(':')
        .map(|(_, password)| password.to_owned())
}
