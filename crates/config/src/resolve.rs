//! Fills in what an upstream needs to start: every `${env:NAME}` of its transport.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use policy::ServerName;

use crate::secret::Secret;
use crate::server::{HttpProtocol, ServerConfig, Transport};
use crate::template::{MissingVariable, SecretTemplate, Template};
use crate::url::{self, UrlError};

/// A [`Transport`] with every `${env:NAME}` replaced. All of it may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedTransport {
    Stdio {
        command: String,
        args: Vec<Secret>,
        env: BTreeMap<String, Secret>,
        working_dir: Option<PathBuf>,
    },
    Http {
        url: Secret,
        headers: BTreeMap<String, Secret>,
        protocol: HttpProtocol,
    },
}

/// Why an upstream's transport cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("{source}, and mcpServers.{server}.{place} refers to it; set it where mcpproxy starts")]
    Variable {
        server: ServerName,
        place: Place,
        #[source]
        source: MissingVariable,
    },
    #[error("mcpServers.{server}.url is not usable with its variables filled in: {source}")]
    Url {
        server: ServerName,
        #[source]
        source: UrlError,
    },
}

/// Where in an entry of `mcpServers` a reference stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Command,
    Argument(usize),
    Env(String),
    Url,
    Header(String),
}

impl ServerConfig {
    /// The transport with the variables that `lookup` knows.
    pub fn resolve(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ResolvedTransport, ResolveError> {
        let resolver = Resolver {
            server: &self.name,
            lookup,
        };
        match &self.transport {
            Transport::Stdio {
                command,
                args,
                env,
                working_dir,
            } => Ok(ResolvedTransport::Stdio {
                command: resolver.text(command, Place::Command)?,
                args: args
                    .iter()
                    .enumerate()
                    .map(|(index, argument)| resolver.text(argument, Place::Argument(index)))
                    .map(|resolved| resolved.map(Secret::from))
                    .collect::<Result<_, _>>()?,
                env: resolver.secrets(env, Place::Env)?,
                working_dir: working_dir.clone(),
            }),
            Transport::Http {
                url,
                headers,
                protocol,
            } => Ok(ResolvedTransport::Http {
                url: resolver.url(url)?,
                headers: resolver.secrets(headers, Place::Header)?,
                protocol: *protocol,
            }),
        }
    }
}

/// Resolves the templates of one upstream and says whose they were if that fails.
struct Resolver<'a> {
    server: &'a ServerName,
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl Resolver<'_> {
    fn text(&self, template: &Template, place: Place) -> Result<String, ResolveError> {
        template
            .resolve(self.lookup)
            .map_err(|source| ResolveError::Variable {
                server: self.server.clone(),
                place,
                source,
            })
    }

    fn secrets(
        &self,
        templates: &BTreeMap<String, SecretTemplate>,
        place: fn(String) -> Place,
    ) -> Result<BTreeMap<String, Secret>, ResolveError> {
        templates
            .iter()
            .map(|(name, secret)| {
                let text = self.text(secret.template(), place(name.clone()))?;
                Ok((name.clone(), text.into()))
            })
            .collect()
    }

    fn url(&self, template: &Template) -> Result<Secret, ResolveError> {
        let url = self.text(template, Place::Url)?;
        match url::check(&url) {
            Ok(()) => Ok(url.into()),
            Err(source) => Err(ResolveError::Url {
                server: self.server.clone(),
                source,
            }),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command => formatter.write_str("command"),
            Self::Argument(index) => write!(formatter, "args[{index}]"),
            Self::Env(name) => write!(formatter, "env.{name}"),
            Self::Url => formatter.write_str("url"),
            Self::Header(name) => write!(formatter, "headers.{name}"),
        }
    }
}
