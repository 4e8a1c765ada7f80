//! Reads the messages of clients, and refuses what two parsers could read in two ways.
//!
//! What a server endpoint checks and records must be what the upstream understands. Parsers disagree
//! about members given twice, and some compare names without regard to case (Go's encoding/json)
//! or to underscores (models with aliases). So a member that could pass for one that the protocol
//! defines is refused in the envelope, in `params` and in `params._meta`. Messages of servers are
//! read by [`Inbound::parse`] instead: what they say is passed on, and nothing is decided by it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::members::Members;
use crate::message::{Envelope, is_null};
use crate::modern::{meta, methods};
use crate::strict_json::{DEPTH_LIMIT, Name, Names, is_too_deep};
use crate::{Inbound, Message, ParseError, RequestId};

/// The longest request id or progress token of a client: both are kept and repeated.
const ID_BYTES: usize = 1024;
/// The longest name of a method.
const METHOD_BYTES: usize = 128;
/// How much of a member's name a message repeats.
const SHOWN_CHARS: usize = 64;

const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];

/// The members of `params` that requests and notifications of either era define.
const PARAMS: &[&str] = &[
    "_meta",
    "argument",
    "arguments",
    "capabilities",
    "clientInfo",
    "context",
    "createdAt",
    "cursor",
    "data",
    "elicitationId",
    "inputResponses",
    "lastUpdatedAt",
    "level",
    "logger",
    "message",
    "name",
    "notifications",
    "pollInterval",
    "progress",
    "progressToken",
    "protocolVersion",
    "reason",
    "ref",
    "requestId",
    "requestState",
    "status",
    "statusMessage",
    "task",
    "taskId",
    "total",
    "ttl",
    "uri",
];

const PROGRESS_TOKEN: &str = "progressToken";

const META: &[&str] = &[
    PROGRESS_TOKEN,
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
    meta::SERVER_INFO,
    meta::SUBSCRIPTION_ID,
    "traceparent",
    "tracestate",
    "baggage",
];

/// What the protocol's own members of `_meta` begin with, those of later revisions included.
const META_PREFIX: &str = "io.modelcontextprotocol/";

/// Members of `params` that are small objects of the protocol, by which requests are routed.
const INNER: &[(&str, &str, &[&str])] = &[
    ("ref", "params.ref", &["type", "name", "uri", "title"]),
    ("argument", "params.argument", &["name", "value"]),
    ("task", "params.task", &["ttl", "taskId"]),
];

/// The methods of either era that are not told apart from a look-alike by a prefix.
const METHODS: &[&str] = &[
    "completion/complete",
    "elicitation/create",
    "initialize",
    "logging/setLevel",
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/message",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
    "notifications/tools/list_changed",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/directory/read",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    methods::DISCOVER,
    "skills/get",
    "skills/list",
    methods::LISTEN,
    "tasks/cancel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tools/call",
    "tools/list",
];

const NOTIFICATIONS: &str = "notifications/";

/// A member that two parsers could read in two ways.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberFault {
    #[error("member `{0}` is given twice; give it once")]
    Twice(Box<str>),
    #[error(
        "member `{given}` differs from `{known}` only in case or underscores, and some servers \
         take the one for the other; use `{known}`"
    )]
    LookAlike {
        given: Box<str>,
        known: &'static str,
    },
}

/// Why the `params` of a client's message are not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamsFault {
    #[error("{0} must be an object")]
    NotAnObject(&'static str),
    #[error("in {object}, {fault}")]
    Member {
        object: &'static str,
        #[source]
        fault: MemberFault,
    },
    #[error("nested more than {DEPTH_LIMIT} levels deep")]
    TooDeep,
    #[error("progressToken must be a string or a number of at most {ID_BYTES} bytes")]
    ProgressToken,
}

/// A message before it is known whether it is acceptable.
#[derive(Default)]
struct Given<'a> {
    envelope: Envelope<'a>,
    params: Params<'a>,
    fault: Option<MemberFault>,
}

#[derive(Default)]
enum Params<'a> {
    /// Left out, or `null`, which peers write that know no other way to leave something out.
    #[default]
    Absent,
    Object(Members<'a>),
    Other,
}

// === impl Inbound, Message ===

impl Inbound {
    /// Reads what a client sent. `params` come out with the names of their members, and of those
    /// of `_meta`, written without escapes; the values keep their bytes.
    pub fn parse_from_client(text: &[u8]) -> Result<Self, ParseError> {
        Self::each(text, Message::parse_from_client)
    }
}

impl Message {
    fn parse_from_client(text: &[u8]) -> Result<Self, ParseError> {
        let given: Given<'_> = serde_json::from_slice(text).map_err(ParseError::Json)?;
        let Given {
            envelope,
            params,
            fault,
        } = given;
        // An answer to an answer could be taken for that to a request of the same id.
        let asked = envelope.id.filter(|_| envelope.method.is_some());
        let id = || asked.and_then(RequestId::from_raw);
        if let Some(fault) = fault {
            return Err(ParseError::Member { fault, id: id() });
        }
        if envelope.id.is_some_and(|id| id.get().len() > ID_BYTES) {
            return Err(ParseError::envelope("`id` is too long", None));
        }
        let answer = envelope.result.or(envelope.error);
        if answer.is_some_and(is_too_deep) {
            return Err(ParseError::envelope(
                "nested more than 128 levels deep",
                id(),
            ));
        }
        let method = envelope.method.map_or("", RawValue::get);
        let params = params
            .into_raw(method)
            .map_err(|fault| ParseError::Params { fault, id: id() })?;
        let message = Self::of(&envelope, params)?;
        check_method(&message).map_err(|reason| ParseError::envelope(reason, id()))?;
        Ok(message)
    }
}

/// A method that is not known goes to the upstream as it is, so it must not be able to pass for
/// one that is; nor may a request pass as a notification, which is not answered, decided or
/// recorded.
fn check_method(message: &Message) -> Result<(), &'static str> {
    let (method, is_notification) = match message {
        Message::Request(request) => (&request.method, false),
        Message::Notification(notification) => (&notification.method, true),
        Message::Response(_) => return Ok(()),
    };
    if METHODS.contains(&method.as_str()) {
        // Nothing else can be meant.
    } else if method.is_empty() || method.len() > METHOD_BYTES {
        return Err("`method` must have 1 to 128 characters");
    } else if !method.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("`method` may hold visible ASCII characters only");
    } else if METHODS.iter().any(|known| is_like(method, known)) {
        return Err("`method` differs from one of the protocol only in case or underscores");
    }
    match (is_notification, method.starts_with(NOTIFICATIONS)) {
        (true, false) => Err("a request needs an `id`"),
        (false, true) => Err("a notification has no `id`"),
        _ => Ok(()),
    }
}

// === impl Given ===

impl<'de: 'a, 'a> Deserialize<'de> for Given<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Given<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON-RPC message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut given = Given::default();
                let mut names = Names::default();
                while let Some(name) = map.next_key_seed(Name)? {
                    let envelope = &mut given.envelope;
                    match &*name {
                        "jsonrpc" => envelope.jsonrpc = Some(map.next_value()?),
                        "id" => envelope.id = Some(map.next_value()?),
                        "method" => envelope.method = Some(map.next_value()?),
                        "params" => given.params = map.next_value()?,
                        "result" => envelope.result = Some(map.next_value()?),
                        "error" => envelope.error = Some(map.next_value()?),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                    if given.fault.is_none() {
                        given.fault = names.check(name, ENVELOPE).err();
                    }
                }
                Ok(given)
            }
        }

        deserializer.deserialize_map(Read)
    }
}

// === impl Params ===

impl Params<'_> {
    /// `method` is that of the message, as it was written.
    fn into_raw(self, method: &str) -> Result<Option<Box<RawValue>>, ParamsFault> {
        let mut params = match self {
            Self::Absent => return Ok(None),
            Self::Object(members) => members,
            Self::Other => return Err(ParamsFault::NotAnObject("params")),
        };
        check(&params, "params", PARAMS)?;
        // What a tool is called with can be large, and is the service's to check and to record.
        let left_out = (method == r#""tools/call""#).then_some("arguments");
        let is_deep = |(name, value)| Some(name) != left_out && is_too_deep(value);
        if params.iter().any(is_deep) {
            return Err(ParamsFault::TooDeep);
        }
        for (member, object, known) in INNER {
            if let Some(Ok(inner)) = params.get(member).map(Members::parse) {
                check(&inner, object, known)?;
            }
        }
        match params.get("_meta") {
            Some(raw) if is_null(raw) => params.remove("_meta"),
            Some(raw) => {
                if let Some(rewritten) = check_meta(raw)? {
                    params.set("_meta", rewritten);
                }
            }
            None => {}
        }
        let raw = params.to_raw();
        raw.map(Some)
            .map_err(|_| ParamsFault::NotAnObject("params"))
    }
}

/// Returns `_meta` rewritten where a name in it has escapes or the progress token is none.
fn check_meta(raw: &RawValue) -> Result<Option<Box<RawValue>>, ParamsFault> {
    const OBJECT: &str = "params._meta";

    let not_an_object = |_| ParamsFault::NotAnObject(OBJECT);
    let mut meta = Members::parse(raw).map_err(not_an_object)?;
    check(&meta, OBJECT, META)?;
    if let Some(name) = meta.names().find(|name| has_prefix_like(name)) {
        let fault = MemberFault::look_alike(name, META_PREFIX);
        return Err(ParamsFault::Member {
            object: OBJECT,
            fault,
        });
    }
    let mut is_plain = meta.names().all(|name| matches!(name, Cow::Borrowed(_)));
    match meta.get(PROGRESS_TOKEN) {
        Some(token) if is_null(token) => {
            meta.remove(PROGRESS_TOKEN);
            is_plain = false;
        }
        Some(token) if token.get().len() > ID_BYTES || RequestId::from_raw(token).is_none() => {
            return Err(ParamsFault::ProgressToken);
        }
        _ => {}
    }
    if is_plain {
        return Ok(None);
    }
    meta.to_raw().map(Some).map_err(not_an_object)
}

fn check(
    members: &Members<'_>,
    object: &'static str,
    known: &[&'static str],
) -> Result<(), ParamsFault> {
    let mut names = Names::default();
    members.names().try_for_each(|name| {
        names
            .check(Cow::Borrowed(name), known)
            .map_err(|fault| ParamsFault::Member { object, fault })
    })
}

impl<'de: 'a, 'a> Deserialize<'de> for Params<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Params<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("any value")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Members::collect(map).map(Params::Object)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Params::Other)
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Params::Absent)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }
        }

        deserializer.deserialize_any(Read)
    }
}

// === impl Names, MemberFault ===

impl<'de> Names<'de> {
    /// Notes a name; an error if it was there before or could pass for a known one.
    fn check(&mut self, name: Cow<'de, str>, known: &[&'static str]) -> Result<(), MemberFault> {
        if !known.contains(&&*name)
            && let Some(known) = known.iter().find(|known| is_like(&name, known))
        {
            return Err(MemberFault::look_alike(&name, known));
        }
        let shown = name.clone();
        if self.insert(name) {
            Ok(())
        } else {
            Err(MemberFault::Twice(show(&shown)))
        }
    }
}

impl MemberFault {
    fn look_alike(given: &str, known: &'static str) -> Self {
        Self::LookAlike {
            given: show(given),
            known,
        }
    }
}

/// The beginning of a name, without control characters.
fn show(name: &str) -> Box<str> {
    let shown = name.chars().take(SHOWN_CHARS);
    shown.flat_map(char::escape_debug).collect()
}

/// Whether the loosest parsers take the one name for the other. Known names are ASCII, so only
/// those other characters matter that fold to ASCII letters somewhere.
fn is_like(name: &str, known: &str) -> bool {
    folded(name).eq(folded(known))
}

fn has_prefix_like(name: &str) -> bool {
    let prefix = || folded(META_PREFIX);
    !name.starts_with(META_PREFIX) && folded(name).take(prefix().count()).eq(prefix())
}

fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars()
        .filter(|&char| char != '_')
        .map(|char| match char {
            'ſ' => 's',
            '\u{212a}' => 'k',
            'ı' | 'İ' => 'i',
            char => char.to_ascii_lowercase(),
        })
}
