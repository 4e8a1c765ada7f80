//! The JSON Schema of the config file, for editors and for `mcpproxy config schema`.
//!
//! The shapes below exist only to be described. Reading is done by hand for the sake of errors, and
//! a test holds the two together.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use policy::{IntentMode, Rules, Tier, Trust, Unannotated};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde::Serialize;
use serde_json::Value;

use crate::duration;
use crate::limits::Limits;
use crate::model::{ActivityConfig, Config, EndpointsConfig, RetrieveToolsConfig};
use crate::server::{ServerConfig, Sharing};

/// The JSON Schema (draft 2020-12) of the config file.
pub fn json_schema() -> Value {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<ConfigFile>()
        .to_value()
}

/// Config of mcpproxy: where it listens, what it allows, and the upstreams it connects to.
#[derive(Serialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "mcpproxy config")]
struct ConfigFile {
    /// Where an editor finds this schema.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// Address and port the daemon listens on.
    #[schemars(with = "String")]
    listen: SocketAddr,
    /// Where the activity log lives; `~/.mcpproxy` unless set. Relative to this file.
    data_dir: Option<String>,
    /// Key of the REST API. `MCPPROXY_API_KEY` overrules it.
    #[schemars(length(min = 1))]
    api_key: Option<String>,
    /// Whether MCP clients need the API key, too. Must be true to listen on other than loopback.
    require_mcp_auth: bool,
    /// Whether a server that is a program can be added over TCP, by whoever has the API key. The
    /// command line and this file always can.
    allow_stdio_over_http: bool,
    /// Characters after which a result is cut on `/mcp`; 0 means never.
    tool_response_limit: usize,
    /// What agents have to declare, and how strictly it is checked.
    intent_declaration: IntentDeclarationShape,
    /// Tiers that overrule what servers declare, by `server:tool` with `*` and `?`.
    tool_overrides: BTreeMap<String, Tier>,
    /// How `retrieve_tools` answers.
    retrieve_tools: RetrieveToolsConfig,
    /// What the activity log keeps, and for how long.
    activity: ActivityConfig,
    /// Which of the endpoints beside `/mcp` are open.
    endpoints: EndpointsConfig,
    /// How long calls under way may take to end when the daemon stops: seconds, or a text such as "5s".
    #[schemars(schema_with = "duration_schema")]
    shutdown_grace: u64,
    /// How long a daemon that a command started in the background goes on without a client: seconds,
    /// or a text such as "30m". Without it, for ever, as one that `serve` or a service started.
    #[schemars(schema_with = "duration_schema")]
    exit_when_idle: Option<u64>,
    /// What one peer may make the daemon hold, wait for or do. Takes effect at the next start.
    limits: Limits,
    /// The upstreams: an object by name, as other clients write it, or a list with a `name` each.
    #[serde(rename = "mcpServers")]
    #[schemars(schema_with = "servers_schema")]
    mcp_servers: BTreeMap<String, ServerShape>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename = "IntentDeclaration", default)]
struct IntentDeclarationShape {
    /// `two_key` requires a declared operation type that matches; `inferred` takes it from the lane.
    mode: IntentMode,
    /// Whether a lane too lax for a tool's tier is refused, or only warned about.
    strict_server_validation: bool,
    /// What to think of a tool on which its server put no hints.
    unannotated: Unannotated,
    /// Servers, by name or with `*` and `?`, for which the stricter of what they declare and what the
    /// audit concludes counts.
    distrust: Vec<String>,
}

/// One upstream: a program to start, by `command`, or a server to connect to, by `url`.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Server", default)]
#[schemars(extend("oneOf" = [
    {"required": ["command"]},
    {"required": ["url"]},
    {"required": ["httpUrl"]},
    {"required": ["serverUrl"]},
]))]
struct ServerShape {
    /// Which transport is meant; follows from `command` or `url` if left out.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["stdio", "http", "streamable-http", "sse", null]))]
    kind: Option<String>,
    /// Program to start.
    #[schemars(length(min = 1))]
    command: Option<String>,
    /// Arguments of the program. `${env:NAME}` is replaced by the variable.
    args: Vec<String>,
    /// Environment of the program. `${env:NAME}` is replaced by the variable.
    env: BTreeMap<String, String>,
    /// Directory the program starts in.
    working_dir: Option<String>,
    /// The same as `working_dir`.
    cwd: Option<String>,
    /// Address of a server that speaks HTTP. `${env:NAME}` is replaced by the variable.
    url: Option<String>,
    /// The same as `url`.
    #[serde(rename = "httpUrl")]
    http_url: Option<String>,
    /// The same as `url`.
    #[serde(rename = "serverUrl")]
    server_url: Option<String>,
    /// Headers of every request. `${env:NAME}` is replaced by the variable.
    headers: BTreeMap<String, String>,
    /// Whether to connect.
    enabled: bool,
    /// The opposite of `enabled`.
    disabled: bool,
    /// How long one call may take: seconds, or a text such as "30s" or "2m".
    #[schemars(schema_with = "duration_schema")]
    timeout: u64,
    /// How many calls may be under way at once.
    #[schemars(range(min = 1, max = 10_000))]
    max_concurrency: usize,
    /// How often the tools are listed again: seconds, or a text such as "10m".
    #[schemars(schema_with = "duration_schema")]
    refresh_interval: Option<u64>,
    /// What becomes of a tool whose definition changes: it is recorded, or the tool is held until
    /// it is approved.
    trust: Trust,
    /// Which clients share a process or a session of the server.
    sharing: Sharing,
}

/// An entry of the list form.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "NamedServer")]
struct NamedServerShape {
    /// Name of the server, unique among all.
    name: String,
}

fn servers_schema(generator: &mut SchemaGenerator) -> Schema {
    let server = generator.subschema_for::<ServerShape>();
    let named = generator.subschema_for::<NamedServerShape>();
    json_schema!({
        "anyOf": [
            {"type": "object", "additionalProperties": server},
            {"type": "array", "items": {"allOf": [named, server]}},
        ],
    })
}

fn duration_schema(_: &mut SchemaGenerator) -> Schema {
    duration::schema()
}

impl Default for ConfigFile {
    fn default() -> Self {
        let config = Config::default();
        Self {
            schema: None,
            listen: config.listen,
            data_dir: None,
            api_key: None,
            require_mcp_auth: config.require_mcp_auth,
            allow_stdio_over_http: config.allow_stdio_over_http,
            tool_response_limit: config.tool_response_limit,
            intent_declaration: IntentDeclarationShape::default(),
            tool_overrides: BTreeMap::new(),
            retrieve_tools: config.retrieve_tools,
            activity: config.activity,
            endpoints: config.endpoints,
            shutdown_grace: Config::DEFAULT_SHUTDOWN_GRACE.as_secs(),
            exit_when_idle: None,
            limits: config.limits,
            mcp_servers: BTreeMap::new(),
        }
    }
}

impl Default for IntentDeclarationShape {
    fn default() -> Self {
        let Rules {
            mode,
            strict_server_validation,
            unannotated,
        } = Rules::default();
        Self {
            mode,
            strict_server_validation,
            unannotated,
            distrust: Vec::new(),
        }
    }
}

impl Default for ServerShape {
    fn default() -> Self {
        Self {
            kind: None,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            working_dir: None,
            cwd: None,
            url: None,
            http_url: None,
            server_url: None,
            headers: BTreeMap::new(),
            enabled: true,
            disabled: false,
            timeout: ServerConfig::DEFAULT_TIMEOUT.as_secs(),
            max_concurrency: ServerConfig::DEFAULT_MAX_CONCURRENCY.get(),
            refresh_interval: None,
            trust: Trust::default(),
            sharing: Sharing::default(),
        }
    }
}
