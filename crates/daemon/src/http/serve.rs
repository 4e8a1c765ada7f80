//! Accepts connections and serves them, within the limits of the config.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use config::Limits;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connections::{Connections, Entry};
use super::dispatch::Dispatch;
use super::seldom::Seldom;
use super::wire::{RequestBody, ResponseBody, Stream, WatchedStream};

/// How long accepting pauses when the system has nothing to accept a connection with.
const PAUSE: Duration = Duration::from_millis(200);

/// The end of the year 9999, in seconds from the Unix epoch.
const END_OF_9999: u64 = 253_402_300_799;

/// Where a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp(IpAddr),
    /// The Unix socket, whose peer has been checked to be the daemon's own user.
    Socket,
}

/// Accepts connections of one kind.
pub(super) trait Accept: Send + 'static {
    type Stream: Stream;

    /// What the listener is called in the log.
    const NAME: &'static str;

    /// The next connection; `None` for one that is turned away.
    fn accept(&self) -> impl Future<Output = io::Result<Option<(Self::Stream, Transport)>>> + Send;
}

/// What connections are served with, and how they end.
#[derive(Debug, Clone)]
pub(super) struct Serving<L> {
    pub dispatch: Arc<Dispatch>,
    /// The limits in force.
    pub limits: L,
    /// No connection is accepted any more.
    pub refusing: CancellationToken,
    /// Idle connections are closed, others after their answer.
    pub closing: CancellationToken,
    /// All connections are dropped.
    pub aborting: CancellationToken,
    /// The open connections.
    pub tasks: TaskTracker,
    /// How many connections there have been.
    pub accepted: Arc<AtomicU64>,
}

impl<L: Fn() -> Limits + Clone + Send + Sync + 'static> Serving<L> {
    /// Accepts connections until told to refuse them. Those that are open then go on in `tasks`.
    pub(super) async fn accept<A: Accept>(self, listener: A) {
        let connections = Connections::new(A::NAME);
        let watching = Arc::clone(&connections);
        let (limits, ended) = (self.limits.clone(), self.aborting.clone());
        tokio::spawn(async move { ended.run_until_cancelled(watching.watch(limits)).await });
        let refusing = self.refusing.clone();
        refusing
            .run_until_cancelled(self.accept_all(listener, connections))
            .await;
    }

    async fn accept_all<A: Accept>(self, listener: A, connections: Arc<Connections>) {
        let failures = Seldom::default();
        loop {
            match listener.accept().await {
                Ok(Some((stream, transport))) => {
                    self.accepted.fetch_add(1, Ordering::Relaxed);
                    connections.room((self.limits)().connections).await;
                    let entry = Arc::new(connections.add(&self.aborting));
                    self.tasks.spawn(self.connection(stream, transport, entry));
                }
                Ok(None) => {}
                Err(error) if is_of_the_client(&error) => {}
                Err(error) => {
                    let freed = is_shortage(&error) && connections.close_one_waiting();
                    if let Some(left_out) = failures.now() {
                        tracing::error!(
                            %error,
                            listener = A::NAME,
                            connections = connections.len(),
                            left_out,
                            "{}",
                            advice(&error)
                        );
                    }
                    if !freed {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        }
    }

    /// Serves one connection to its end.
    fn connection<S: Stream>(
        &self,
        stream: S,
        transport: Transport,
        entry: Arc<Entry>,
    ) -> impl Future<Output = ()> + Send + use<S, L> {
        let (dispatch, closing) = (Arc::clone(&self.dispatch), self.closing.clone());
        let connection = Arc::clone(entry.connection());
        let stream = TokioIo::new(WatchedStream::new(stream, Arc::clone(&entry)));
        let service = service_fn(move |request| answer(&dispatch, request, transport, &entry));
        let serving = http1::Builder::new().serve_connection(stream, service);
        async move {
            tokio::pin!(serving);
            let ended = tokio::select! {
                ended = poll_fn(|context| poll_serving(serving.as_mut(), context)) => ended,
                () = connection.closed() => return,
                () = closing.cancelled() => {
                    serving.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = poll_fn(|context| poll_serving(serving.as_mut(), context)) => ended,
                        () = connection.closed() => return,
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke off");
            }
        }
    }
}

/// Polls a connection, or ends it when the clock shows a year that HTTP has no date for: hyper renders
/// the date at every poll, also without `auto_date_header`, and panics before 1970 and after 9999.
fn poll_serving(
    serving: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    context: &mut Context<'_>,
) -> Poll<hyper::Result<()>> {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(time) if time.as_secs() <= END_OF_9999 => serving.poll(context),
        _ => {
            tracing::error!("no request is served while the clock is before 1970 or after 9999");
            Poll::Ready(Ok(()))
        }
    }
}

fn answer(
    dispatch: &Arc<Dispatch>,
    request: Request<Incoming>,
    transport: Transport,
    entry: &Arc<Entry>,
) -> impl Future<Output = Result<http::Response<ResponseBody>, Infallible>> + use<> {
    let (dispatch, entry) = (Arc::clone(dispatch), Arc::clone(entry));
    let request = request.map(|body| Body::new(RequestBody::new(body, Arc::clone(&entry))));
    async move {
        let response = dispatch.answer(request, transport).await;
        Ok(response.map(|body| ResponseBody::new(body, entry)))
    }
}

/// A client that was gone before it was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

fn advice(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => {
            "no connection can be accepted: this process has as many files open as it may. New clients \
             wait until one is closed; raise the limit (`ulimit -n`, LimitNOFILE) or lower \
             `limits.connections`"
        }
        Some(Errno::NFILE) => {
            "no connection can be accepted: the system has as many files open as it may. New clients \
             wait until one is closed; raise fs.file-max or end other programs"
        }
        _ => "no connection can be accepted for now; new clients wait",
    }
}
