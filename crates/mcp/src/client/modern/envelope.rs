//! What makes a request stand by itself: who asks, what they can do, and what was asked of them
//! before.

use serde_json::value::RawValue;

use crate::client::{Hello, RequestError};
use crate::modern::meta;
use crate::{Members, ProtocolVersion};

/// What every request says about us, unless it has something else to say.
#[derive(Debug)]
pub(super) struct Identity {
    version: Box<RawValue>,
    client_info: Box<RawValue>,
    capabilities: Box<RawValue>,
}

/// What one request adds.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Additions<'a> {
    /// The capabilities of the client on whose behalf we ask.
    pub(super) capabilities: Option<&'a RawValue>,
    pub(super) log_level: Option<&'a RawValue>,
    pub(super) retry: Option<&'a Retry>,
}

/// What goes along when a request is sent again because the server wanted to know something first.
#[derive(Debug, Default)]
pub(super) struct Retry {
    pub(super) responses: Option<Box<RawValue>>,
    /// Handed back as it was given.
    pub(super) state: Option<Box<RawValue>>,
}

impl Identity {
    pub(super) fn new(hello: &Hello) -> Result<Self, serde_json::Error> {
        let mut client_info = Vec::new();
        hello.encode_client_info(&mut client_info);
        Ok(Self {
            version: serde_json::value::to_raw_value(ProtocolVersion::MODERN.as_str())?,
            client_info: serde_json::from_slice(&client_info)?,
            capabilities: hello.capabilities.clone(),
        })
    }

    /// The params with everything that belongs into them. What the caller put into `_meta` stays,
    /// except where it would speak for us.
    pub(super) fn complete(
        &self,
        params: Option<&RawValue>,
        additions: Additions<'_>,
    ) -> Result<Box<RawValue>, RequestError> {
        let mut members = object(params)?;
        let mut meta = object(members.get("_meta"))?;
        meta.set(meta::PROTOCOL_VERSION, self.version.clone());
        meta.set(meta::CLIENT_INFO, self.client_info.clone());
        let capabilities = additions.capabilities.unwrap_or(&self.capabilities);
        meta.set(meta::CLIENT_CAPABILITIES, capabilities.to_owned());
        if let Some(level) = additions.log_level
            && meta.get(meta::LOG_LEVEL).is_none()
        {
            meta.set(meta::LOG_LEVEL, level.to_owned());
        }
        let meta = meta.to_raw().map_err(RequestError::Params)?;
        members.set("_meta", meta);
        if let Some(retry) = additions.retry {
            exchange(&mut members, "inputResponses", retry.responses.as_deref());
            exchange(&mut members, "requestState", retry.state.as_deref());
        }
        members.to_raw().map_err(RequestError::Params)
    }
}

fn object(raw: Option<&RawValue>) -> Result<Members<'_>, RequestError> {
    match raw {
        Some(raw) if raw.get() != "null" => Members::parse(raw).map_err(RequestError::Params),
        _ => Ok(Members::default()),
    }
}

fn exchange(members: &mut Members<'_>, name: &str, value: Option<&RawValue>) {
    match value {
        Some(value) => members.set(name, value.to_owned()),
        None => members.remove(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn complete(params: Option<&str>, additions: Additions<'_>) -> Value {
        let mut hello = Hello::new("tester", "1");
        hello.capabilities = raw(r#"{"roots":{}}"#);
        let identity = Identity::new(&hello).unwrap();
        let params = params.map(raw);
        let completed = identity.complete(params.as_deref(), additions).unwrap();
        serde_json::from_str(completed.get()).unwrap()
    }

    #[test]
    fn a_request_without_params_gets_some() {
        let expected = json!({"_meta": {
            meta::PROTOCOL_VERSION: "2026-07-28",
            meta::CLIENT_INFO: {"name": "tester", "version": "1"},
            meta::CLIENT_CAPABILITIES: {"roots": {}},
        }});
        assert_eq!(complete(None, Additions::default()), expected);
        assert_eq!(complete(Some("null"), Additions::default()), expected);
    }

    #[test]
    fn the_callers_meta_stays_except_where_it_would_speak_for_us() {
        let params = r#"{"name":"n","_meta":{"progressToken":7,
            "io.modelcontextprotocol/protocolVersion":"1999-01-01",
            "io.modelcontextprotocol/logLevel":"debug"}}"#;
        let (capabilities, level) = (raw(r#"{"sampling":{}}"#), raw("\"error\""));
        let additions = Additions {
            capabilities: Some(&capabilities),
            log_level: Some(&level),
            retry: None,
        };
        let completed = complete(Some(params), additions);
        let meta = &completed["_meta"];
        assert_eq!(completed["name"], "n");
        assert_eq!(meta["progressToken"], 7);
        assert_eq!(meta[meta::PROTOCOL_VERSION], "2026-07-28");
        assert_eq!(meta[meta::CLIENT_CAPABILITIES], json!({"sampling": {}}));
        assert_eq!(meta[meta::LOG_LEVEL], "debug");
        assert_eq!(complete(None, additions)["_meta"][meta::LOG_LEVEL], "error");
    }

    #[test]
    fn a_retry_carries_what_it_was_given_and_nothing_older() {
        let params = r#"{"name":"n","requestState":"old","inputResponses":{"old":{}}}"#;
        let retry = Retry {
            responses: Some(raw(r#"{"a":{}}"#)),
            state: None,
        };
        let additions = Additions {
            retry: Some(&retry),
            ..Additions::default()
        };
        let completed = complete(Some(params), additions);
        assert_eq!(completed["inputResponses"], json!({"a": {}}));
        assert_eq!(completed.get("requestState"), None);
    }

    #[test]
    fn params_that_are_no_object_are_an_error() {
        let identity = Identity::new(&Hello::new("tester", "1")).unwrap();
        for params in ["[1]", r#"{"_meta":7}"#] {
            let outcome = identity.complete(Some(&raw(params)), Additions::default());
            assert!(matches!(outcome, Err(RequestError::Params(_))), "{params}");
        }
    }
}
