//! An MCP session over one HTTP connection that is kept open, as an agent has it.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::net::TcpStream;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The path of the MCP endpoint of everything that [`crate::process`] starts.
pub(crate) const MCP: &str = "/mcp";

#[derive(Debug)]
pub(crate) struct Session {
    sender: SendRequest<Full<Bytes>>,
    path: Uri,
    headers: HeaderMap,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

impl Session {
    pub(crate) async fn open(address: SocketAddr, path: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // When it breaks, the next call says so.
        tokio::spawn(connection);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, address.to_string().parse()?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accepted);
        let mut session = Self {
            sender,
            path: path.parse()?,
            headers,
        };
        let (status, headers, _) = session.send(session.message(INITIALIZE.into())?).await?;
        ensure!(status == StatusCode::OK, "initialize: {status}");
        if let Some(id) = headers.get(SESSION_ID) {
            session.headers.insert(SESSION_ID, id.clone());
        }
        let (status, _) = session.post(INITIALIZED.into()).await?;
        ensure!(status.is_success(), "initialized: {status}");
        Ok(session)
    }

    pub(crate) async fn post(&mut self, message: Bytes) -> Result<(StatusCode, Bytes)> {
        let (status, _, body) = self.send(self.message(message)?).await?;
        Ok((status, body))
    }

    /// The result of a request.
    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> Result<Box<RawValue>> {
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let (status, body) = self.post(message.into()).await?;
        let said = || String::from_utf8_lossy(&body).into_owned();
        ensure!(status == StatusCode::OK, "{status}: {}", said());
        let answer: Answer<'_> = serde_json::from_slice(message_in(&body)).with_context(said)?;
        Ok(answer.result.to_owned())
    }

    /// The `data` of an answer of the REST API.
    pub(crate) async fn api(&mut self, path: &str, key: &str) -> Result<Value> {
        let mut request = Request::get(format!("/api/v1{path}")).body(Full::default())?;
        let key = HeaderValue::try_from(format!("Bearer {}", key.trim()))?;
        request.headers_mut().insert(AUTHORIZATION, key);
        let (status, _, body) = self.send(request).await?;
        let said = || String::from_utf8_lossy(&body).into_owned();
        ensure!(status == StatusCode::OK, "{path}: {status}: {}", said());
        let mut answer: Value = serde_json::from_slice(&body).with_context(said)?;
        Ok(answer["data"].take())
    }

    fn message(&self, message: Bytes) -> Result<Request<Full<Bytes>>> {
        Ok(Request::post(self.path.clone()).body(Full::new(message))?)
    }

    async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, HeaderMap, Bytes)> {
        request.headers_mut().extend(self.headers.clone());
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let (parts, body) = response.into_parts();
        Ok((
            parts.status,
            parts.headers,
            body.collect().await?.to_bytes(),
        ))
    }
}

/// The message in a body. One that took long comes as the last of a few events.
pub(crate) fn message_in(body: &[u8]) -> &[u8] {
    if body.starts_with(b"{") {
        return body;
    }
    body.split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data: "))
        .next_back()
        .unwrap_or(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_in_either_kind_of_body() {
        assert_eq!(message_in(br#"{"id":1}"#), br#"{"id":1}"#);
        let events = b"id: 1-0\ndata: \n\nid: 1-1\ndata: {\"id\":1}\n\n";
        assert_eq!(message_in(events), br#"{"id":1}"#);
    }
}
