//! What we say about ourselves.

use std::time::Duration;

use serde_json::value::RawValue;

use super::{Era, ListingBudget};
use crate::id::encode_string;
use crate::message::{empty_object, encode_call};
use crate::{ProtocolVersion, RequestId};

/// How long a server may take to answer the question for its era. Legacy servers answer it with an
/// error, and at once; those that do not answer at all are legacy too.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// What we say about ourselves, and in which era.
#[derive(Debug, Clone)]
pub struct Hello {
    pub name: String,
    pub version: String,
    pub title: Option<String>,
    /// What a modern server is told with every request that has no capabilities of its own.
    pub capabilities: Box<RawValue>,
    /// The legacy revision asked for; the server may answer with an older one.
    pub protocol: ProtocolVersion,
    /// The era to speak, where it is known; without it the server is asked.
    pub era: Option<Era>,
    /// How long the server may take to answer that question before `initialize` is tried as well.
    pub probe_timeout: Duration,
    /// What a listing may take that is made on behalf of a call.
    pub listing: ListingBudget,
}

impl Hello {
    /// A client without capabilities that asks for the newest revision with a handshake.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            capabilities: empty_object(),
            protocol: ProtocolVersion::LATEST_LEGACY,
            era: Some(Era::Legacy),
            probe_timeout: PROBE_TIMEOUT,
            listing: ListingBudget::default(),
        }
    }

    /// The `initialize` request.
    pub(super) fn encode(&self, id: u64) -> Vec<u8> {
        let mut params = Vec::with_capacity(self.capabilities.get().len() + 160);
        params.extend_from_slice(b"{\"protocolVersion\":");
        encode_string(self.protocol.as_str(), &mut params);
        params.extend_from_slice(b",\"capabilities\":");
        params.extend_from_slice(self.capabilities.get().as_bytes());
        params.extend_from_slice(b",\"clientInfo\":");
        self.encode_client_info(&mut params);
        params.push(b'}');
        encode_call(Some(&RequestId::from(id)), "initialize", Some(&params))
    }

    pub(super) fn encode_client_info(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"name\":");
        encode_string(&self.name, out);
        out.extend_from_slice(b",\"version\":");
        encode_string(&self.version, out);
        if let Some(title) = &self.title {
            out.extend_from_slice(b",\"title\":");
            encode_string(title, out);
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_is_valid_json_whatever_the_name() {
        let mut hello = Hello::new("quo\"te", "1\n2");
        hello.title = Some("Tïtle".to_owned());
        let text = String::from_utf8(hello.encode(7)).unwrap();
        assert_eq!(
            text,
            r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"quo\"te","version":"1\n2","title":"Tïtle"}}}"#
        );
    }
}
