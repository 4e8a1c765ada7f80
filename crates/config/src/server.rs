//! One upstream as the config describes it.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use policy::{ServerName, Trust};
use schemars::JsonSchema;
use serde::Serialize;

use crate::template::{SecretTemplate, Template};
use crate::url::{self, UrlError};

/// One entry of `mcpServers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    pub name: ServerName,
    pub transport: Transport,
    pub enabled: bool,
    /// How long one call may take.
    pub timeout: Duration,
    /// How many calls may be under way at once.
    pub max_concurrency: NonZeroUsize,
    /// How often the tools are listed again, if not as often as by default.
    pub refresh_interval: Option<Duration>,
    /// What becomes of a tool whose definition changes.
    pub trust: Trust,
    /// Which clients share a connection.
    pub sharing: Sharing,
}

/// Which clients of an upstream share a process or a session of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Over HTTP each client has a session of its own, over stdio each client of `/mcp/server` and
    /// `/mcp/direct` a process of its own; the clients of `/mcp` share one until the server asks something.
    #[default]
    Auto,
    /// All clients share one: the server holds a file, a profile or a port that only one process can have.
    Shared,
    /// Each client has its own, also on `/mcp`.
    PerClient,
}

/// How an upstream is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that is started and spoken to over its stdin and stdout.
    Stdio {
        command: Template,
        args: Vec<Template>,
        env: BTreeMap<String, SecretTemplate>,
        working_dir: Option<PathBuf>,
    },
    Http {
        url: Template,
        headers: BTreeMap<String, SecretTemplate>,
        protocol: HttpProtocol,
    },
}

/// Which of the two HTTP transports of MCP an upstream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpProtocol {
    #[default]
    Streamable,
    /// The transport of 2024-11-05, with an event stream of its own.
    Sse,
}

impl ServerConfig {
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
    /// Enough for every client of one person, and a bound for a loop gone wild.
    pub const DEFAULT_MAX_CONCURRENCY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

    /// An enabled upstream with every default.
    pub fn new(name: ServerName, transport: Transport) -> Self {
        Self {
            name,
            transport,
            enabled: true,
            timeout: Self::DEFAULT_TIMEOUT,
            max_concurrency: Self::DEFAULT_MAX_CONCURRENCY,
            refresh_interval: None,
            trust: Trust::default(),
            sharing: Sharing::default(),
        }
    }

    /// Whether a connection made for this entry also serves the other: they differ in limits at
    /// most.
    pub fn keeps_connection(&self, other: &Self) -> bool {
        self.transport == other.transport && self.enabled == other.enabled
    }
}

impl Sharing {
    pub const ALL: [Self; 3] = [Self::Auto, Self::Shared, Self::PerClient];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Shared => "shared",
            Self::PerClient => "per_client",
        }
    }
}

impl Transport {
    /// A program with arguments, both taken literally, and nothing else.
    pub fn program<'a>(command: &str, args: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Stdio {
            command: Template::literal(command),
            args: args.into_iter().map(Template::literal).collect(),
            env: BTreeMap::new(),
            working_dir: None,
        }
    }

    /// A streamable HTTP server at this address, taken literally, and nothing else.
    pub fn http(address: &str) -> Result<Self, UrlError> {
        url::check(address)?;
        Ok(Self::Http {
            url: Template::literal(address),
            headers: BTreeMap::new(),
            protocol: HttpProtocol::default(),
        })
    }
}

// Written by hand because a url may carry a key in its query or user part.
impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio {
                command,
                args,
                env,
                working_dir,
            } => formatter
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", env)
                .field("working_dir", working_dir)
                .finish(),
            Self::Http {
                url,
                headers,
                protocol,
            } => formatter
                .debug_struct("Http")
                .field("url", &url::masked(url))
                .field("headers", headers)
                .field("protocol", protocol)
                .finish(),
        }
    }
}
