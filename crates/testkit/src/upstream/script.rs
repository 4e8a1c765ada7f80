//! What a scripted upstream offers and how it behaves, written by a test and read by the upstream.
//!
//! Definitions and results are kept as text, so that they go over the wire exactly as written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The whole of an upstream's behaviour.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    pub tools: Vec<Tool>,
    /// How many tools one page of `tools/list` has; all of them when absent.
    pub page_size: Option<usize>,
    pub start: Start,
    /// Stays when stdin ends and when SIGTERM comes, so that only SIGKILL ends it.
    pub stubborn: bool,
    pub http: HttpScript,
    /// Methods that are never answered.
    pub hang_at: Vec<String>,
    /// Answers `tools/list` with one more page for ever, each with a new cursor of this many bytes.
    pub endless_cursor_bytes: Option<usize>,
    /// What differs from one `tools/list` to the next.
    pub churn: Churn,
    /// `list_changed` notifications sent per second.
    pub storm_per_second: u64,
    /// Ends the process after this long; five minutes unless set.
    pub lifetime_seconds: Option<u64>,
    /// Resources by address, with their text.
    pub resources: BTreeMap<String, String>,
    /// The tools for clients that declare any capability; the same as for others when absent.
    pub tools_for_capable: Option<Vec<Tool>>,
}

/// What differs from one `tools/list` to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Churn {
    #[default]
    Nothing,
    /// Every description.
    Descriptions,
    /// Every `readOnlyHint`.
    Annotations,
}

/// What happens before and during the handshake.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// Lines that do not belong on the stdout of a server.
    pub banner: Vec<String>,
    pub stderr_mebibytes: usize,
    /// Lines for stderr.
    pub stderr: Vec<String>,
    /// How long `initialize` goes unanswered.
    pub delay_ms: u64,
    /// Ends at once with this exit code.
    pub exit_code: Option<i32>,
    /// Starts a process of its own, which waits for ever.
    pub grandchild: bool,
    /// The grandchild keeps the stdout of its parent open.
    pub grandchild_holds_stdout: bool,
    /// The grandchild leaves the process group, as daemons do.
    pub grandchild_leaves_group: bool,
    /// Writes to stderr as fast as it is read.
    pub stderr_flood: bool,
    /// Sleeps this long before it reads anything.
    pub boot_ms: u64,
}

/// What is different over HTTP.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpScript {
    pub wire: Wire,
    /// Refuses `initialize` with this status.
    pub initialize_status: Option<u16>,
    /// Forgets a session after this many `tools/call`.
    pub calls_per_session: Option<usize>,
    /// Answers every request with this status.
    pub status: Option<u16>,
    /// Answers `tools/call` with this status.
    pub call_status: Option<u16>,
    /// Redirects every request to this address.
    pub redirect: Option<String>,
}

/// How a POST is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    #[default]
    Json,
    /// With an empty event first, as servers that can resume a stream send it.
    EventStream,
    /// Without ids: a stream that breaks cannot be resumed.
    PlainEventStream,
}

/// A tool: its definition as JSON text, and what a call does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub definition: String,
    #[serde(default)]
    pub behaviour: Behaviour,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    pub delay_ms: u64,
    /// How many progress notifications are sent, when the caller wants any.
    pub progress: u32,
    /// Raw lines sent before and after the answer.
    pub before: Vec<String>,
    pub after: Vec<String>,
    pub outcome: Outcome,
}

/// How a call ends.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A result whose one text is the `params` of the call, as they arrived.
    #[default]
    Echo,
    /// This text as the result.
    Return(String),
    Error {
        code: i64,
        message: String,
    },
    /// A result with this many mebibytes of text.
    Huge {
        mebibytes: usize,
    },
    /// A result with this many mebibytes in one of its parts.
    Large {
        part: Part,
        mebibytes: usize,
    },
    /// These bytes as they are, then what `Echo` answers.
    Frames(Vec<Vec<u8>>),
    /// A line that never ends.
    EndlessLine,
    /// Half of the answer, then the end of the stream.
    Truncate,
    /// The process stops by SIGSTOP.
    Freeze,
    /// Other tools from now on, announced with `list_changed`.
    ReplaceTools(Vec<Tool>),
    /// No answer, ever.
    Hang,
    /// The process ends by SIGABRT.
    Crash,
    /// The process ends with this exit code.
    Exit(i32),
}

/// The part of a result that is large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Text,
    Image,
    Audio,
    Resource,
    Structured,
    Meta,
}

impl Part {
    pub const ALL: [Self; 6] = [
        Self::Text,
        Self::Image,
        Self::Audio,
        Self::Resource,
        Self::Structured,
        Self::Meta,
    ];

    /// A result in which this part has `bytes` bytes.
    pub(super) fn result(self, bytes: usize) -> Value {
        let data = "x".repeat(bytes);
        let small = json!([{"type": "text", "text": "small"}]);
        match self {
            Self::Text => json!({"content": [{"type": "text", "text": data}]}),
            Self::Image => {
                json!({"content": [{"type": "image", "mimeType": "image/png", "data": data}]})
            }
            Self::Audio => {
                json!({"content": [{"type": "audio", "mimeType": "audio/wav", "data": data}]})
            }
            Self::Resource => json!({"content": [
                {"type": "resource", "resource": {"uri": "file:///large", "text": data}},
            ]}),
            Self::Structured => json!({"content": small, "structuredContent": {"data": data}}),
            Self::Meta => json!({"content": small, "_meta": {"data": data}}),
        }
    }
}

impl Script {
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Self {
        Self {
            tools: tools.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Answers over HTTP in this form.
    #[must_use]
    pub fn wire(mut self, wire: Wire) -> Self {
        self.http.wire = wire;
        self
    }
}

impl Tool {
    /// A tool without hints that answers with what it was called with.
    pub fn echo(name: &str) -> Self {
        Self::defined(&json!({
            "name": name,
            "description": format!("Does what {name} says"),
            "inputSchema": {"type": "object"},
        }))
    }

    /// A tool with these annotations that answers with what it was called with.
    pub fn annotated(name: &str, annotations: &Value) -> Self {
        Self::defined(&json!({
            "name": name,
            "description": format!("Does what {name} says"),
            "inputSchema": {"type": "object"},
            "annotations": annotations,
        }))
    }

    pub fn read_only(name: &str) -> Self {
        Self::annotated(name, &json!({"readOnlyHint": true}))
    }

    pub fn destructive(name: &str) -> Self {
        Self::annotated(name, &json!({"destructiveHint": true}))
    }

    pub fn defined(definition: &Value) -> Self {
        Self {
            definition: definition.to_string(),
            behaviour: Behaviour::default(),
        }
    }

    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.behaviour.outcome = outcome;
        self
    }

    #[must_use]
    pub fn returns(self, result: impl Into<String>) -> Self {
        self.outcome(Outcome::Return(result.into()))
    }

    #[must_use]
    pub fn after_ms(mut self, delay_ms: u64) -> Self {
        self.behaviour.delay_ms = delay_ms;
        self
    }

    #[must_use]
    pub fn progress(mut self, steps: u32) -> Self {
        self.behaviour.progress = steps;
        self
    }
}
