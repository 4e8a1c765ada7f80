//! A server as it is sent to the daemon: an entry of `mcpServers` with its name in it. Reading is
//! left to `config`; the shapes here exist only to be described.
#![expect(dead_code, reason = "described, never made")]

use std::collections::BTreeMap;

use config::{Fault, ParsedServer, ServerConfig, WarningKind};
use policy::Trust;
use utoipa::ToSchema;

use crate::rest::ApiError;

/// A new server: a program to start, or an address to connect to.
#[derive(ToSchema)]
#[serde(untagged)]
pub(in crate::rest) enum ServerEntry {
    Program(ProgramEntry),
    Address(AddressEntry),
}

/// A program that is started and spoken to over its stdin and stdout.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::rest) struct ProgramEntry {
    /// Unique among all servers.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9][A-Za-z0-9.-]*(_[A-Za-z0-9.-]+)*$"
    )]
    name: String,
    #[schema(min_length = 1)]
    command: String,
    args: Option<Vec<String>>,
    /// Added to a small set of inherited variables. `${env:NAME}` is replaced by the variable.
    env: Option<BTreeMap<VariableNameText, String>>,
    #[schema(min_length = 1)]
    working_dir: Option<String>,
    enabled: Option<bool>,
    /// Seconds that one call may take, or a text such as "2m".
    #[schema(minimum = 0.001, maximum = 86_400)]
    timeout: Option<f64>,
    /// How many calls may be under way at once.
    #[schema(minimum = 1, maximum = 10_000)]
    max_concurrency: Option<u32>,
    /// Seconds after which the tools are listed again, or a text such as "10m".
    #[schema(minimum = 0.001, maximum = 86_400)]
    refresh_interval: Option<f64>,
    /// What becomes of a tool that changes; `log` unless given.
    trust: Option<Trust>,
    /// `auto`, `shared` or `per_client`: which clients share a process or a session; `auto` unless given.
    #[schema(pattern = "^(auto|shared|per_client)$")]
    sharing: Option<String>,
}

/// A server that is reached over HTTP.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::rest) struct AddressEntry {
    /// Unique among all servers.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9][A-Za-z0-9.-]*(_[A-Za-z0-9.-]+)*$"
    )]
    name: String,
    /// http:// or https://. `${env:NAME}` is replaced by the variable.
    #[schema(pattern = "^https?://[^ ]+$")]
    url: String,
    /// `http` or `sse`, the transport of 2024-11-05; `http` unless given.
    #[serde(rename = "type")]
    #[schema(pattern = "^(http|streamable-http|sse)$")]
    kind: Option<String>,
    /// Sent with every request. `${env:NAME}` is replaced by the variable.
    headers: Option<BTreeMap<HeaderNameText, String>>,
    enabled: Option<bool>,
    /// Seconds that one call may take, or a text such as "2m".
    #[schema(minimum = 0.001, maximum = 86_400)]
    timeout: Option<f64>,
    /// How many calls may be under way at once.
    #[schema(minimum = 1, maximum = 10_000)]
    max_concurrency: Option<u32>,
    /// Seconds after which the tools are listed again, or a text such as "10m".
    #[schema(minimum = 0.001, maximum = 86_400)]
    refresh_interval: Option<f64>,
    /// What becomes of a tool that changes; `log` unless given.
    trust: Option<Trust>,
    /// `auto`, `shared` or `per_client`: which clients share a process or a session; `auto` unless given.
    #[schema(pattern = "^(auto|shared|per_client)$")]
    sharing: Option<String>,
}

/// The name of an environment variable.
#[derive(ToSchema)]
#[schema(pattern = "^[^=\\u0000-\\u001f\\u007f-\\u009f]+$")]
pub(in crate::rest) struct VariableNameText(String);

/// The name of an HTTP header.
#[derive(ToSchema)]
#[schema(pattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
pub(in crate::rest) struct HeaderNameText(String);

/// Changes to a server, as a JSON merge patch: what is `null` is removed, the rest is set.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::rest) struct ServerPatch {
    #[schema(min_length = 1)]
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<VariableNameText, Option<String>>>,
    #[schema(min_length = 1)]
    working_dir: Option<String>,
    #[schema(pattern = "^https?://[^ ]+$")]
    url: Option<String>,
    #[serde(rename = "type")]
    #[schema(pattern = "^(stdio|http|streamable-http|sse)$")]
    kind: Option<String>,
    headers: Option<BTreeMap<HeaderNameText, Option<String>>>,
    enabled: Option<bool>,
    #[schema(minimum = 0.001, maximum = 86_400)]
    timeout: Option<f64>,
    #[schema(minimum = 1, maximum = 10_000)]
    max_concurrency: Option<u32>,
    #[schema(minimum = 0.001, maximum = 86_400)]
    refresh_interval: Option<f64>,
    trust: Option<Trust>,
    #[schema(pattern = "^(auto|shared|per_client)$")]
    sharing: Option<String>,
}

/// Reads an entry. A key that nothing reads is refused here: in a file it may belong to somebody
/// else, in a request it is a mistake.
pub(super) fn read(text: &str) -> Result<ServerConfig, ApiError> {
    let ParsedServer { server, warnings } =
        config::parse_server(text).map_err(|fault| refused(&fault))?;
    let mistake = warnings
        .iter()
        .find(|warning| !matches!(warning.kind, WarningKind::NotExpanded { .. }));
    match mistake {
        Some(warning) => {
            Err(ApiError::bad_request(warning.to_string()).hint("leave the key out, or correct it"))
        }
        None => Ok(server),
    }
}

/// Whether the entry says which clients share the server.
pub(super) fn says_sharing(text: &str) -> bool {
    let entry = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text);
    entry.is_ok_and(|entry| entry.contains_key("sharing"))
}

fn refused(fault: &Fault) -> ApiError {
    let place = if fault.path.is_root() {
        String::new()
    } else {
        format!("{} at ", fault.path)
    };
    ApiError::bad_request(format!("the server is not valid: {place}{fault}"))
        .hint(fault.problem.help())
}
