//! The JSON-RPC envelope. Only the envelope is parsed; what it carries stays as it was written.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::client_message::{MemberFault, ParamsFault};
use crate::error::{ErrorObject, codes};
use crate::id::{RequestId, encode_string};

#[derive(Debug, Clone)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

#[derive(Debug, Clone)]
pub struct Request {
    pub id: RequestId,
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

#[derive(Debug, Clone)]
pub struct Notification {
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

/// An answer. The id is absent only where the request was too broken to have one.
#[derive(Debug, Clone)]
pub struct Response {
    pub id: Option<RequestId>,
    pub outcome: Result<Box<RawValue>, ErrorObject>,
}

/// What one frame holds: a message, or the batch that 2024-11-05 and 2025-03-26 allow.
#[derive(Debug, Clone)]
pub enum Inbound {
    One(Message),
    Batch(Vec<Message>),
}

#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    #[error("not valid JSON")]
    Json(#[source] serde_json::Error),
    #[error("not a JSON-RPC 2.0 message")]
    Member {
        #[source]
        fault: MemberFault,
        id: Option<RequestId>,
    },
    #[error("the params of a request are not acceptable")]
    Params {
        #[source]
        fault: ParamsFault,
        id: Option<RequestId>,
    },
    #[error("not a JSON-RPC 2.0 message: {reason}")]
    Envelope {
        reason: &'static str,
        /// The id, where one could be read, so that the sender can be told.
        id: Option<RequestId>,
    },
}

/// Every member is raw, so that a member of the wrong type still leaves the id readable.
#[derive(Default, Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) error: Option<&'a RawValue>,
}

/// Tells `"result": null` from no `result` at all, which `Option` alone does not.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

// === impl Inbound ===

impl Inbound {
    /// Reads what a server sent. Members that the envelope does not know are passed over.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        Self::each(text, Message::parse)
    }

    pub(crate) fn each(
        text: &[u8],
        read: impl Fn(&[u8]) -> Result<Message, ParseError>,
    ) -> Result<Self, ParseError> {
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        if first != Some(&b'[') {
            return read(text).map(Self::One);
        }
        let parts: Vec<&RawValue> = serde_json::from_slice(text).map_err(ParseError::Json)?;
        if parts.is_empty() {
            return Err(ParseError::envelope("an empty batch", None));
        }
        parts
            .into_iter()
            .map(|part| read(part.get().as_bytes()))
            .collect::<Result<_, _>>()
            .map(Self::Batch)
    }
}

// === impl Message ===

impl Message {
    /// Reads what a server sent; see [`Inbound::parse`].
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let envelope: Envelope<'_> = serde_json::from_slice(text).map_err(ParseError::Json)?;
        let params = envelope.params.map(ToOwned::to_owned);
        Self::of(&envelope, params)
    }

    pub(crate) fn of(
        envelope: &Envelope<'_>,
        params: Option<Box<RawValue>>,
    ) -> Result<Self, ParseError> {
        let id = envelope.id.and_then(RequestId::from_raw);
        if !envelope.jsonrpc.is_some_and(is_version_2) {
            return Err(ParseError::envelope("`jsonrpc` must be \"2.0\"", id));
        }
        // Peers that grew up with JSON-RPC 1.0 write out the members they do not use.
        let method = envelope.method.filter(|raw| !is_null(raw));
        let error = envelope.error.filter(|raw| !is_null(raw));
        let result = match error {
            Some(_) => envelope.result.filter(|raw| !is_null(raw)),
            None => envelope.result,
        };
        match (method, result, error) {
            (Some(method), None, None) => {
                let Ok(method) = serde_json::from_str(method.get()) else {
                    return Err(ParseError::envelope("`method` must be a string", id));
                };
                match (envelope.id, id) {
                    (None, _) => Ok(Self::Notification(Notification { method, params })),
                    (Some(_), Some(id)) => Ok(Self::Request(Request { id, method, params })),
                    (Some(_), None) => Err(ParseError::envelope(
                        "`id` must be a string or a number",
                        None,
                    )),
                }
            }
            (None, Some(result), None) if id.is_some() => Ok(Self::Response(Response {
                id,
                outcome: Ok(result.to_owned()),
            })),
            (None, Some(_), None) => Err(ParseError::envelope("a result without an `id`", None)),
            (None, None, Some(error)) => match serde_json::from_str(error.get()) {
                Ok(error) => Ok(Self::Response(Response {
                    id,
                    outcome: Err(error),
                })),
                Err(_) => Err(ParseError::envelope(
                    "`error` must hold a `code` and a `message`",
                    id,
                )),
            },
            (None, None, None) => Err(ParseError::envelope(
                "one of `method`, `result` and `error` is needed",
                id,
            )),
            _ => Err(ParseError::envelope(
                "only one of `method`, `result` and `error` may be given",
                id,
            )),
        }
    }

    /// The message as JSON. The payload is copied as it is, so it may hold line breaks between
    /// tokens; a framing that cannot carry them has to deal with them itself.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Request(request) => request.encode(),
            Self::Notification(notification) => notification.encode(),
            Self::Response(response) => response.encode(),
        }
    }
}

// === impl Request, Notification, Response ===

impl Request {
    pub fn encode(&self) -> Vec<u8> {
        encode_call(
            Some(&self.id),
            &self.method,
            raw_bytes(self.params.as_deref()),
        )
    }
}

impl Notification {
    pub fn new(method: impl Into<String>, params: Option<Box<RawValue>>) -> Self {
        Self {
            method: method.into(),
            params,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        encode_call(None, &self.method, raw_bytes(self.params.as_deref()))
    }
}

impl Response {
    pub fn encode(&self) -> Vec<u8> {
        let payload = match &self.outcome {
            Ok(result) => result.get().len(),
            Err(error) => error.message.len() + error.data.as_ref().map_or(0, |d| d.get().len()),
        };
        let mut out = Vec::with_capacity(payload + 96);
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        match &self.id {
            Some(id) => id.encode_into(&mut out),
            None => out.extend_from_slice(b"null"),
        }
        match &self.outcome {
            Ok(result) => {
                out.extend_from_slice(b",\"result\":");
                out.extend_from_slice(result.get().as_bytes());
            }
            Err(error) => {
                out.extend_from_slice(b",\"error\":");
                error.encode_into(&mut out);
            }
        }
        out.push(b'}');
        out
    }
}

impl ParseError {
    pub(crate) fn envelope(reason: &'static str, id: Option<RequestId>) -> Self {
        Self::Envelope { reason, id }
    }

    /// The answer that JSON-RPC prescribes for a message that could not be read.
    pub fn to_response(&self) -> Response {
        let (code, id, detail) = match self {
            Self::Json(source) => {
                let detail = format!("Parse error: {source}");
                (codes::PARSE_ERROR, None, detail)
            }
            Self::Envelope { reason, id } => {
                let detail = format!("Invalid request: {reason}");
                (codes::INVALID_REQUEST, id.clone(), detail)
            }
            Self::Member { fault, id } => {
                let detail = format!("Invalid request: {fault}");
                (codes::INVALID_REQUEST, id.clone(), detail)
            }
            Self::Params { fault, id } => {
                let detail = format!("Invalid params: {fault}");
                (codes::INVALID_PARAMS, id.clone(), detail)
            }
        };
        Response {
            id,
            outcome: Err(ErrorObject::new(code, detail)),
        }
    }
}

/// A request, or without an id a notification, whose `params` are already JSON.
pub(crate) fn encode_call(id: Option<&RequestId>, method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.map_or(0, <[u8]>::len) + method.len() + 64);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        id.encode_into(&mut out);
    }
    out.extend_from_slice(b",\"method\":");
    encode_string(method, &mut out);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out
}

pub(crate) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

fn is_version_2(raw: &RawValue) -> bool {
    // Hardly any peer escapes these three characters, but it would be legal.
    raw.get() == "\"2.0\"" || serde_json::from_str::<String>(raw.get()).is_ok_and(|it| it == "2.0")
}

pub(crate) fn raw_bytes(raw: Option<&RawValue>) -> Option<&[u8]> {
    raw.map(|raw| raw.get().as_bytes())
}

/// `{}`, the result that says nothing but "done".
pub(crate) fn empty_object() -> Box<RawValue> {
    // Two braces are always JSON, so the fallback is never taken.
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
