//! What of an upstream's entry must be struck out wherever it would be recorded or shown.
//!
//! A server is told a whole value, but uses, logs and returns parts of it: the token behind
//! `Bearer`, the password inside `Basic`, one line of a key. So the parts are secrets, too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::secret::Secret;
use crate::secret_option::is_secret_name;
use crate::server::{ServerConfig, Transport};
use crate::template::SecretTemplate;

/// Words before credentials, in whatever header or variable they stand.
const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "apikey", "api-key", "key"];

/// Shorter lines of a value say nothing that is secret by itself: braces, names, short words.
const SHORTEST_LINE: usize = 12;

/// What begins the lines around a key in PEM. They are in every key, and struck out they would
/// keep the others from being recognised.
const ARMOUR: &str = "-----";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Env,
    Header,
}

impl ServerConfig {
    /// The values of env and headers, and their parts that are secrets by themselves. What cannot
    /// be resolved takes nothing else with it.
    pub fn secrets(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Vec<Secret> {
        let (values, kind) = match &self.transport {
            Transport::Stdio { env, .. } => (env, Kind::Env),
            Transport::Http { headers, .. } => (headers, Kind::Header),
        };
        let mut secrets = Vec::new();
        for (name, value) in values {
            secrets.extend(filled_in(value, kind, lookup));
            if let Ok(value) = value.template().resolve(lookup) {
                secrets.extend(parts(name, &value, kind).map(Secret::from));
                secrets.push(value.into());
            }
        }
        secrets
    }
}

/// The variables that a value refers to. Those of a header are there for their secrets; env also
/// has such as `${env:HOME}/notes`, and there the name has to say so.
fn filled_in(
    value: &SecretTemplate,
    kind: Kind,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Vec<Secret> {
    let variables = value.template().variables();
    variables
        .filter(|name| kind == Kind::Header || is_secret_name(name))
        .filter_map(lookup)
        .map(Secret::from)
        .collect()
}

fn parts<'a>(name: &str, value: &'a str, kind: Kind) -> impl Iterator<Item = String> + 'a {
    let credentials = credentials(name, value, kind);
    let password = credentials.and_then(|(scheme, credentials)| password(scheme, credentials));
    let lines = value.lines().map(str::trim).filter(move |line| {
        line.len() >= SHORTEST_LINE && line.len() < value.len() && !line.starts_with(ARMOUR)
    });
    let credentials = credentials.map(|(_, credentials)| credentials);
    let parts = credentials.into_iter().chain(lines);
    parts.map(ToOwned::to_owned).chain(password)
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
