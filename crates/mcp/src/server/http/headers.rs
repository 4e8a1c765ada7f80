//! The headers that streamable HTTP gives a meaning.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

use super::refusal::Reason;
use super::stream::EventId;
use crate::ProtocolVersion;
use crate::modern::headers::PROTOCOL_VERSION;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

/// A POST may be answered by either kind of body, so its sender must take both.
pub(super) fn check_post(headers: &HeaderMap) -> Result<(), Reason> {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    if !content_type.is_some_and(|value| media_type(value).eq_ignore_ascii_case(JSON)) {
        return Err(Reason::MediaType);
    }
    if accepts(headers, JSON) && accepts(headers, EVENT_STREAM) {
        Ok(())
    } else {
        Err(Reason::NotAcceptable(
            "both application/json and text/event-stream",
        ))
    }
}

pub(super) fn check_get(headers: &HeaderMap) -> Result<(), Reason> {
    if accepts(headers, EVENT_STREAM) {
        Ok(())
    } else {
        Err(Reason::NotAcceptable("text/event-stream"))
    }
}

/// The version that a request after `initialize` names. Some clients name none.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Reason> {
    let Some(value) = headers.get(PROTOCOL_VERSION) else {
        return Ok(());
    };
    let named = value.to_str().ok().map(str::trim);
    match named.map(str::parse::<ProtocolVersion>) {
        Some(Ok(version)) if !version.is_modern() => Ok(()),
        _ => Err(Reason::Version),
    }
}

/// GET and DELETE are about a session, so without one there is nothing they could be for.
pub(super) fn check_has_session(headers: &HeaderMap) -> Result<(), Reason> {
    if headers.contains_key(SESSION_ID) {
        Ok(())
    } else {
        Err(Reason::Method)
    }
}

/// The version that the header names, whether or not anybody speaks it.
pub(super) fn named_version(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(PROTOCOL_VERSION)?;
    value.to_str().ok().map(str::trim)
}

pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(SESSION_ID)
        .and_then(|value| value.to_str().ok())
}

/// The event that a client saw last, if it resumes a stream.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Reason> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let event = value.to_str().ok().and_then(EventId::parse);
    event.map(Some).ok_or(Reason::UnknownEvent)
}

/// No `Accept` at all means that anything will do.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let mut given = headers.get_all(ACCEPT).iter().peekable();
    if given.peek().is_none() {
        return true;
    }
    let family = wanted.split('/').next().unwrap_or_default();
    given
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(media_type)
        .any(|range| {
            range.eq_ignore_ascii_case(wanted)
                || range == "*/*"
                || range
                    .strip_suffix("/*")
                    .is_some_and(|given| given.eq_ignore_ascii_case(family))
        })
}

/// The media type without its parameters.
fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn accepting(values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn accept_is_read_by_media_range() {
        let table: &[(&[&'static str], bool)] = &[
            (&[], true),
            (&["*/*"], true),
            (&["application/json, text/event-stream"], true),
            (&["application/json;q=0.9", "Text/Event-Stream"], true),
            (&["application/json, text/*"], true),
            (&["text/*"], true),
            (&["application/json"], false),
            (&["text/event-stream-ish"], false),
            (&["texts/*"], false),
        ];
        for (values, expected) in table {
            let headers = accepting(values);
            assert_eq!(accepts(&headers, EVENT_STREAM), *expected, "{values:?}");
        }
    }

    #[test]
    fn a_missing_version_is_tolerated_and_an_unknown_one_is_not() {
        let mut headers = HeaderMap::new();
        assert!(check_version(&headers).is_ok());
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static("2025-06-18"));
        assert!(check_version(&headers).is_ok());
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static("1999-01-01"));
        assert!(check_version(&headers).is_err());
    }
}
