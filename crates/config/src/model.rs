//! The config as the rest of mcpproxy sees it: every value parsed, every default filled in.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use policy::{Rules, ServerGlobs, ServerName};
use schemars::JsonSchema;
use serde::Serialize;

use crate::limits::Limits;
use crate::overrides::ToolOverrides;
use crate::secret::Secret;
use crate::server::ServerConfig;

/// An API key with fewer characters can be guessed.
pub const SHORTEST_API_KEY: usize = 16;

/// The whole config.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the daemon listens.
    pub listen: SocketAddr,
    /// Where the activity log and logs of upstreams live, if not in the default place.
    pub data_dir: Option<PathBuf>,
    /// The key of the REST API; made at first run when there is none.
    pub api_key: Option<Secret>,
    /// Whether MCP clients need the API key, too.
    pub require_mcp_auth: bool,
    /// Whether whoever has the API key may add a server that is a program, over TCP.
    pub allow_stdio_over_http: bool,
    /// Characters of a result after which it is cut on `/mcp`; 0 means never.
    pub tool_response_limit: usize,
    pub intent_declaration: Rules,
    /// Whether the file says what to think of tools without hints, or the default applies.
    pub unannotated_is_decided: bool,
    /// `intent_declaration.distrust`: the servers whose word about their tools is not enough.
    pub distrust: ServerGlobs,
    pub tool_overrides: ToolOverrides,
    pub retrieve_tools: RetrieveToolsConfig,
    pub activity: ActivityConfig,
    pub endpoints: EndpointsConfig,
    /// How long calls under way may take to end when the daemon stops.
    pub shutdown_grace: Duration,
    /// How long a daemon that a command started in the background goes on without a client; for
    /// ever if not set.
    pub exit_when_idle: Option<Duration>,
    /// Takes effect when the daemon starts.
    pub limits: Limits,
    /// In the order of the file; names are unique.
    pub mcp_servers: Vec<ServerConfig>,
}

/// How `retrieve_tools` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default)]
pub struct RetrieveToolsConfig {
    /// Characters of whole input schemas in one answer; later tools get a one-line signature.
    pub schema_budget: usize,
}

/// Which of the endpoints beside `/mcp` are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default)]
pub struct EndpointsConfig {
    /// Whether `/mcp/server/{name}` shows each upstream as itself.
    pub server: bool,
    /// Whether `/mcp/direct` shows the tools of all upstreams at once.
    pub direct: bool,
}

/// What the activity log keeps, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default)]
pub struct ActivityConfig {
    /// Days after which a record is removed; 0 means never.
    pub retention_days: u32,
    /// Number of records after which the oldest are removed; 0 means no limit.
    pub max_records: u64,
    /// Size of the log in MiB after which the oldest records are removed; 0 means no limit.
    pub max_size_mb: u64,
    /// Bytes of a response that are kept; the rest is cut off and marked.
    pub max_response_bytes: usize,
    /// Bytes of the arguments of a call that are kept; the rest is cut off and marked.
    pub max_argument_bytes: usize,
    /// Whether arguments and responses of calls are kept.
    pub payloads: Payloads,
}

/// Whether arguments and responses are kept in the activity log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payloads {
    #[default]
    Full,
    None,
}

impl Config {
    pub const DEFAULT_LISTEN: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
    pub const DEFAULT_TOOL_RESPONSE_LIMIT: usize = 100_000;
    pub const DEFAULT_SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

    pub fn server(&self, name: &ServerName) -> Option<&ServerConfig> {
        self.mcp_servers.iter().find(|server| server.name == *name)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Self::DEFAULT_LISTEN,
            data_dir: None,
            api_key: None,
            require_mcp_auth: false,
            allow_stdio_over_http: false,
            tool_response_limit: Self::DEFAULT_TOOL_RESPONSE_LIMIT,
            intent_declaration: Rules::default(),
            unannotated_is_decided: false,
            distrust: ServerGlobs::default(),
            tool_overrides: ToolOverrides::default(),
            retrieve_tools: RetrieveToolsConfig::default(),
            activity: ActivityConfig::default(),
            endpoints: EndpointsConfig::default(),
            shutdown_grace: Self::DEFAULT_SHUTDOWN_GRACE,
            exit_when_idle: None,
            limits: Limits::default(),
            mcp_servers: Vec::new(),
        }
    }
}

impl Default for RetrieveToolsConfig {
    fn default() -> Self {
        Self {
            schema_budget: 6_000,
        }
    }
}

impl Default for EndpointsConfig {
    fn default() -> Self {
        Self {
            server: true,
            direct: true,
        }
    }
}

impl Default for ActivityConfig {
    fn default() -> Self {
        Self {
            retention_days: 90,
            max_records: 100_000,
            max_size_mb: 256,
            max_response_bytes: 65_536,
            max_argument_bytes: 65_536,
            payloads: Payloads::Full,
        }
    }
}
