//! The scripted upstream behind streamable HTTP, inside the process of the test.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;

use super::engine::{Engine, Line, Message};
use super::record::Record;
use super::script::{Script, Wire};

const SESSION_ID: &str = "mcp-session-id";

/// A running upstream; it ends when dropped.
#[derive(Debug)]
pub struct HttpUpstream {
    address: SocketAddr,
    record: PathBuf,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Face {
    engine: Engine,
    /// How many calls each session has left.
    sessions: Mutex<HashMap<String, usize>>,
    next_session: AtomicUsize,
}

impl HttpUpstream {
    /// Starts `script` on a free port of the loopback interface.
    pub async fn start(folder: &Path, name: &str, script: Script) -> Self {
        Self::recorded(&folder.join(format!("{name}.record.jsonl")), script).await
    }

    /// Like [`HttpUpstream::start`], with a record at any place.
    pub async fn recorded(record: &Path, script: Script) -> Self {
        let face = Arc::new(Face {
            engine: Engine::new(script, record),
            sessions: Mutex::default(),
            next_session: AtomicUsize::new(1),
        });
        let storming = Arc::clone(&face);
        face.engine.recorder.started(None);
        let router = Router::new()
            .route("/mcp", get(stream_announcements).post(post).delete(delete))
            .with_state(Arc::clone(&face));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move {
            tokio::select! {
                served = axum::serve(listener, router) => served.expect("serving"),
                () = storming.engine.storm() => (),
            }
        });
        Self {
            address,
            record: record.to_owned(),
            server,
        }
    }

    /// The entry for `mcpServers`.
    pub fn config(&self) -> Value {
        json!({"url": self.url()})
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn record(&self) -> Record {
        Record::at(&self.record)
    }
}

impl Drop for HttpUpstream {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn post(State(face): State<Arc<Face>>, headers: HeaderMap, body: String) -> Response {
    let Some(message) = face.engine.receive(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if let Some(address) = &face.engine.script.http.redirect {
        return (
            StatusCode::TEMPORARY_REDIRECT,
            [(header::LOCATION, address)],
        )
            .into_response();
    }
    let session = match face.admit(&message, &headers) {
        Ok(session) => session,
        Err(status) => return status.into_response(),
    };
    if message.id.is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    let (lines, answers) = mpsc::channel(16);
    let wire = face.engine.script.http.wire;
    tokio::spawn(async move { face.engine.respond(&message, &lines).await });
    let answer = match wire {
        Wire::Json => json_answer(answers).await,
        Wire::EventStream => event_stream("id: 0\ndata:\n\n", answers),
        Wire::PlainEventStream => event_stream("", answers),
    };
    ([(SESSION_ID, session)], answer).into_response()
}

async fn delete(State(face): State<Arc<Face>>, headers: HeaderMap) -> StatusCode {
    let id = session_id(&headers);
    let mut sessions = face.sessions.lock().expect("the sessions");
    match sessions.remove(&id) {
        Some(_) => StatusCode::OK,
        None => StatusCode::NOT_FOUND,
    }
}

/// The stream for what belongs to no request.
async fn stream_announcements(State(face): State<Arc<Face>>, headers: HeaderMap) -> Response {
    if !face.knows(&session_id(&headers)) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let receiver = face.engine.announcements.subscribe();
    let events = stream::unfold(
        receiver,
        |mut receiver: broadcast::Receiver<_>| async move {
            let text: String = receiver.recv().await.ok()?;
            Some((Ok::<_, Infallible>(event(&text)), receiver))
        },
    );
    event_response(Body::from_stream(events))
}

impl Face {
    /// Finds or makes the session a message belongs to.
    fn admit(&self, message: &Message, headers: &HeaderMap) -> Result<String, StatusCode> {
        let script = &self.engine.script.http;
        let is_call = message.method.as_deref() == Some("tools/call");
        if let Some(status) = script.status.or(script.call_status.filter(|_| is_call)) {
            return Err(StatusCode::from_u16(status).expect("a status"));
        }
        let mut sessions = self.sessions.lock().expect("the sessions");
        if message.method.as_deref() == Some("initialize") {
            if let Some(status) = script.initialize_status {
                return Err(StatusCode::from_u16(status).expect("a status"));
            }
            let number = self.next_session.fetch_add(1, Ordering::Relaxed);
            let id = format!("session-{number}");
            sessions.insert(id.clone(), script.calls_per_session.unwrap_or(usize::MAX));
            return Ok(id);
        }
        let id = session_id(headers);
        let calls_left = sessions.get_mut(&id).ok_or(StatusCode::NOT_FOUND)?;
        if is_call {
            if *calls_left == 0 {
                sessions.remove(&id);
                return Err(StatusCode::NOT_FOUND);
            }
            *calls_left -= 1;
        }
        Ok(id)
    }

    fn knows(&self, session: &str) -> bool {
        let sessions = self.sessions.lock().expect("the sessions");
        sessions.contains_key(session)
    }
}

fn session_id(headers: &HeaderMap) -> String {
    let id = headers.get(SESSION_ID);
    id.and_then(|id| id.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

async fn json_answer(mut lines: mpsc::Receiver<Line>) -> Response {
    while let Some(line) = lines.recv().await {
        if let Line::Answer(text) = line {
            return ([(header::CONTENT_TYPE, "application/json")], text).into_response();
        }
    }
    // The script ends the process here; the nearest thing a server in a test can do.
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

fn event_stream(priming: &str, lines: mpsc::Receiver<Line>) -> Response {
    let priming = stream::iter([Ok(priming.as_bytes().to_vec())]);
    let events = stream::unfold(Stage::Lines(lines), async |stage| match stage {
        Stage::Lines(mut lines) => Some(match lines.recv().await? {
            Line::Aside(text) => (Ok(event(&text).into_bytes()), Stage::Lines(lines)),
            Line::Answer(text) => (Ok(event(&text).into_bytes()), Stage::End),
            Line::Raw(bytes) => (Ok(bytes), Stage::Lines(lines)),
            Line::Half(text) => (Ok(format!("data: {text}").into_bytes()), Stage::Cut),
        }),
        Stage::Cut => Some((Err(std::io::Error::other("cut off")), Stage::End)),
        Stage::End => None,
    });
    event_response(Body::from_stream(priming.chain(events)))
}

/// What comes next in an event stream.
enum Stage {
    Lines(mpsc::Receiver<Line>),
    /// The connection ends in the midst of an event.
    Cut,
    End,
}

fn event_response(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn event(text: &str) -> String {
    format!(
        "event: message\ndata: {}\n\n",
        text.replace('\n', "\ndata: ")
    )
}
