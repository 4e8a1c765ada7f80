//! From the text of a config file to a [`Config`], with warnings for what nothing reads.

mod server;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::{IntentMode, Rules, ServerGlobs, Tier, Unannotated};
use serde_json::{Map, Value};

pub use self::server::{ParsedServer, parse_server};
pub(crate) use self::server::{URL_KEYS, WORKING_DIR_KEYS};
use crate::duration;
use crate::error::LoadError;
use crate::fault::{Fault, Problem};
use crate::json::{Fields, JsonPath, Kind, Node, Position};
use crate::limits::read_limits;
use crate::model::{
    ActivityConfig, Config, EndpointsConfig, Payloads, RetrieveToolsConfig, SHORTEST_API_KEY,
};
use crate::overrides::ToolOverrides;
use crate::secret::Secret;
use crate::template::Template;
use crate::warning::Warning;

/// A config and what is doubtful about its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<Warning>,
}

/// Reads the config file at `file`.
pub fn load(file: &Path) -> Result<Loaded, LoadError> {
    let bytes = std::fs::read(file).map_err(|source| LoadError::Unreadable {
        file: file.to_owned(),
        source,
    })?;
    parse(&bytes, file)
}

/// Reads the content of a config file; `file` is only named in errors.
pub fn parse(content: &[u8], file: &Path) -> Result<Loaded, LoadError> {
    let invalid = |fault| LoadError::Invalid {
        file: file.to_owned(),
        fault,
    };
    let text = decode(content).map_err(invalid)?;
    let mut warnings = Vec::new();
    let config = read_config(text, &mut warnings).map_err(invalid)?;
    // They were found in the order of the model; people go through the file.
    warnings.sort_by_key(|warning| warning.position);
    Ok(Loaded { config, warnings })
}

/// The text without the byte order mark some editors put in front.
pub(crate) fn decode(content: &[u8]) -> Result<&str, Fault> {
    let text = std::str::from_utf8(content).map_err(|error| {
        let valid = String::from_utf8_lossy(&content[..error.valid_up_to()]);
        let position = Position::of_offset(&valid, valid.len());
        Fault::new(JsonPath::default(), position, Problem::NotUtf8(error))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(Fault::new(
            JsonPath::default(),
            Position::START,
            Problem::Empty,
        ));
    }
    Ok(text)
}

/// The document as a tree, for editing.
pub(crate) fn read_object(text: &str) -> Result<Map<String, Value>, Fault> {
    serde_json::from_str(text).map_err(|error| {
        let position = Position::of_error(text, &error);
        Fault::new(JsonPath::default(), position, Problem::Syntax(error))
    })
}

fn read_config(text: &str, warnings: &mut Vec<Warning>) -> Result<Config, Fault> {
    let root = Node::parse(text)?;
    let mut fields = Fields::of(&root)?;
    let default = Config::default();
    // Editors find the schema of the file by this key.
    fields.take("$schema");
    let intent = fields
        .read("intent_declaration", |node| {
            read_intent_declaration(node, warnings)
        })?
        .unwrap_or_default();
    let config = Config {
        listen: fields
            .read("listen", read_listen)?
            .unwrap_or(default.listen),
        data_dir: fields.read("data_dir", read_path)?,
        api_key: fields.read("api_key", read_api_key)?,
        require_mcp_auth: fields
            .read("require_mcp_auth", Node::boolean)?
            .unwrap_or(default.require_mcp_auth),
        allow_stdio_over_http: fields
            .read("allow_stdio_over_http", Node::boolean)?
            .unwrap_or(default.allow_stdio_over_http),
        tool_response_limit: fields
            .read("tool_response_limit", read_size)?
            .unwrap_or(default.tool_response_limit),
        intent_declaration: intent.rules,
        unannotated_is_decided: intent.unannotated_is_decided,
        distrust: intent.distrust,
        tool_overrides: fields
            .read("tool_overrides", read_tool_overrides)?
            .unwrap_or(default.tool_overrides),
        retrieve_tools: fields
            .read("retrieve_tools", |node| read_retrieve_tools(node, warnings))?
            .unwrap_or(default.retrieve_tools),
        activity: fields
            .read("activity", |node| read_activity(node, warnings))?
            .unwrap_or(default.activity),
        endpoints: fields
            .read("endpoints", |node| read_endpoints(node, warnings))?
            .unwrap_or(default.endpoints),
        shutdown_grace: fields
            .read("shutdown_grace", read_duration)?
            .unwrap_or(default.shutdown_grace),
        exit_when_idle: fields.read("exit_when_idle", read_duration)?,
        limits: fields
            .read("limits", |node| read_limits(node, warnings))?
            .unwrap_or(default.limits),
        mcp_servers: fields
            .read("mcpServers", |node| server::read_servers(node, warnings))?
            .unwrap_or(default.mcp_servers),
    };
    fields.finish(warnings);
    Ok(config)
}

/// The section `intent_declaration`.
#[derive(Default)]
struct IntentDeclaration {
    rules: Rules,
    unannotated_is_decided: bool,
    distrust: ServerGlobs,
}

fn read_intent_declaration(
    node: &Node<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<IntentDeclaration, Fault> {
    let mut fields = Fields::of(node)?;
    let default = Rules::default();
    let unannotated = fields.read("unannotated", |node| {
        choice(
            node,
            &[
                ("trust", Unannotated::Trust),
                ("infer", Unannotated::Infer),
                ("deny", Unannotated::Deny),
            ],
        )
    })?;
    let rules = Rules {
        mode: fields
            .read("mode", |node| {
                choice(
                    node,
                    &[
                        ("two_key", IntentMode::TwoKey),
                        ("inferred", IntentMode::Inferred),
                    ],
                )
            })?
            .unwrap_or(default.mode),
        strict_server_validation: fields
            .read("strict_server_validation", Node::boolean)?
            .unwrap_or(default.strict_server_validation),
        unannotated: unannotated.unwrap_or(default.unannotated),
    };
    let distrust = fields
        .read("distrust", read_server_globs)?
        .unwrap_or_default();
    fields.finish(warnings);
    Ok(IntentDeclaration {
        rules,
        unannotated_is_decided: unannotated.is_some(),
        distrust,
    })
}

fn read_server_globs(node: &Node<'_>) -> Result<ServerGlobs, Fault> {
    let elements = node.elements()?;
    let patterns: Vec<String> = elements
        .iter()
        .map(Node::string)
        .collect::<Result<_, _>>()?;
    ServerGlobs::compile(&patterns).map_err(|error| {
        let culprit = patterns
            .iter()
            .position(|pattern| *pattern == error.pattern);
        let culprit = culprit
            .and_then(|index| elements.get(index))
            .unwrap_or(node);
        culprit.fault(Problem::ServerGlob(error))
    })
}

fn read_retrieve_tools(
    node: &Node<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<RetrieveToolsConfig, Fault> {
    let mut fields = Fields::of(node)?;
    let default = RetrieveToolsConfig::default();
    let retrieve_tools = RetrieveToolsConfig {
        schema_budget: fields
            .read("schema_budget", read_size)?
            .unwrap_or(default.schema_budget),
    };
    fields.finish(warnings);
    Ok(retrieve_tools)
}

fn read_endpoints(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<EndpointsConfig, Fault> {
    let mut fields = Fields::of(node)?;
    let default = EndpointsConfig::default();
    let endpoints = EndpointsConfig {
        server: fields
            .read("server", Node::boolean)?
            .unwrap_or(default.server),
        direct: fields
            .read("direct", Node::boolean)?
            .unwrap_or(default.direct),
    };
    fields.finish(warnings);
    Ok(endpoints)
}

fn read_activity(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<ActivityConfig, Fault> {
    let mut fields = Fields::of(node)?;
    let default = ActivityConfig::default();
    let activity = ActivityConfig {
        retention_days: fields
            .read("retention_days", read_days)?
            .unwrap_or(default.retention_days),
        max_records: fields
            .read("max_records", Node::whole_number)?
            .unwrap_or(default.max_records),
        max_size_mb: fields
            .read("max_size_mb", Node::whole_number)?
            .unwrap_or(default.max_size_mb),
        max_response_bytes: fields
            .read("max_response_bytes", read_size)?
            .unwrap_or(default.max_response_bytes),
        max_argument_bytes: fields
            .read("max_argument_bytes", read_size)?
            .unwrap_or(default.max_argument_bytes),
        payloads: fields
            .read("payloads", |node| {
                choice(node, &[("full", Payloads::Full), ("none", Payloads::None)])
            })?
            .unwrap_or(default.payloads),
    };
    fields.finish(warnings);
    Ok(activity)
}

fn read_tool_overrides(node: &Node<'_>) -> Result<ToolOverrides, Fault> {
    let tiers = Tier::ALL.map(|tier| (tier.as_str(), tier));
    let members = node.members()?;
    let written = members
        .iter()
        .map(|member| Ok((member.key.clone(), choice(&member.value, &tiers)?)))
        .collect::<Result<_, Fault>>()?;
    ToolOverrides::compile(written).map_err(|error| {
        let culprit = members.iter().find(|member| member.key == error.pattern);
        let (path, position) = match culprit {
            Some(member) => (member.value.path(), member.position),
            None => (node.path(), node.position()),
        };
        Fault::new(path.clone(), position, Problem::Pattern(error.source))
    })
}

fn read_listen(node: &Node<'_>) -> Result<SocketAddr, Fault> {
    let found = node.string()?;
    found
        .parse()
        .map_err(|source| node.fault(Problem::Address { found, source }))
}

fn read_api_key(node: &Node<'_>) -> Result<Secret, Fault> {
    let text = read_text(node)?;
    // Taken literally, the reference itself would become a key that anybody can guess.
    let holds_reference = text
        .parse::<Template>()
        .map_or(true, |template| template.variables().next().is_some());
    if holds_reference {
        return Err(node.fault(Problem::ReferenceAsKey));
    }
    let length = text.chars().count();
    if length < SHORTEST_API_KEY {
        return Err(node.fault(Problem::ShortKey { length }));
    }
    Ok(text.into())
}

fn read_path(node: &Node<'_>) -> Result<PathBuf, Fault> {
    read_text(node).map(PathBuf::from)
}

/// A string that is not empty.
fn read_text(node: &Node<'_>) -> Result<String, Fault> {
    let text = node.string()?;
    if text.is_empty() {
        return Err(node.fault(Problem::EmptyText));
    }
    Ok(text)
}

fn read_size(node: &Node<'_>) -> Result<usize, Fault> {
    // Not `usize::MAX`: what a file may say must not depend on the machine.
    read_number(node, 0, u32::MAX)
}

fn read_days(node: &Node<'_>) -> Result<u32, Fault> {
    // A thousand years; more would overflow calendars.
    read_number(node, 0, 365_000)
}

pub(crate) fn read_duration(node: &Node<'_>) -> Result<Duration, Fault> {
    let duration = match node.kind() {
        Kind::Number => duration::from_seconds(node.text()),
        Kind::String => duration::from_text(&node.string()?),
        found => {
            return Err(node.fault(Problem::WrongKind {
                expected: "a number of seconds or a text such as \"30s\"",
                found,
            }));
        }
    };
    duration.map_err(|error| node.fault(error))
}

pub(crate) fn read_number<T: TryFrom<usize>>(
    node: &Node<'_>,
    lowest: u32,
    highest: u32,
) -> Result<T, Fault> {
    let found = node.whole_number()?;
    u32::try_from(found)
        .ok()
        .filter(|number| (lowest..=highest).contains(number))
        .and_then(|number| usize::try_from(number).ok())
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| {
            node.fault(Problem::OutOfRange {
                found,
                lowest,
                highest,
            })
        })
}

fn choice<T: Copy>(node: &Node<'_>, choices: &[(&'static str, T)]) -> Result<T, Fault> {
    let found = node.string()?;
    match choices.iter().find(|(name, _)| *name == found) {
        Some((_, value)) => Ok(*value),
        None => Err(node.fault(Problem::UnknownValue {
            found,
            allowed: choices.iter().map(|(name, _)| *name).collect(),
        })),
    }
}
