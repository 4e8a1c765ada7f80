//! Between a client on stdin and stdout and the daemon behind its socket: every message passes as
//! it is, the session is the daemon's.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use mcp::lines::{DEFAULT_LINE_LIMIT, Line, LineReader, LineWriter};
use mcp::sse::EventParser;
use mcp::{ErrorObject, Inbound, Message, RequestId, codes};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::exit::{Exit, Failure};

const SESSION: &str = "mcp-session-id";
const BOTH: &str = "application/json, text/event-stream";

/// Messages that wait to be written; more slow the daemon down.
const BACKLOG: usize = 64;

struct Relay {
    socket: PathBuf,
    session: OnceLock<HeaderValue>,
    to_client: mpsc::Sender<Vec<u8>>,
}

#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error("the daemon's socket is closed")]
    Connect(#[from] std::io::Error),
    #[error("the daemon's answer broke off")]
    Http(#[from] hyper::Error),
    #[error("the request cannot be made")]
    Request(#[from] http::Error),
    #[error("the daemon answered with status {0}")]
    Status(StatusCode),
    #[error("the daemon's events cannot be read")]
    Events(#[from] mcp::sse::EventTooLarge),
}

/// Passes messages until stdin closes.
pub(super) async fn run(socket: PathBuf) -> Result<(), Failure> {
    let (to_client, mut outgoing) = mpsc::channel::<Vec<u8>>(BACKLOG);
    let writing = tokio::spawn(async move {
        let mut writer = LineWriter::new(tokio::io::stdout());
        while let Some(message) = outgoing.recv().await {
            writer.write(message).await?;
            writer.flush().await?;
        }
        std::io::Result::Ok(())
    });
    let relay = Arc::new(Relay {
        socket,
        session: OnceLock::new(),
        to_client,
    });
    let requests = TaskTracker::new();
    let mut reader = LineReader::new(tokio::io::stdin(), DEFAULT_LINE_LIMIT);
    loop {
        let line = reader.next().await;
        let line =
            line.map_err(|error| Failure::from_error(Exit::Failed, "stdin failed", &error))?;
        match line {
            None => break,
            Some(Line::Oversized { bytes, .. }) => {
                let message = format!("a message of {bytes} bytes is too long");
                relay
                    .answer(None, ErrorObject::new(codes::INVALID_REQUEST, message))
                    .await;
            }
            Some(Line::Text(text)) => relay.clone().take(text, &requests).await,
        }
    }
    requests.close();
    requests.wait().await;
    relay.end_session().await;
    drop(relay);
    // What could not be written, nobody is there to read.
    let _ = writing.await;
    Ok(())
}

impl Relay {
    /// Requests run side by side; what has no answer keeps its place in the order.
    async fn take(self: Arc<Self>, text: &[u8], requests: &TaskTracker) {
        let body = Bytes::copy_from_slice(text);
        let id = match Inbound::parse(text) {
            Ok(Inbound::One(Message::Request(request))) if request.method != "initialize" => {
                requests.spawn(async move { self.pass(body, Some(request.id)).await });
                return;
            }
            Ok(Inbound::One(Message::Request(request))) => Some(request.id),
            Ok(_) => None,
            Err(error) => {
                let answer = Message::Response(error.to_response()).encode();
                // The client is gone if nobody takes it.
                let _ = self.to_client.send(answer).await;
                return;
            }
        };
        let greeted = id.is_some();
        self.pass(body, id).await;
        if greeted && self.session.get().is_some() {
            let listener = Arc::clone(&self);
            tokio::spawn(async move { listener.listen().await });
        }
    }

    async fn pass(&self, body: Bytes, id: Option<RequestId>) {
        if let Err(error) = self.post(body).await {
            tracing::warn!(%error, "message not passed");
            if id.is_some() {
                let message = format!("mcpproxy: {error}");
                self.answer(id, ErrorObject::new(codes::CONNECTION_CLOSED, message))
                    .await;
            }
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), RelayError> {
        let request = self
            .request(Method::POST)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, BOTH)
            .body(Body::from(body))?;
        let answer = self.send(request).await?;
        if let Some(session) = answer.headers().get(SESSION) {
            let _ = self.session.set(session.clone());
        }
        let is_events = answer
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let status = answer.status();
        if is_events {
            return self.pass_events(answer).await;
        }
        let body = answer.into_body().collect().await?.to_bytes();
        // Refusals come with a JSON-RPC error in the body, which is the client's to see.
        match Inbound::parse(&body) {
            Ok(_) => {
                let _ = self.to_client.send(body.into()).await;
                Ok(())
            }
            Err(_) if status.is_success() => Ok(()),
            Err(_) => Err(RelayError::Status(status)),
        }
    }

    /// What the daemon sends outside any request.
    async fn listen(&self) {
        let request = self
            .request(Method::GET)
            .header(header::ACCEPT, "text/event-stream");
        let Ok(request) = request.body(Body::empty()) else {
            return;
        };
        let heard = match self.send(request).await {
            Ok(answer) if answer.status().is_success() => self.pass_events(answer).await,
            Ok(answer) => Err(RelayError::Status(answer.status())),
            Err(error) => Err(error),
        };
        if let Err(error) = heard {
            tracing::debug!(%error, "no longer listening");
        }
    }

    async fn pass_events(&self, mut answer: Response<Incoming>) -> Result<(), RelayError> {
        let mut parser = EventParser::new(DEFAULT_LINE_LIMIT);
        while let Some(frame) = answer.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            parser.push(&data);
            while let Some(event) = parser.next_event() {
                let event = event?;
                if !event.data.is_empty() {
                    let _ = self.to_client.send(event.data).await;
                }
            }
        }
        Ok(())
    }

    async fn end_session(&self) {
        if self.session.get().is_some()
            && let Ok(request) = self.request(Method::DELETE).body(Body::empty())
        {
            // The session would expire by itself.
            let _ = self.send(request).await;
        }
    }

    async fn answer(&self, id: Option<RequestId>, error: ErrorObject) {
        let response = mcp::Response {
            id,
            outcome: Err(error),
        };
        let _ = self.to_client.send(response.encode()).await;
    }

    fn request(&self, method: Method) -> http::request::Builder {
        let request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header(header::HOST, "localhost");
        match self.session.get() {
            Some(session) => request.header(SESSION, session),
            None => request,
        }
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, RelayError> {
        let stream = UnixStream::connect(&self.socket).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender.send_request(request).await?)
    }
}
