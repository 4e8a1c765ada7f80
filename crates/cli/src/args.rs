//! The command line: clap types and nothing else.

mod completions;
mod connect;
mod doctor;
mod examples;
mod number;
mod upstream;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use jiff::Timestamp;
use policy::{DataSensitivity, OperationType, Tier};

pub(crate) use self::completions::{CompletionShell, CompletionsArgs};
pub(crate) use self::connect::{ApproveLane, ConnectArgs, Consent, ImportArgs};
pub(crate) use self::doctor::{DoctorArgs, DoctorCommand};
pub(crate) use self::examples::{command, command_name};
use self::number::number;
pub(crate) use self::upstream::{AddArgs, ServerChange, ToolSelection, UpstreamCommand};
use crate::completion;
use crate::printer::Format;
use crate::time::parse_time;

/// What the API takes, too.
const HIGHEST_OFFSET: u64 = 10_000_000;

const EXAMPLES: &str = "\
Examples:
  mcpproxy serve
  mcpproxy tools search \"find a note\"
  mcpproxy call tool-read demo:list_notes
  mcpproxy activity list --intent-type write
  mcpproxy call tool-write demo:create_note --args '{\"title\": \"Hello\"}' --reason \"trying it\"
";

/// One proxy in front of all your MCP servers: honest lanes, provable history.
#[derive(Debug, Parser)]
#[command(name = "mcpproxy", version, after_help = EXAMPLES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The config file
    #[arg(long, global = true, value_name = "FILE", env = "MCPPROXY_CONFIG")]
    pub config: Option<PathBuf>,
    /// Where the socket, the logs and the activity log live
    #[arg(long, global = true, value_name = "DIR", env = "MCPPROXY_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where the daemon listens
    #[arg(long, global = true, value_name = "ADDRESS", env = "MCPPROXY_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// How results are written
    #[arg(
        short,
        global = true,
        value_name = "FORMAT",
        env = "MCPPROXY_OUTPUT",
        default_value = "table"
    )]
    pub output: Format,
    /// Whether the format stands on the command line itself; known once that is parsed.
    #[arg(skip)]
    pub output_is_given: bool,
    /// Say nothing but the result and errors
    #[arg(long, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one, and it is made once"
)]
pub(crate) enum Command {
    /// Run the daemon in this terminal
    Serve(ServeArgs),
    /// Speak MCP on stdin and stdout, for clients that start their servers
    Stdio,
    /// Call a tool
    #[command(subcommand)]
    Call(CallCommand),
    /// Look at the tools of all servers
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Find out what tools really do, judged by what they say
    Audit(AuditArgs),
    /// Look at what happened
    #[command(subcommand)]
    Activity(ActivityCommand),
    /// Manage the MCP servers behind mcpproxy
    #[command(subcommand)]
    Upstream(UpstreamCommand),
    /// Put mcpproxy into the config of a client, or take it out
    #[command(after_help = connect::CONNECT_EXAMPLES)]
    Connect(ConnectArgs),
    /// Find out what is wrong, and what repairs it
    #[command(after_help = doctor::DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Look at the config file
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a script that lets a shell complete commands, servers and tools
    #[command(after_help = completions::COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Show what the daemon is doing
    Status,
    /// End the daemon; the next command or client that needs it starts it again
    Stop,
    /// End the daemon and start it again in the background, or as the service that it is
    Restart,
    /// Show what the daemon wrote about itself
    Logs(LogsArgs),
    /// Have the system start the daemon at login
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Run the built-in demo server, which keeps notes, on stdin and stdout
    DemoServer {
        /// The file that keeps the notes; without it, one in the data directory
        #[arg(long, value_name = "FILE")]
        store: Option<PathBuf>,
    },
}

/// How this program tells itself who wants the daemon.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The command that starts it in the background, and its process
    #[arg(
        long,
        hide = true,
        value_name = "COMMAND:PID",
        conflicts_with = "service"
    )]
    pub started_by: Option<String>,
    /// Whether the service manager starts it
    #[arg(long, hide = true)]
    pub service: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// How many lines, 1 to 10000
    #[arg(long, default_value_t = 50, allow_negative_numbers = true,
          value_parser = number::<u16>(1, Some(10_000)))]
    pub lines: u16,
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub follow: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Install the service, and start it now and at every login
    Install,
    /// End the service and remove it
    Uninstall,
    /// Show whether the service is installed and runs
    Status,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CallCommand {
    /// Call a tool that only reads
    #[command(name = "tool-read")]
    Read(CallArgs),
    /// Call a tool that creates or changes something
    #[command(name = "tool-write")]
    Write(CallArgs),
    /// Call a tool that deletes or cannot be undone
    #[command(name = "tool-destructive")]
    Destructive(CallArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool, as server:tool
    #[arg(
        value_name = "SERVER:TOOL",
        required_unless_present = "tool_name",
        conflicts_with = "tool_name",
        add = ArgValueCompleter::new(completion::tools)
    )]
    pub tool: Option<String>,
    /// The tool, spelt as an option
    #[arg(long, value_name = "SERVER:TOOL", hide = true)]
    pub tool_name: Option<String>,
    /// The arguments as a JSON object; `-` reads them from stdin, `@FILE` from a file
    #[arg(
        long,
        alias = "json_args",
        alias = "json-args",
        value_name = "JSON",
        allow_hyphen_values = true
    )]
    pub args: Option<String>,
    /// Why the call is made, for the activity log
    #[arg(long)]
    pub reason: Option<String>,
    /// How sensitive the data is
    #[arg(long, value_parser = |text: &str| text.parse::<DataSensitivity>())]
    pub sensitivity: Option<DataSensitivity>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools
    List {
        /// Only tools of this server
        #[arg(long, add = ArgValueCompleter::new(completion::servers))]
        server: Option<String>,
        /// Only tools of this lane: read, write or destructive
        #[arg(long, value_parser = |text: &str| text.parse::<OperationType>())]
        lane: Option<OperationType>,
    },
    /// Search as an agent does with retrieve_tools
    Search {
        /// What the tool should do, or its name
        #[arg(required = true)]
        query: Vec<String>,
        /// At most so many tools, 1 to 50
        #[arg(long, default_value_t = 10, allow_negative_numbers = true,
              value_parser = number::<u8>(1, Some(50)))]
        limit: u8,
        /// Only tools of this server
        #[arg(long, add = ArgValueCompleter::new(completion::servers))]
        server: Option<String>,
        /// Only tools of this lane: read, write or destructive
        #[arg(long, value_parser = |text: &str| text.parse::<OperationType>())]
        lane: Option<OperationType>,
        /// Say why each tool was found
        #[arg(long)]
        explain: bool,
    },
    /// Show all about one tool
    Show {
        /// The tool
        #[arg(value_name = "SERVER:TOOL", add = ArgValueCompleter::new(completion::tools))]
        tool: String,
    },
    /// Say yourself what tools do
    #[command(subcommand)]
    Override(OverrideCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OverrideCommand {
    /// Set the tier of a tool or of a pattern such as github:delete_*
    Set {
        /// The tool, or a pattern in which * stands for any letters
        #[arg(value_name = "PATTERN", add = ArgValueCompleter::new(completion::tools))]
        pattern: String,
        /// read_only, write, soft_delete or destructive
        #[arg(value_parser = |text: &str| text.parse::<Tier>())]
        tier: Tier,
    },
    /// List the overrides
    List,
    /// Remove an override
    Clear {
        /// The pattern as it was set
        #[arg(value_name = "PATTERN", add = ArgValueCompleter::new(completion::tools))]
        pattern: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Only this server of the config
    #[arg(
        long,
        conflicts_with_all = ["url", "tools", "command"],
        add = ArgValueCompleter::new(completion::servers)
    )]
    pub server: Option<String>,
    /// A server that is not in the config
    #[arg(long, conflicts_with_all = ["tools", "command"])]
    pub url: Option<String>,
    /// A saved answer to tools/list; the server is named after the file
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub tools: Option<PathBuf>,
    /// Check the tools against the tiers in this file
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// Write the tiers to this file
    #[arg(long, value_name = "FILE")]
    pub write_manifest: Option<PathBuf>,
    /// A format for other tools, in place of -o
    #[arg(long, value_enum)]
    pub format: Option<AuditFormat>,
    /// The severity of findings that ends with exit code 20: error, warning or none
    #[arg(long, default_value = "error", value_parser = ["error", "warning", "none"])]
    pub fail_on: String,
    /// The command of a server that is not in the config
    #[arg(last = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum AuditFormat {
    Markdown,
    Sarif,
    Junit,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ActivityCommand {
    /// List records, newest first
    List {
        #[command(flatten)]
        filter: ActivityFilter,
        /// How many records, 1 to 100; 50 unless given
        #[arg(long, allow_negative_numbers = true, value_parser = number::<u32>(1, Some(100)))]
        limit: Option<u32>,
        /// Skip so many records, up to 10000000
        #[arg(long, allow_negative_numbers = true,
              value_parser = number::<u64>(0, Some(HIGHEST_OFFSET)))]
        offset: Option<u64>,
        /// Go on after the page that named this cursor
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show one record whole
    Show {
        /// The id, as `activity list` shows it
        id: String,
    },
    /// Show records as they are made
    // From now on is all there is to watch; what was before is in the list.
    #[command(mut_arg("since", |it| it.hide(true)), mut_arg("until", |it| it.hide(true)))]
    Watch {
        #[command(flatten)]
        filter: ActivityFilter,
    },
    /// Sum up a period
    Summary {
        /// 1h, 24h, 7d or 30d
        #[arg(long, default_value = "24h", value_parser = ["1h", "24h", "7d", "30d"])]
        period: String,
        /// server, tool, status, intent, client or hour
        #[arg(long, alias = "group-by", default_value = "server", value_parser = summary_groups())]
        by: String,
    },
    /// Write all matching records to stdout or a file
    Export {
        #[command(flatten)]
        filter: ActivityFilter,
        /// json, jsonl or csv; json unless given here or, but for csv, by -o
        #[arg(long, value_parser = ["json", "jsonl", "csv"])]
        format: Option<String>,
        /// With arguments and responses
        #[arg(long)]
        include_bodies: bool,
        /// At most so many records, 1 or more
        #[arg(long, allow_negative_numbers = true, value_parser = number::<u64>(1, None))]
        limit: Option<u64>,
        /// The file to write, for you alone; `-` is stdout
        #[arg(long = "output", value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Show what other settings would have made of the recorded calls
    Simulate {
        /// A setting to try out, as intent_declaration.unannotated=infer or
        /// 'tool_overrides.github:*=destructive'; can be given more than once
        #[arg(long = "set", value_name = "PATH=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        filter: ActivityFilter,
    },
    /// Check that no record was changed or removed
    Verify {
        /// A head that was noted elsewhere
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
    },
}

/// What records are summed up by; the API calls an intent by the name of its filter.
fn summary_groups() -> PossibleValuesParser {
    ["server", "tool", "status", "intent", "client", "hour"]
        .map(|name| match name {
            "intent" => PossibleValue::new(name).alias("intent_type"),
            name => PossibleValue::new(name),
        })
        .into()
}

/// The conditions that every look at the log knows.
#[derive(Debug, Default, Args)]
pub(crate) struct ActivityFilter {
    /// tool_call, policy_decision, quarantine_change, server_change, config_change or system
    #[arg(long = "type", value_name = "TYPE")]
    pub record_type: Option<String>,
    /// Only this server
    #[arg(long, add = ArgValueCompleter::new(completion::servers))]
    pub server: Option<String>,
    /// Only this tool, by its name without the server's
    #[arg(long)]
    pub tool: Option<String>,
    /// pending, success, error, blocked, cancelled or interrupted
    #[arg(long)]
    pub status: Option<String>,
    /// read, write or destructive
    #[arg(long)]
    pub intent_type: Option<String>,
    /// public, internal, private or unknown
    #[arg(long)]
    pub sensitivity: Option<String>,
    /// Only this session
    #[arg(long = "session", alias = "session-id", value_name = "ID")]
    pub session_id: Option<String>,
    /// Only this request
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// mcp, cli or api
    #[arg(long)]
    pub source: Option<String>,
    /// Only this client
    #[arg(long)]
    pub client: Option<String>,
    /// Not before this time: 2026-01-31T12:00:00Z, or how long ago, as 90s, 15m, 2h or 7d
    #[arg(long, visible_alias = "start-time", value_name = "TIME", value_parser = parse_time)]
    pub since: Option<Timestamp>,
    /// Not after this time
    #[arg(long, visible_alias = "end-time", value_name = "TIME", value_parser = parse_time)]
    pub until: Option<Timestamp>,
    /// Words in the tool's name, the arguments, the error or the reason
    #[arg(short = 'q', long = "query", value_name = "WORDS")]
    pub words: Option<String>,
}

impl ActivityFilter {
    /// The conditions by the names that the API knows.
    pub(crate) fn pairs(&self) -> [(&'static str, Option<String>); 13] {
        [
            ("type", self.record_type.clone()),
            ("server", self.server.clone()),
            ("tool", self.tool.clone()),
            ("status", self.status.clone()),
            ("intent_type", self.intent_type.clone()),
            ("sensitivity", self.sensitivity.clone()),
            ("session_id", self.session_id.clone()),
            ("request_id", self.request_id.clone()),
            ("source", self.source.clone()),
            ("client", self.client.clone()),
            ("start_time", self.since.map(|time| time.to_string())),
            ("end_time", self.until.map(|time| time.to_string())),
            ("q", self.words.clone()),
        ]
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print where the config file is
    Path,
    /// Print the config in force, secrets masked
    Show,
    /// Check the config file
    Check,
    /// Print the JSON Schema of the config file
    Schema,
    /// Change one setting in the config file; a running daemon follows it
    Set {
        /// The path of the setting, as intent_declaration.unannotated
        path: String,
        /// The value, as JSON or as plain text
        value: String,
    },
}

/// Whether a command line that is not understood asks for JSON: `-o json`, `-ojson` or `-o=json`.
pub(crate) fn asks_for_json(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let mut follows = false;
    for argument in arguments {
        let Some(argument) = argument.to_str() else {
            follows = false;
            continue;
        };
        // What comes after it belongs to another program.
        if argument == "--" {
            return false;
        }
        let attached = argument.strip_prefix("-o");
        let value = match attached {
            _ if follows => Some(argument),
            Some(value) => Some(value.strip_prefix('=').unwrap_or(value)),
            None => None,
        };
        if matches!(value, Some("json" | "jsonl")) {
            return true;
        }
        follows = argument == "-o";
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_for_json_is_seen_in_any_spelling() {
        let asks = |line: &str| asks_for_json(line.split(' ').map(OsString::from));
        for line in ["-o json x", "x -ojson", "x -o=jsonl"] {
            assert!(asks(line), "{line}");
        }
        for line in ["x", "-o table json", "call -- -o json", "--only json"] {
            assert!(!asks(line), "{line}");
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
