//! The fixture behind the transport of 2024-11-05: a stream of events carries everything that the
//! server says, and its first event names the address that messages go to. The eras are those it
//! is told: the transport is older than one of them, a server mounted behind it need not be.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream::{self, StreamExt};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio_util::task::AbortOnDropHandle;

use super::eras::Eras;
use super::fixture::ConformanceServer;
use super::local::only_from_here;
use super::stdio::serve_pipes;

/// What may wait in each direction of a session.
const BUFFER: usize = 1 << 20;

/// The sessions, by the id in the address for their messages.
#[derive(Debug)]
struct Sessions {
    eras: Eras,
    service: Arc<ConformanceServer>,
    open: Mutex<HashMap<u64, Arc<Writer>>>,
    last: AtomicU64,
}

type Writer = tokio::sync::Mutex<DuplexStream>;

/// One client's stream. When it hangs up, its session is over.
struct Session {
    id: u64,
    sessions: Arc<Sessions>,
    said: Lines<BufReader<DuplexStream>>,
    _serving: AbortOnDropHandle<()>,
}

#[derive(Deserialize)]
struct Address {
    session: u64,
}

pub(super) fn router(eras: Eras) -> Router {
    let sessions = Sessions {
        eras,
        service: Arc::default(),
        open: Mutex::default(),
        last: AtomicU64::new(0),
    };
    Router::new()
        .route("/sse", get(open))
        .route("/messages", post(receive))
        .with_state(Arc::new(sessions))
        .layer(middleware::from_fn(only_from_here))
}

/// GET: begins a session. The wire inside is that of stdio, a message per line.
async fn open(State(sessions): State<Arc<Sessions>>) -> Response {
    let (to_server, reading) = tokio::io::duplex(BUFFER);
    let (writing, from_server) = tokio::io::duplex(BUFFER);
    let (eras, service) = (sessions.eras, Arc::clone(&sessions.service));
    let serving = tokio::spawn(async move {
        // Its client is gone, which the stream shows by itself.
        let _ = serve_pipes(eras, service, BufReader::new(reading), writing).await;
    });
    let id = sessions.last.fetch_add(1, Ordering::Relaxed);
    let writer = Arc::new(Writer::new(to_server));
    sessions
        .open
        .lock()
        .expect("the sessions")
        .insert(id, writer);
    let session = Session {
        id,
        sessions,
        said: BufReader::new(from_server).lines(),
        _serving: AbortOnDropHandle::new(serving),
    };
    let address = format!("event: endpoint\ndata: /messages?session={id}\n\n");
    let first = stream::iter([Ok::<_, Infallible>(address)]);
    let messages = stream::unfold(session, |mut session| async move {
        let line = session.said.next_line().await.ok()??;
        Some((Ok(format!("event: message\ndata: {line}\n\n")), session))
    });
    let body = Body::from_stream(first.chain(messages));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// POST: a message from the client. Whatever is answered to it comes by the stream.
async fn receive(
    State(sessions): State<Arc<Sessions>>,
    Query(address): Query<Address>,
    body: String,
) -> StatusCode {
    let writer = {
        let open = sessions.open.lock().expect("the sessions");
        open.get(&address.session).cloned()
    };
    let Some(writer) = writer else {
        return StatusCode::NOT_FOUND;
    };
    if serde_json::from_str::<IgnoredAny>(&body).is_err() {
        return StatusCode::BAD_REQUEST;
    }
    // Line breaks in JSON stand between its tokens only.
    let line = format!("{}\n", body.replace(['\n', '\r'], " "));
    let written = writer.lock().await.write_all(line.as_bytes()).await;
    match written {
        Ok(()) => StatusCode::ACCEPTED,
        Err(_) => StatusCode::NOT_FOUND,
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut open = self.sessions.open.lock().expect("the sessions");
        open.remove(&self.id);
    }
}
