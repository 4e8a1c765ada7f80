//! What one peer may make the daemon hold, wait for or do: every bound in one table.
//!
//! The table below is the model, the defaults, the reader and the schema at once. Bounds that no
//! operator has a reason to change (nesting of JSON, lengths of names) are constants of the crate
//! that enforces them; docs/limits.md lists both.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::duration;
use crate::fault::Fault;
use crate::json::{Fields, Node};
use crate::load::{read_duration, read_number};
use crate::warning::Warning;

/// Defines [`Limits`]: one row per setting, with its reader and its default.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident = $default:expr;)+) => {
        /// The section `limits` of the config.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
        #[serde(default)]
        pub struct Limits {
            $($(#[doc = $doc])+ pub $name: limits!(@type $kind),)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: limits!(@wrap $kind $default),)+ }
            }
        }

        pub(crate) fn read_limits(
            node: &Node<'_>,
            warnings: &mut Vec<Warning>,
        ) -> Result<Limits, Fault> {
            let mut fields = Fields::of(node)?;
            let default = Limits::default();
            let limits = Limits {
                $($name: fields
                    .read(stringify!($name), limits!(@reader $kind))?
                    .unwrap_or(default.$name),)+
            };
            fields.finish(warnings);
            Ok(limits)
        }
    };
    (@type count) => { usize };
    (@type time) => { Time };
    (@wrap count $default:expr) => { $default };
    (@wrap time $default:expr) => { Time($default) };
    (@reader count) => { read_count };
    (@reader time) => { read_time };
}

limits! {
    /// Bytes of one request of a client, the same on every way in.
    request_bytes: count = 4 * MIB;
    /// Bytes of one message of an upstream.
    upstream_message_bytes: count = 16 * MIB;
    /// Tools of one upstream; the rest is left out.
    tools_per_server: count = 10_000;
    /// Bytes of one tool's input schema; a tool with a larger one is left out.
    schema_bytes: count = 256 * 1024;
    /// Pages of one listing of an upstream.
    listing_pages: count = 1_000;
    /// Bytes of one listing of an upstream, over all its pages.
    listing_bytes: count = 64 * MIB;
    /// How long one listing of an upstream may take, over all its pages.
    listing_time: time = Duration::from_mins(1);
    /// Calls that may wait for a free slot of one upstream; a further call is refused at once.
    queued_calls: count = 256;
    /// Starts of one upstream within `start_window` before it counts as a crash loop and stays down.
    starts: count = 10;
    /// The time in which `starts` are counted.
    start_window: time = Duration::from_mins(10);
    /// Legacy sessions at once on one endpoint; the least recently used idle one is evicted.
    sessions: count = 1_000;
    /// Bytes that a session may keep of what its client said in `initialize`.
    session_bytes: count = 64 * 1024;
    /// Bytes of answers and events held for all clients that are slow to read them.
    unread_bytes: count = 64 * MIB;
    /// TCP connections at once; further ones wait to be accepted.
    connections: count = 1_024;
    /// How long a client may take to send the head of a request.
    header_timeout: time = Duration::from_secs(10);
    /// How long a client may pause while it sends the body of a request; the whole body may take
    /// ten times as long.
    body_timeout: time = Duration::from_secs(30);
    /// How long a connection may stay open between two requests.
    idle_timeout: time = Duration::from_mins(5);
    /// How long a client may pause while it reads an answer.
    write_timeout: time = Duration::from_secs(30);
    /// How long a request of `mcpproxy stdio` waits for a daemon that went away to come back.
    reconnect_time: time = Duration::from_secs(30);
    /// How long an upstream may send nothing while calls wait for it before it is pinged.
    ping_after: time = Duration::from_secs(15);
    /// How long an upstream may take to answer a ping.
    ping_timeout: time = Duration::from_secs(5);
    /// How long an upstream that has answered pings during calls may send nothing while calls wait
    /// for it before its connection is given up.
    silence: time = Duration::from_secs(45);
    /// How long a call that waits for its client's answer keeps a connection to itself that another
    /// client needs.
    parked_time: time = Duration::from_secs(30);
    /// Refused calls of one client per second that each get a record, and ten times as many at once;
    /// more are counted in one record.
    refusal_records: count = 20;
    /// How long refused calls and changed tools are counted before the count is recorded.
    refusal_window: time = Duration::from_secs(10);
}

const MIB: usize = 1024 * 1024;

/// A length of time: seconds, or a text such as "30s".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(Duration);

impl Time {
    pub fn get(self) -> Duration {
        self.0
    }
}

impl From<Duration> for Time {
    fn from(time: Duration) -> Self {
        Self(time)
    }
}

impl Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        duration::to_json(self.0).serialize(serializer)
    }
}

impl JsonSchema for Time {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        duration::schema()
    }
}

/// At least one: there is no bound of nothing, and 0 must not be read as "no limit".
fn read_count(node: &Node<'_>) -> Result<usize, Fault> {
    read_number(node, 1, u32::MAX)
}

fn read_time(node: &Node<'_>) -> Result<Time, Fault> {
    read_duration(node).map(Time)
}
