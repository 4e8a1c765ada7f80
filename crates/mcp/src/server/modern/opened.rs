//! A modern request taken apart: what it says about its sender in `_meta`, the input it brings, and
//! the request as a client of the legacy era would have sent it.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::members::Members;
use crate::message::empty_object;
use crate::modern::meta;
use crate::server::handshake::check_kept;
use crate::server::service::ClientIdentity;
use crate::{ErrorObject, LogLevel, ProtocolVersion, Request, codes};

#[derive(Debug)]
pub(in crate::server) struct Opened {
    /// Without the members that only this era knows.
    pub(in crate::server) request: Request,
    pub(in crate::server) facts: Facts,
    pub(super) input: Input,
}

/// What `_meta` tells.
#[derive(Debug, Clone)]
pub(in crate::server) struct Facts {
    /// As it was written; it may be an unknown one.
    pub(in crate::server) version: String,
    pub(super) client: ClientIdentity,
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress_token: Option<Box<RawValue>>,
}

/// What the client brings because an earlier answer asked for it.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) responses: HashMap<String, Box<RawValue>>,
    pub(super) state: Option<String>,
}

/// Why a request cannot be understood. All of these are -32602.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Flaw {
    #[error("params must be an object")]
    Params,
    #[error("params._meta is missing or is not an object")]
    NoMeta,
    #[error("params._meta lacks {0}")]
    Missing(&'static str),
    #[error("{0} in params._meta is not what it has to be")]
    Invalid(&'static str),
    #[error("inputResponses must be an object of objects, each given once")]
    InputResponses,
    #[error("requestState must be a string")]
    RequestState,
}

#[derive(Deserialize)]
struct ClientInfo<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    version: Option<Cow<'a, str>>,
}

/// The requests whose answer may be a question.
pub(super) fn may_need_input(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

// === impl Opened ===

impl Opened {
    /// Whether the request goes on with a call that waits for input.
    pub(in crate::server) fn resumes(&self) -> bool {
        self.input.state.is_some()
    }

    /// `limit` is how many bytes a client may say about itself.
    pub(in crate::server) fn read(
        mut request: Request,
        limit: usize,
    ) -> Result<Self, (Request, ErrorObject)> {
        match take_apart(&request, limit) {
            Ok((params, facts, input)) => {
                request.params = params;
                Ok(Self {
                    request,
                    facts,
                    input,
                })
            }
            Err(error) => Err((request, error)),
        }
    }
}

fn take_apart(
    request: &Request,
    limit: usize,
) -> Result<(Option<Box<RawValue>>, Facts, Input), ErrorObject> {
    let params = request.params.as_deref().ok_or(Flaw::NoMeta)?;
    let mut params = Members::parse(params).map_err(|_| Flaw::Params)?;
    let meta = params.get("_meta").map(ToOwned::to_owned);
    let meta = meta.ok_or(Flaw::NoMeta)?;
    let mut meta = Members::parse(&meta).map_err(|_| Flaw::NoMeta)?;
    let said = |name| meta.get(name);
    check_kept(
        said(meta::CLIENT_CAPABILITIES),
        said(meta::CLIENT_INFO),
        limit,
    )?;
    let facts = Facts::read(&meta)?;
    for era in [
        meta::PROTOCOL_VERSION,
        meta::CLIENT_INFO,
        meta::CLIENT_CAPABILITIES,
        meta::LOG_LEVEL,
    ] {
        meta.remove(era);
    }
    if meta.is_empty() {
        params.remove("_meta");
    } else {
        params.set("_meta", meta.to_raw().map_err(|_| Flaw::NoMeta)?);
    }
    let mut input = Input::default();
    if may_need_input(&request.method) {
        input = Input::read(&params)?;
        params.remove("inputResponses");
        params.remove("requestState");
    }
    let rest = params.to_raw().map_err(|_| Flaw::Params)?;
    Ok((Some(rest), facts, input))
}

// === impl Facts ===

impl Facts {
    fn read(meta: &Members<'_>) -> Result<Self, Flaw> {
        let required = |name| meta.get(name).ok_or(Flaw::Missing(name));
        let version = required(meta::PROTOCOL_VERSION)?;
        let version = serde_json::from_str(version.get())
            .map_err(|_| Flaw::Invalid(meta::PROTOCOL_VERSION))?;
        let capabilities = required(meta::CLIENT_CAPABILITIES)?;
        if !capabilities.get().starts_with('{') {
            return Err(Flaw::Invalid(meta::CLIENT_CAPABILITIES));
        }
        // A client need not say who it is.
        let info = meta
            .get(meta::CLIENT_INFO)
            .and_then(|raw| serde_json::from_str::<ClientInfo<'_>>(raw.get()).ok());
        let (name, client_version) = info.map_or((None, None), |info| (info.name, info.version));
        let log_level = meta.get(meta::LOG_LEVEL).map(read_level).transpose()?;
        Ok(Self {
            version,
            client: ClientIdentity::new(
                name.as_deref(),
                client_version.as_deref(),
                capabilities.to_owned(),
            ),
            log_level,
            progress_token: meta.get("progressToken").map(ToOwned::to_owned),
        })
    }

    /// For messages that need not say anything about their sender.
    pub(super) fn unknown() -> Self {
        Self {
            version: ProtocolVersion::MODERN.to_string(),
            client: ClientIdentity::new(None, None, empty_object()),
            log_level: None,
            progress_token: None,
        }
    }

    pub(in crate::server) fn check_version(&self) -> Result<(), ErrorObject> {
        if self.version == ProtocolVersion::MODERN.as_str() {
            return Ok(());
        }
        let mut error = ErrorObject::new(
            codes::UNSUPPORTED_PROTOCOL_VERSION,
            format!("Unsupported protocol version: {}", self.version),
        );
        let data = serde_json::json!({
            "supported": [ProtocolVersion::MODERN.as_str()],
            "requested": self.version,
        });
        error.data = serde_json::value::to_raw_value(&data).ok();
        Err(error)
    }
}

fn read_level(raw: &RawValue) -> Result<LogLevel, Flaw> {
    serde_json::from_str::<String>(raw.get())
        .ok()
        .and_then(|level| level.parse().ok())
        .ok_or(Flaw::Invalid(meta::LOG_LEVEL))
}

// === impl Input ===

impl Input {
    fn read(params: &Members<'_>) -> Result<Self, Flaw> {
        let mut input = Self::default();
        if let Some(raw) = params.get("inputResponses") {
            let responses = Members::parse(raw).map_err(|_| Flaw::InputResponses)?;
            for (name, response) in responses.iter() {
                let given = input.responses.insert(name.to_owned(), response.to_owned());
                if given.is_some() || !response.get().starts_with('{') {
                    return Err(Flaw::InputResponses);
                }
            }
        }
        if let Some(raw) = params.get("requestState") {
            let state = serde_json::from_str(raw.get()).map_err(|_| Flaw::RequestState)?;
            input.state = Some(state);
        }
        Ok(input)
    }
}

// === impl Flaw ===

impl From<Flaw> for ErrorObject {
    fn from(flaw: Flaw) -> Self {
        Self::invalid_params(format!("Invalid params: {flaw}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestId;

    fn open(method: &str, params: &str) -> Result<Opened, String> {
        let request = Request {
            id: RequestId::from(1),
            method: method.to_owned(),
            params: Some(RawValue::from_string(params.to_owned()).unwrap()),
        };
        Opened::read(request, 1_000).map_err(|(_, error)| error.message)
    }

    const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#;

    #[test]
    fn what_is_left_is_the_request_of_a_legacy_client() {
        let opened = open(
            "tools/call",
            &format!(
                r#"{{"name":"t","arguments":{{"a": 1.0}},"_meta":{{{META},"progressToken":7,"traceparent":"x"}},
                    "inputResponses":{{"k":{{"action":"accept"}}}},"requestState":"s"}}"#
            ),
        )
        .unwrap();
        assert_eq!(
            opened.request.params.unwrap().get(),
            r#"{"name":"t","arguments":{"a": 1.0},"_meta":{"progressToken":7,"traceparent":"x"}}"#
        );
        assert_eq!(opened.facts.client.capabilities.get(), r#"{"roots":{}}"#);
        assert_eq!(opened.facts.client.name, "unknown");
        assert_eq!(opened.facts.progress_token.unwrap().get(), "7");
        assert_eq!(opened.input.state.as_deref(), Some("s"));
        assert_eq!(opened.input.responses["k"].get(), r#"{"action":"accept"}"#);
        let bare = open("tools/list", &format!(r#"{{"_meta":{{{META}}}}}"#)).unwrap();
        assert_eq!(bare.request.params.unwrap().get(), "{}");
    }

    #[test]
    fn only_requests_that_may_need_input_bring_it() {
        let params = format!(r#"{{"inputResponses":{{}},"_meta":{{{META}}}}}"#);
        let opened = open("tasks/update", &params).unwrap();
        assert_eq!(
            opened.request.params.unwrap().get(),
            r#"{"inputResponses":{}}"#
        );
    }

    #[test]
    fn flaws_are_named() {
        let table = [
            ("[]".to_owned(), Flaw::Params),
            ("{}".to_owned(), Flaw::NoMeta),
            (r#"{"_meta":null}"#.to_owned(), Flaw::NoMeta),
            (
                r#"{"_meta":{}}"#.to_owned(),
                Flaw::Missing(meta::PROTOCOL_VERSION),
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#.to_owned(),
                Flaw::Invalid(meta::PROTOCOL_VERSION),
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}"#.to_owned(),
                Flaw::Missing(meta::CLIENT_CAPABILITIES),
            ),
            (
                format!(r#"{{"_meta":{{{META},"io.modelcontextprotocol/logLevel":"loud"}}}}"#),
                Flaw::Invalid(meta::LOG_LEVEL),
            ),
            (
                format!(r#"{{"inputResponses":null,"_meta":{{{META}}}}}"#),
                Flaw::InputResponses,
            ),
            (
                format!(r#"{{"inputResponses":{{"k":1}},"_meta":{{{META}}}}}"#),
                Flaw::InputResponses,
            ),
            (
                format!(r#"{{"inputResponses":{{"k":{{}},"k":{{}}}},"_meta":{{{META}}}}}"#),
                Flaw::InputResponses,
            ),
            (
                format!(r#"{{"requestState":{{}},"_meta":{{{META}}}}}"#),
                Flaw::RequestState,
            ),
        ];
        for (params, flaw) in table {
            let expected = ErrorObject::from(flaw).message;
            assert_eq!(
                open("tools/call", &params).err(),
                Some(expected),
                "{params}"
            );
        }
    }

    #[test]
    fn only_the_meta_of_the_params_names_a_version() {
        use crate::modern::named_version;

        let named = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            named_version(Some(&raw)).is_some()
        };
        assert!(named(&format!(r#"{{"_meta":{{{META}}}}}"#)));
        assert!(!named(&format!(
            r#"{{"arguments":{{"_meta":{{{META}}}}}}}"#
        )));
        assert!(!named("{}"));
        assert!(named_version(None).is_none());
    }
}
