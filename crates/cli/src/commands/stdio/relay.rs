//! Between a client on stdin and stdout and the daemon behind its socket. Messages pass as they
//! are; the relay adds the headers that HTTP demands. It outlives the daemon: when a daemon was
//! started again, the client's session is opened again, and the client goes on.
//!
//! A request that may have reached a daemon which then went away is never sent twice.

mod daemon;
mod frame;
mod link;
mod listen;
mod session;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use config::Settings;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use mcp::client::ToolHeaders;
use mcp::lines::{Line, LineReader, LineWriter};
use mcp::modern::standard_headers;
use mcp::{ErrorObject, Inbound, Message, Notification, RequestId, asked_call, codes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use self::daemon::Daemon;
use self::frame::{Call, Calls, Frame, Peek, Purpose, with_id};
use self::link::{Answer, Backoff, Events, Failed, Link, SESSION};
use self::session::{Current, Session};
use crate::exit::{Exit, Failure};

/// Requests that may be unanswered at once; a further one is refused.
const MAX_CALLS: usize = 128;

/// Messages that wait to be written; more slow the daemon down.
const BACKLOG: usize = 64;

/// How long the daemon may take to accept a message that has no answer.
const ACCEPTING: Duration = Duration::from_secs(10);

/// The bounds of a relay.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) socket: PathBuf,
    /// The settings of the daemon that is started when a request finds none.
    pub(super) starts_daemon: Option<Settings>,
    /// The longest message of the client.
    pub(super) request_bytes: usize,
    /// The longest message of the daemon.
    pub(super) event_bytes: usize,
    /// How long a request waits for a daemon that is away.
    pub(super) reconnect: Duration,
    /// How long an unused connection is kept.
    pub(super) idle: Duration,
    /// How long requests may go on after stdin has ended.
    pub(super) grace: Duration,
}

#[derive(Debug)]
struct Relay {
    link: Link,
    daemon: Daemon,
    session: Session,
    tools: ToolHeaders,
    calls: Calls,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
    to_client: mpsc::Sender<Vec<u8>>,
    reconnect: Duration,
    event_limit: usize,
    /// Fires when stdin ends: the client wants to hear nothing more unasked.
    stopping: CancellationToken,
    /// Fires when the grace of running requests is over.
    closing: CancellationToken,
}

/// Passes messages until stdin ends or stdout is closed.
pub(super) async fn run<R, W>(options: &Options, reader: R, writer: W) -> Result<(), Failure>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (to_client, outgoing) = mpsc::channel(BACKLOG);
    let writing = AbortOnDropHandle::new(tokio::spawn(write(outgoing, writer)));
    let relay = Arc::new(Relay::new(options, to_client));
    let mut lines = LineReader::new(reader, options.request_bytes);
    let outcome = loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = relay.to_client.closed() => break Ok(()),
        };
        match line {
            Ok(None) => break Ok(()),
            Ok(Some(Line::Text(text))) => relay.take(text).await,
            Ok(Some(Line::Oversized { bytes, head, tail })) => {
                let limit = options.request_bytes;
                let message =
                    format!("Invalid request: {bytes} bytes, but at most {limit} are accepted");
                let error = ErrorObject::new(codes::INVALID_REQUEST, message);
                relay.answer(asked_call(head, tail), error).await;
            }
            Err(error) => break Err(Failure::from_error(Exit::Failed, "stdin failed", &error)),
        }
    };
    relay.finish(options.grace).await;
    drop(relay);
    // A client that stopped reading does not keep the process alive.
    let _ = timeout(options.grace, writing).await;
    outcome
}

async fn write<W>(mut outgoing: mpsc::Receiver<Vec<u8>>, writer: W) -> std::io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    let mut writer = LineWriter::new(writer);
    while let Some(message) = outgoing.recv().await {
        writer.write(message).await?;
        while let Ok(message) = outgoing.try_recv() {
            writer.write(message).await?;
        }
        writer.flush().await?;
    }
    writer.shutdown().await
}

impl Options {
    pub(super) fn data_dir(&self) -> &Path {
        self.socket.parent().unwrap_or(Path::new("/"))
    }
}

impl Relay {
    fn new(options: &Options, to_client: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            link: Link::new(options.socket.clone(), options.idle),
            daemon: Daemon::new(options),
            session: Session::default(),
            tools: ToolHeaders::default(),
            calls: Calls::default(),
            permits: Arc::new(Semaphore::new(MAX_CALLS)),
            tasks: TaskTracker::new(),
            to_client,
            reconnect: options.reconnect,
            event_limit: options.event_bytes,
            stopping: CancellationToken::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Requests run side by side; what has no answer keeps its place in the order.
    async fn take(self: &Arc<Self>, text: &[u8]) {
        let inbound = match Inbound::parse_from_client(text) {
            Ok(inbound) => inbound,
            Err(error) => return self.send(error.to_response().encode()).await,
        };
        let body = Bytes::copy_from_slice(text);
        match inbound {
            Inbound::One(Message::Request(request)) => {
                let frame = Frame::of(&request, body, self.session.is_open(), &self.tools);
                self.begin(frame, &[request.id]).await;
            }
            Inbound::One(Message::Notification(notification)) => {
                self.notified(&notification, body).await;
            }
            Inbound::One(Message::Response(_)) => self.tell(&HeaderMap::new(), body).await,
            Inbound::Batch(messages) => {
                let ids: Vec<_> = messages
                    .into_iter()
                    .filter_map(|message| match message {
                        Message::Request(request) => Some(request.id),
                        _ => None,
                    })
                    .collect();
                if ids.is_empty() {
                    self.tell(&HeaderMap::new(), body).await;
                } else {
                    self.begin(Frame::plain(body), &ids).await;
                }
            }
        }
    }

    async fn begin(self: &Arc<Self>, frame: Frame, ids: &[RequestId]) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            let message = format!(
                "mcpproxy: {MAX_CALLS} requests are unanswered, so this one was not sent; repeat \
                 it when others have been answered"
            );
            return self.refuse(ids, codes::CONNECTION_CLOSED, &message).await;
        };
        let mut waiting = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(call) = self.calls.begin(id, frame.modern) else {
                let message = format!(
                    "Invalid request: request id {id} is already in use by a request that has not \
                     been answered yet"
                );
                return self.refuse(ids, codes::INVALID_REQUEST, &message).await;
            };
            waiting.push(call);
        }
        if frame.purpose == Purpose::Initialize {
            // The lines that follow need the session.
            return self.initialize(frame, waiting).await;
        }
        let relay = Arc::clone(self);
        self.tasks.spawn(async move {
            match (&frame.purpose, waiting.pop()) {
                (Purpose::Listen, Some(call)) => relay.listen(frame, call).await,
                (_, last) => {
                    waiting.extend(last);
                    relay.pass(frame, waiting).await;
                }
            }
            drop(permit);
        });
    }

    async fn initialize(self: &Arc<Self>, frame: Frame, waiting: Vec<Call>) {
        let is_first = !self.session.is_open();
        self.pass(frame, waiting).await;
        if is_first && self.session.is_open() {
            let relay = Arc::clone(self);
            self.tasks
                .spawn(async move { relay.follow_session().await });
        }
    }

    async fn notified(&self, notification: &Notification, body: Bytes) {
        let params = notification.params.as_deref();
        match notification.method.as_str() {
            "notifications/cancelled" if self.calls.cancel(params) => return,
            "notifications/initialized" => self.session.initialized(body.clone()),
            _ => {}
        }
        let mut headers = HeaderMap::new();
        if !self.session.is_open() {
            headers = standard_headers(&notification.method, params);
        }
        self.tell(&headers, body).await;
    }

    /// Sends what has no answer. It concerns the session of now, so it is not sent to another.
    async fn tell(&self, headers: &HeaderMap, body: Bytes) {
        let session = self.session.current();
        let telling = self.link.tell(headers, session.id.as_ref(), body);
        if let Ok(Err(error)) = timeout(ACCEPTING, telling).await {
            tracing::debug!(%error, "a message without an answer was not passed on");
        }
    }

    /// Sends a request and passes on what comes back; every call gets one answer.
    async fn pass(&self, frame: Frame, mut waiting: Vec<Call>) {
        let hang_up = match waiting.first() {
            Some(call) if frame.modern => call.cancelled.clone(),
            _ => CancellationToken::new(),
        };
        let outcome = tokio::select! {
            outcome = self.exchange(&frame, &mut waiting) => outcome,
            () = hang_up.cancelled() => return,
            () = self.closing.cancelled() => Err(Failed::Closing),
        };
        if let Err(failed) = outcome {
            self.fail(&mut waiting, &failed).await;
        }
    }

    async fn exchange(&self, frame: &Frame, waiting: &mut Vec<Call>) -> Result<(), Failed> {
        let mut backoff = Backoff::for_at_most(self.reconnect);
        let (session, response) = loop {
            let session = self.session.current();
            let id = session.id.as_ref();
            let id = id.filter(|_| !frame.modern && frame.purpose != Purpose::Initialize);
            let sent = self.link.post(&frame.headers, id, frame.body.clone()).await;
            let failed = match sent {
                // The daemon does not know the session, so it has not run the request.
                Ok(response) if id.is_some() && response.status() == StatusCode::NOT_FOUND => {
                    let renewed = self.renew(session.generation).await;
                    renewed.err().unwrap_or_else(|| {
                        Failed::Unsent("it does not know the session".to_owned())
                    })
                }
                Ok(response) => break (session, response),
                Err(failed) => failed,
            };
            let wanted = waiting.iter().any(|call| !call.cancelled.is_cancelled());
            if !wanted || !failed.is_unsent() {
                return Err(failed);
            }
            self.daemon.start().await?;
            if !backoff.wait().await {
                return Err(failed);
            }
        };
        match Answer::of(response, self.event_limit) {
            Answer::Events(events) => self.pass_events(events, &session, frame, waiting).await,
            Answer::Plain(response) => self.settle(response, frame, waiting).await,
        }
    }

    /// Passes on the events of a request. A stream that breaks off while the daemon is there can be
    /// resumed, in the legacy era.
    async fn pass_events(
        &self,
        mut events: Box<Events>,
        session: &Current,
        frame: &Frame,
        waiting: &mut Vec<Call>,
    ) -> Result<(), Failed> {
        let mut resumed_from = None;
        loop {
            let broken = loop {
                match events.next().await {
                    Ok(Some(message)) => self.deliver(message, frame, waiting).await,
                    Ok(None) => break Failed::Lost("its answer broke off".to_owned()),
                    Err(error) => break error,
                }
            };
            if waiting.iter().all(|call| call.cancelled.is_cancelled()) {
                return Ok(());
            }
            let last = events.last.take();
            let (Some(id), Some(last)) = (
                &session.id,
                last.filter(|it| resumed_from.as_ref() != Some(it)),
            ) else {
                return Err(broken);
            };
            let response = self.link.get(id, Some(&last)).await.map_err(|_| broken)?;
            resumed_from = Some(last);
            events = match Answer::of(response, self.event_limit) {
                Answer::Events(events) => events,
                Answer::Plain(response) => {
                    return Err(Failed::Lost(format!("status {}", response.status())));
                }
            };
        }
    }

    /// Passes on the body of a response that has no events.
    async fn settle(
        &self,
        response: Response<Incoming>,
        frame: &Frame,
        waiting: &mut Vec<Call>,
    ) -> Result<(), Failed> {
        let status = response.status();
        let session = response.headers().get(SESSION).cloned();
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| Failed::lost(&error))?.to_bytes();
        if let (Purpose::Initialize, Some(id)) = (&frame.purpose, session)
            && let [answer] = &Peek::all(&body)[..]
            && let Some(result) = answer.result
        {
            self.session.open(id, frame.body.clone(), result);
        }
        self.deliver(body.into(), frame, waiting).await;
        match waiting.iter().all(|call| call.cancelled.is_cancelled()) {
            true => Ok(()),
            false if status.is_success() => Err(Failed::Lost("it gave no answer".to_owned())),
            false => Err(Failed::Status(status)),
        }
    }

    /// Passes on one message of the daemon's, and notes whose answer it is.
    async fn deliver(&self, message: Vec<u8>, frame: &Frame, waiting: &mut Vec<Call>) {
        let peeked = Peek::all(&message);
        if peeked.is_empty() {
            return;
        }
        let mut unnamed = false;
        for answer in peeked.iter().filter(|it| it.is_answer()) {
            let Some(id) = answer.id() else {
                unnamed = true;
                continue;
            };
            // The id is free before the client can know that it was answered.
            waiting.retain(|call| call.id != id);
            if let Some(result) = answer.result {
                self.learn(frame, result);
            }
        }
        drop(peeked);
        let named = match &waiting[..] {
            [call] if unnamed => with_id(&message, &call.id),
            _ => None,
        };
        if named.is_some() {
            waiting.clear();
        }
        self.send(named.unwrap_or(message)).await;
    }

    fn learn(&self, frame: &Frame, result: &mcp::RawValue) {
        match frame.purpose {
            Purpose::ListTools => drop(self.tools.learn(result.to_owned())),
            _ => self.session.remember(&frame.purpose, &frame.body),
        }
    }

    async fn fail(&self, waiting: &mut Vec<Call>, failed: &Failed) {
        for call in waiting.drain(..) {
            if !call.cancelled.is_cancelled() {
                let id = call.id.clone();
                drop(call);
                self.answer(Some(id), failed.to_error()).await;
            }
        }
    }

    async fn refuse(&self, ids: &[RequestId], code: i64, message: &str) {
        for id in ids {
            let error = ErrorObject::new(code, message);
            self.answer(Some(id.clone()), error).await;
        }
    }

    async fn answer(&self, id: Option<RequestId>, error: ErrorObject) {
        let outcome = Err(error);
        self.send(mcp::Response { id, outcome }.encode()).await;
    }

    async fn send(&self, message: Vec<u8>) {
        // Once the client reads nothing any more, the loop that reads its lines ends.
        let _ = self.to_client.send(message).await;
    }

    /// The client says nothing more: requests may end by themselves, then they are cancelled.
    async fn finish(&self, grace: Duration) {
        self.stopping.cancel();
        self.tasks.close();
        if self.to_client.is_closed() || timeout(grace, self.tasks.wait()).await.is_err() {
            self.closing.cancel();
        }
        if let Some(id) = self.session.current().id {
            // Ends what the daemon still runs; otherwise the session expires by itself.
            let _ = timeout(grace, self.link.delete(&id)).await;
        }
        let _ = timeout(grace, self.tasks.wait()).await;
    }
}
