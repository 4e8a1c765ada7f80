//! HTTP over the daemon's socket, with connections that are used again.

use std::error::Error;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use mcp::sse::{EventParser, EventTooLarge};
use mcp::{ErrorObject, codes};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};
use tower::Service;

use crate::exit::causes;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const EVENTS: &str = "text/event-stream";
const JSON_OR_EVENTS: &str = "application/json, text/event-stream";

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The way to the daemon.
#[derive(Debug)]
pub(super) struct Link {
    client: Client<Connector, Full<Bytes>>,
}

#[derive(Debug, Clone)]
struct Connector {
    socket: Arc<PathBuf>,
}

/// Why a request has no answer of the daemon's.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(
        "the daemon cannot be reached ({0}), so the request was not sent; start it with `mcpproxy \
         serve` and repeat the request"
    )]
    Unsent(String),
    #[error(
        "the daemon went away before it answered ({0}); the request may have been carried out, so \
         check its effect before you repeat it"
    )]
    Lost(String),
    #[error(
        "the daemon was started again and refuses to go on with this session ({0}), so the request \
         was not sent; restart the client"
    )]
    Refused(String),
    #[error("the daemon answered with status {0}")]
    Status(StatusCode),
    #[error("stdin was closed and the request took too long after that; it was cancelled")]
    Closing,
}

/// The pauses between attempts to reach a daemon that is away.
#[derive(Debug)]
pub(super) struct Backoff {
    pause: Duration,
    end: Option<Instant>,
}

/// The two kinds of a response.
#[derive(Debug)]
pub(super) enum Answer {
    Events(Box<Events>),
    Plain(Response<Incoming>),
}

/// The events of a response.
#[derive(Debug)]
pub(super) struct Events {
    body: Incoming,
    parser: EventParser,
    /// The id of the last event, from where the stream can be resumed.
    pub(super) last: Option<String>,
}

// === impl Link ===

impl Link {
    /// `idle` is how long an unused connection is kept.
    pub(super) fn new(socket: PathBuf, idle: Duration) -> Self {
        let socket = Arc::new(socket);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(idle)
            .build(Connector { socket });
        Self { client }
    }

    pub(super) async fn post(
        &self,
        headers: &HeaderMap,
        session: Option<&HeaderValue>,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failed> {
        let mut request = request(Method::POST, session, JSON_OR_EVENTS, body);
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, json);
        request.headers_mut().extend(headers.clone());
        self.send(request).await
    }

    /// Sends a message of which only the acceptance matters.
    pub(super) async fn tell(
        &self,
        headers: &HeaderMap,
        session: Option<&HeaderValue>,
        body: Bytes,
    ) -> Result<(), Failed> {
        let response = self.post(headers, session, body).await?;
        let status = response.status();
        // Read to its end, so that the connection can be used again.
        let body = response.into_body().collect().await;
        body.map_err(|error| Failed::lost(&error))?;
        if status.is_success() {
            Ok(())
        } else {
            Err(Failed::Status(status))
        }
    }

    /// Opens the stream of a session, or goes on with the one that the last event was of.
    pub(super) async fn get(
        &self,
        session: &HeaderValue,
        last: Option<&str>,
    ) -> Result<Response<Incoming>, Failed> {
        let mut request = request(Method::GET, Some(session), EVENTS, Bytes::new());
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
            request.headers_mut().insert(LAST_EVENT, last);
        }
        self.send(request).await
    }

    pub(super) async fn delete(&self, session: &HeaderValue) -> Result<(), Failed> {
        let request = request(Method::DELETE, Some(session), EVENTS, Bytes::new());
        self.send(request).await.map(|_| ())
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failed> {
        self.client.request(request).await.map_err(|error| {
            let why = causes(&error);
            if was_never_written(&error) {
                Failed::Unsent(why)
            } else {
                Failed::Lost(why)
            }
        })
    }
}

fn request(
    method: Method,
    session: Option<&HeaderValue>,
    accept: &'static str,
    body: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from_static("http://localhost/mcp");
    let headers = request.headers_mut();
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    if let Some(session) = session {
        headers.insert(SESSION, session.clone());
    }
    request
}

/// hyper calls a request canceled only if it handed the request back unwritten.
fn was_never_written(error: &legacy::Error) -> bool {
    let source = error
        .source()
        .and_then(|it| it.downcast_ref::<hyper::Error>());
    error.is_connect() || source.is_some_and(hyper::Error::is_canceled)
}

// === impl Connector ===

impl Service<Uri> for Connector {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let socket = Arc::clone(&self.socket);
        Box::pin(async move { Ok(TokioIo::new(UnixStream::connect(&*socket).await?)) })
    }
}

// === impl Failed ===

impl Failed {
    pub(super) fn lost(error: &dyn Error) -> Self {
        Self::Lost(causes(error))
    }

    /// For a request of the relay's own, on which nothing of the client's depends.
    pub(super) fn into_unsent(self) -> Self {
        match self {
            Self::Lost(why) => Self::Unsent(why),
            other => other,
        }
    }

    pub(super) fn is_unsent(&self) -> bool {
        matches!(self, Self::Unsent(_))
    }

    pub(super) fn to_error(&self) -> ErrorObject {
        ErrorObject::new(codes::CONNECTION_CLOSED, format!("mcpproxy: {self}"))
    }
}

// === impl Backoff ===

impl Backoff {
    pub(super) fn endless() -> Self {
        Self {
            pause: FIRST_PAUSE,
            end: None,
        }
    }

    pub(super) fn for_at_most(time: Duration) -> Self {
        Self {
            end: Some(Instant::now() + time),
            ..Self::endless()
        }
    }

    /// Waits longer each time; `false` when the time is over.
    pub(super) async fn wait(&mut self) -> bool {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            return false;
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }

    /// From now on there is no bound.
    pub(super) fn forget_end(&mut self) {
        self.end = None;
    }

    /// After a stream that was open for `lasted`, attempts are frequent again.
    pub(super) fn after_stream(&mut self, lasted: Duration) {
        if lasted > LONGEST_PAUSE {
            self.pause = FIRST_PAUSE;
        }
    }
}

// === impl Answer ===

impl Answer {
    /// No event may be longer than `limit`.
    pub(super) fn of(response: Response<Incoming>, limit: usize) -> Self {
        let kind = response.headers().get(header::CONTENT_TYPE);
        if !kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENTS.as_bytes())) {
            return Self::Plain(response);
        }
        Self::Events(Box::new(Events {
            body: response.into_body(),
            parser: EventParser::new(limit),
            last: None,
        }))
    }
}

// === impl Events ===

impl Events {
    /// The data of the next event that has data; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        loop {
            while let Some(event) = self.parser.next_event() {
                let event = event.map_err(|error: EventTooLarge| Failed::lost(&error))?;
                if event.id.is_some() {
                    self.last = event.id.filter(|id| !id.is_empty());
                }
                if !event.data.is_empty() {
                    return Ok(Some(event.data));
                }
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(Failed::lost(&error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.parser.push(&data);
                    }
                }
            }
        }
    }
}
