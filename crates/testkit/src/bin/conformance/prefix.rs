//! The suite knows tools and prompts by their own names, while the endpoint for all upstreams gives
//! them a prefix. This stands between the two and translates; whatever is not a name passes as it
//! is.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use mcp::modern::headers::NAME;
use mcp::modern::{decode_header_value, encode_header_value};
use serde_json::Value;
use testkit::http_client;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const BODY_LIMIT: usize = 4 << 20;

/// The translator, listening; it ends when dropped.
pub(crate) struct Prefixing {
    url: String,
    server: JoinHandle<()>,
}

struct Translator {
    http: reqwest::Client,
    target: reqwest::Url,
    /// Ours, and the endpoint's: requests that are meant for us are meant for it.
    authority: (String, String),
    prefix: &'static str,
}

impl Prefixing {
    pub(crate) async fn start(target: &str, prefix: &'static str) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let target: reqwest::Url = target.parse()?;
        let translator = Arc::new(Translator {
            http: http_client(),
            authority: (
                format!(":{}", address.port()),
                format!(":{}", target.port().unwrap_or(80)),
            ),
            target,
            prefix,
        });
        let router = Router::new().fallback(translate).with_state(translator);
        let server = tokio::spawn(async move {
            // It ends with the run, which sees what went wrong before.
            let _ = axum::serve(listener, router).await;
        });
        let url = format!("http://{address}/mcp");
        Ok(Self { url, server })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Prefixing {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn translate(State(translator): State<Arc<Translator>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    match translator.forward(parts, body).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

// === impl Translator ===

impl Translator {
    async fn forward(&self, parts: Parts, body: Bytes) -> anyhow::Result<Response> {
        let message: Option<Value> = serde_json::from_slice(&body).ok();
        let method = message
            .as_ref()
            .and_then(|message| message["method"].as_str());
        let method = method.unwrap_or_default().to_owned();
        let headers = self.headers(&method, &parts.headers)?;
        let body = message.map_or(body, |message| self.prefixed(&method, message));
        let request = self.http.request(parts.method, self.target.clone());
        let response = request.headers(headers).body(body).send().await?;
        let status = response.status();
        let mut headers = response.headers().clone();
        headers.remove(header::TRANSFER_ENCODING);
        let body = if matches!(method.as_str(), "tools/list" | "prompts/list") {
            headers.remove(header::CONTENT_LENGTH);
            Body::from(self.unprefixed(&response.text().await?))
        } else {
            Body::from_stream(response.bytes_stream())
        };
        Ok((status, headers, body).into_response())
    }

    fn headers(&self, method: &str, given: &HeaderMap) -> anyhow::Result<HeaderMap> {
        let mut headers = given.clone();
        headers.remove(header::CONTENT_LENGTH);
        for name in [header::HOST, header::ORIGIN] {
            let Some(value) = given.get(&name).and_then(|value| value.to_str().ok()) else {
                continue;
            };
            if let Some(host) = value.strip_suffix(&self.authority.0) {
                let theirs = format!("{host}{}", self.authority.1);
                headers.insert(name, HeaderValue::from_str(&theirs)?);
            }
        }
        if matches!(method, "tools/call" | "prompts/get")
            && let Some(name) = given.get(&NAME).and_then(|name| name.to_str().ok())
            && let Ok(name) = decode_header_value(name)
        {
            let name = encode_header_value(&format!("{}{name}", self.prefix)).into_owned();
            headers.insert(NAME, HeaderValue::from_str(&name)?);
        }
        Ok(headers)
    }

    fn prefixed(&self, method: &str, mut message: Value) -> Bytes {
        let name = match method {
            "tools/call" | "prompts/get" => message.pointer_mut("/params/name"),
            "completion/complete" => message.pointer_mut("/params/ref/name"),
            _ => None,
        };
        if let Some(Value::String(name)) = name {
            name.insert_str(0, self.prefix);
        }
        message.to_string().into()
    }

    /// The answer to a list, as JSON or as events.
    fn unprefixed(&self, body: &str) -> String {
        let line = |line: &str| {
            let (field, data) = match line.strip_prefix("data: ") {
                Some(data) => ("data: ", data),
                None => ("", line),
            };
            match serde_json::from_str::<Value>(data) {
                Ok(message) => format!("{field}{}", self.without(message)),
                Err(_) => line.to_owned(),
            }
        };
        let lines: Vec<_> = body.split('\n').map(line).collect();
        lines.join("\n")
    }

    fn without(&self, mut message: Value) -> Value {
        for list in ["/result/tools", "/result/prompts"] {
            let Some(Value::Array(entries)) = message.pointer_mut(list) else {
                continue;
            };
            for entry in entries {
                let name = entry["name"].as_str();
                if let Some(name) = name.and_then(|name| name.strip_prefix(self.prefix)) {
                    entry["name"] = name.to_owned().into();
                }
            }
        }
        message
    }
}
