//! Reads `mcpServers` in both forms and in the dialects of other clients.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use http::HeaderName;
use policy::{ServerName, Trust};

use super::{choice, read_duration, read_number, read_path, read_text};
use crate::fault::{Fault, Problem};
use crate::json::{Fields, Kind, Node, Position};
use crate::server::{HttpProtocol, ServerConfig, Sharing, Transport};
use crate::template::{SecretTemplate, Template};
use crate::url;
use crate::warning::{Warning, WarningKind};

/// What `type` says about the transport.
#[derive(Clone, Copy, PartialEq)]
enum DeclaredType {
    Stdio,
    Http(HttpProtocol),
}

const TYPES: [(&str, DeclaredType); 4] = [
    ("stdio", DeclaredType::Stdio),
    ("http", DeclaredType::Http(HttpProtocol::Streamable)),
    (
        "streamable-http",
        DeclaredType::Http(HttpProtocol::Streamable),
    ),
    ("sse", DeclaredType::Http(HttpProtocol::Sse)),
];

/// One server that was described on its own, and what is doubtful about the description.
#[derive(Debug)]
pub struct ParsedServer {
    pub server: ServerConfig,
    pub warnings: Vec<Warning>,
}

/// `url` and what Gemini and Windsurf call it.
pub(crate) const URL_KEYS: [&str; 3] = ["url", "httpUrl", "serverUrl"];
pub(crate) const WORKING_DIR_KEYS: [&str; 2] = ["working_dir", "cwd"];

pub(super) fn read_servers(
    node: &Node<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<ServerConfig>, Fault> {
    match node.kind() {
        Kind::Array => read_list(node, warnings),
        Kind::Object => node
            .members()?
            .iter()
            .map(|member| {
                let name = member.key.parse().map_err(|error| {
                    let path = member.value.path().clone();
                    Fault::new(path, member.position, Problem::ServerName(error))
                })?;
                read_server(name, Fields::of(&member.value)?, warnings)
            })
            .collect(),
        found => Err(node.fault(Problem::WrongKind {
            expected: "an object or an array of servers",
            found,
        })),
    }
}

/// Reads one entry of the list form from a text of its own.
pub fn parse_server(text: &str) -> Result<ParsedServer, Fault> {
    let node = Node::parse(text)?;
    let mut fields = Fields::of(&node)?;
    let mut warnings = Vec::new();
    let (name, _) = read_name(&mut fields)?;
    let server = read_server(name, fields, &mut warnings)?;
    Ok(ParsedServer { server, warnings })
}

fn read_list(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<Vec<ServerConfig>, Fault> {
    let mut servers: Vec<ServerConfig> = Vec::new();
    let mut seen: BTreeMap<ServerName, Position> = BTreeMap::new();
    for element in node.elements()? {
        let mut fields = Fields::of(&element)?;
        let (name, name_node) = read_name(&mut fields)?;
        if let Some(&first) = seen.get(&name) {
            return Err(name_node.fault(Problem::DuplicateServer { first }));
        }
        seen.insert(name.clone(), name_node.position());
        servers.push(read_server(name, fields, warnings)?);
    }
    Ok(servers)
}

fn read_name<'a>(fields: &mut Fields<'a>) -> Result<(ServerName, Node<'a>), Fault> {
    let node = fields
        .take("name")
        .ok_or_else(|| fields.fault(Problem::MissingName))?;
    let name = node
        .string()?
        .parse()
        .map_err(|error| node.fault(Problem::ServerName(error)))?;
    Ok((name, node))
}

/// Reads one entry whose name is already known.
fn read_server(
    name: ServerName,
    mut fields: Fields<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<ServerConfig, Fault> {
    let transport = read_transport(&mut fields, warnings)?;
    let server = ServerConfig {
        name,
        transport,
        enabled: read_enabled(&mut fields)?,
        timeout: fields
            .read("timeout", read_duration)?
            .unwrap_or(ServerConfig::DEFAULT_TIMEOUT),
        max_concurrency: fields
            .read("max_concurrency", read_concurrency)?
            .unwrap_or(ServerConfig::DEFAULT_MAX_CONCURRENCY),
        refresh_interval: fields.read("refresh_interval", read_duration)?,
        trust: fields.read("trust", read_trust)?.unwrap_or_default(),
        sharing: fields.read("sharing", read_sharing)?.unwrap_or_default(),
    };
    fields.finish(warnings);
    Ok(server)
}

fn read_transport(
    fields: &mut Fields<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Transport, Fault> {
    let declared = fields.read("type", |node| Ok((choice(node, &TYPES)?, node.clone())))?;
    let command = fields.take("command");
    let args = fields.take("args");
    let env = fields.take("env");
    let working_dir = fields.take_one_of(&WORKING_DIR_KEYS)?;
    let url = fields.take_one_of(&URL_KEYS)?;
    let headers = fields.take("headers");
    match (command, url) {
        (Some(_), Some(_)) => Err(fields.fault(Problem::TwoTransports)),
        (None, None) => Err(fields.fault(Problem::NoTransport)),
        (Some(command), None) => {
            if let Some((DeclaredType::Http(_), node)) = declared {
                return Err(node.fault(Problem::TransportType { needed: "url" }));
            }
            warn_no_effect([headers], "command", warnings);
            Ok(Transport::Stdio {
                command: read_command(&command, warnings)?,
                args: read_arguments(args.as_ref(), warnings)?,
                env: read_env(env.as_ref(), warnings)?,
                working_dir: working_dir.as_ref().map(read_path).transpose()?,
            })
        }
        (None, Some(url)) => {
            let protocol = match declared {
                Some((DeclaredType::Stdio, node)) => {
                    return Err(node.fault(Problem::TransportType { needed: "command" }));
                }
                Some((DeclaredType::Http(protocol), _)) => protocol,
                None => HttpProtocol::default(),
            };
            warn_no_effect([args, env, working_dir], "url", warnings);
            Ok(Transport::Http {
                url: read_url(&url, warnings)?,
                headers: read_headers(headers.as_ref(), warnings)?,
                protocol,
            })
        }
    }
}

/// Empty values are not worth a warning: some clients write `"env": {}` into every entry.
fn warn_no_effect<const N: usize>(
    nodes: [Option<Node<'_>>; N],
    beside: &'static str,
    warnings: &mut Vec<Warning>,
) {
    for node in nodes.into_iter().flatten() {
        let is_empty = match node.kind() {
            Kind::Object => node.members().is_ok_and(|members| members.is_empty()),
            Kind::Array => node.elements().is_ok_and(|elements| elements.is_empty()),
            _ => false,
        };
        if !is_empty {
            warnings.push(Warning {
                path: node.path().clone(),
                position: node.position(),
                kind: WarningKind::NoEffect { beside },
            });
        }
    }
}

fn read_template(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<Template, Fault> {
    let template: Template = node
        .string()?
        .parse()
        .map_err(|error| node.fault(Problem::Template(error)))?;
    if let Some(name) = template.foreign_reference() {
        warnings.push(Warning {
            path: node.path().clone(),
            position: node.position(),
            kind: WarningKind::NotExpanded {
                name: name.to_owned(),
            },
        });
    }
    Ok(template)
}

fn read_command(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<Template, Fault> {
    read_text(node)?;
    read_template(node, warnings)
}

fn read_arguments(
    node: Option<&Node<'_>>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Template>, Fault> {
    let Some(node) = node else {
        return Ok(Vec::new());
    };
    node.elements()?
        .iter()
        .map(|element| read_template(element, warnings))
        .collect()
}

fn read_env(
    node: Option<&Node<'_>>,
    warnings: &mut Vec<Warning>,
) -> Result<BTreeMap<String, SecretTemplate>, Fault> {
    read_named_secrets(node, warnings, |name| {
        let usable = !name.is_empty() && !name.contains(|c: char| c == '=' || c.is_control());
        usable.then_some(()).ok_or(Problem::VariableName {
            found: name.to_owned(),
        })
    })
}

fn read_headers(
    node: Option<&Node<'_>>,
    warnings: &mut Vec<Warning>,
) -> Result<BTreeMap<String, SecretTemplate>, Fault> {
    read_named_secrets(node, warnings, |name| match name.parse::<HeaderName>() {
        Ok(_) => Ok(()),
        Err(_) => Err(Problem::HeaderName {
            found: name.to_owned(),
        }),
    })
}

fn read_named_secrets(
    node: Option<&Node<'_>>,
    warnings: &mut Vec<Warning>,
    check_name: impl Fn(&str) -> Result<(), Problem>,
) -> Result<BTreeMap<String, SecretTemplate>, Fault> {
    let mut secrets = BTreeMap::new();
    for member in node.map(Node::members).transpose()?.unwrap_or_default() {
        check_name(&member.key)
            .map_err(|problem| Fault::new(member.value.path().clone(), member.position, problem))?;
        let template = read_template(&member.value, warnings)?;
        secrets.insert(member.key, template.into());
    }
    Ok(secrets)
}

fn read_url(node: &Node<'_>, warnings: &mut Vec<Warning>) -> Result<Template, Fault> {
    let template = read_template(node, warnings)?;
    url::check_template(&template).map_err(|error| node.fault(error))?;
    Ok(template)
}

fn read_enabled(fields: &mut Fields<'_>) -> Result<bool, Fault> {
    let enabled = fields.read("enabled", Node::boolean)?;
    let disabled = fields.read("disabled", |node| Ok((node.boolean()?, node.clone())))?;
    match (enabled, disabled) {
        (Some(enabled), Some((disabled, node))) if enabled == disabled => {
            Err(node.fault(Problem::EnabledAndDisabled))
        }
        (Some(enabled), _) => Ok(enabled),
        (None, Some((disabled, _))) => Ok(!disabled),
        (None, None) => Ok(true),
    }
}

fn read_sharing(node: &Node<'_>) -> Result<Sharing, Fault> {
    choice(
        node,
        &Sharing::ALL.map(|sharing| (sharing.as_str(), sharing)),
    )
}

fn read_trust(node: &Node<'_>) -> Result<Trust, Fault> {
    choice(node, &[("log", Trust::Log), ("pin", Trust::Pin)])
}

fn read_concurrency(node: &Node<'_>) -> Result<NonZeroUsize, Fault> {
    read_number(node, 1, 10_000)
}
