//! Where a server is and how to get there.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::modern::headers as modern;

/// The largest answer, or event on a stream, that is taken: 16 MiB.
const DEFAULT_BODY_LIMIT: usize = 16 * 1024 * 1024;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = modern::PROTOCOL_VERSION;
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Headers that belong to the protocol. A caller's own headers never stand in for them.
const RESERVED: [HeaderName; 10] = [
    ACCEPT,
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
    SESSION_ID,
    PROTOCOL_VERSION,
    LAST_EVENT_ID,
    modern::METHOD,
    modern::NAME,
];

/// How messages travel over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpTransport {
    /// Each message is a request to the one address. A server that does not take them there is
    /// tried as one of 2024-11-05.
    #[default]
    Streamable,
    /// The transport of 2024-11-05: a stream of events from the address, which says where messages
    /// go.
    Sse,
}

/// A server's address.
#[derive(Clone)]
pub struct HttpEndpoint {
    pub url: Url,
    pub transport: HttpTransport,
    /// Sent with every request, except where the protocol needs a header for itself.
    pub headers: HeaderMap,
    /// The largest answer that is taken, in bytes.
    pub body_limit: usize,
}

impl HttpEndpoint {
    pub fn new(url: Url) -> Self {
        Self {
            url,
            transport: HttpTransport::default(),
            headers: HeaderMap::new(),
            body_limit: DEFAULT_BODY_LIMIT,
        }
    }

    /// Takes the credentials out of the URL. They stand for an `Authorization` header.
    pub(super) fn take_credentials(&mut self) -> Option<HeaderValue> {
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let user = decode(self.url.username());
        let password = self.url.password().map(decode);
        if user.is_empty() && password.is_none() {
            return None;
        }
        // Fails only for a URL without a host, which has no place for them.
        let _ = self.url.set_username("");
        let _ = self.url.set_password(None);
        let pair = format!("{user}:{}", password.unwrap_or_default());
        let encoded = format!("Basic {}", BASE64_STANDARD.encode(pair));
        let mut value = HeaderValue::from_str(&encoded).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The caller's headers without those that are not the caller's to set.
    pub(super) fn own_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        for name in &RESERVED {
            headers.remove(name);
        }
        let parameters: Vec<_> = headers
            .keys()
            .filter(|name| name.as_str().starts_with(modern::PARAM_PREFIX))
            .cloned()
            .collect();
        for name in parameters {
            headers.remove(name);
        }
        headers
    }
}

/// Headers hold credentials, so only their names are shown.
impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpEndpoint")
            .field("url", &self.url.as_str())
            .field("transport", &self.transport)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("body_limit", &self.body_limit)
            .finish_non_exhaustive()
    }
}
