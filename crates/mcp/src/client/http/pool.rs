//! The connections to one server. The task that waits for an answer also reads and writes its
//! connection, so that an answer wakes nothing but its caller.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::Request;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use tokio::time::Instant;

use super::connector::{CONNECT_TIMEOUT, Connector, Stream};
use super::response::Response;
use crate::client::TransportError;
use crate::lock::lock;

/// How long a connection is kept that no request uses.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The most that is read at once, so that a server that sends without end leaves time for others.
const READ_BUFFER: usize = 64 * 1024;

type Body = Full<Bytes>;

#[derive(Debug)]
pub(super) struct Pool {
    pub(super) connector: Connector,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// By the time of their last use, the longest unused first.
    connections: VecDeque<(Instant, Connection)>,
    /// Whether a task evicts what was not used for too long.
    evicting: bool,
}

/// A connection that carries one request at a time.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Body>,
    /// None once the connection has ended.
    driver: Option<Box<http1::Connection<Stream, Body>>>,
}

// === impl Pool ===

impl Pool {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            connector,
            idle: Mutex::default(),
        }
    }

    /// Sends a request and waits for the head of its response. A request is sent again only if an
    /// idle connection turns out to have ended before the first byte of it was written.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Body>,
    ) -> Result<Response, TransportError> {
        loop {
            let idle = self.take();
            let reused = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                // Boxed, so that a call on an idle connection does not carry the state of TLS.
                None => self.connect().boxed().await?,
            };
            match connection.exchange(request).await {
                Ok(response) => return Ok(Response::new(response, connection, self)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if reused => request = unsent,
                    Some(_) => return Err(TransportError::Connect(error.into_error().into())),
                    None => return Err(TransportError::Broken(error.into_error())),
                },
            }
        }
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let connecting = async {
            let stream = self.connector.connect().await?;
            let (sender, driver) = http1::Builder::new()
                .max_buf_size(READ_BUFFER)
                .handshake(stream)
                .await?;
            Ok(Connection {
                sender,
                driver: Some(Box::new(driver)),
            })
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(outcome) => outcome.map_err(TransportError::Connect),
            Err(_) => Err(TransportError::ConnectTimeout {
                after: CONNECT_TIMEOUT,
            }),
        }
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = lock(&self.idle);
        let (since, connection) = idle.connections.pop_back()?;
        (since.elapsed() < IDLE_TIMEOUT).then_some(connection)
    }

    pub(super) fn put(self: &Arc<Self>, connection: Connection) {
        let mut idle = lock(&self.idle);
        idle.connections.push_back((Instant::now(), connection));
        if !idle.evicting {
            idle.evicting = true;
            tokio::spawn(Self::evict(Arc::downgrade(self)));
        }
    }

    async fn evict(pool: Weak<Self>) {
        loop {
            tokio::time::sleep(IDLE_TIMEOUT).await;
            let Some(pool) = pool.upgrade() else {
                return;
            };
            let mut idle = lock(&pool.idle);
            let fresh = |(since, _): &(Instant, Connection)| since.elapsed() < IDLE_TIMEOUT;
            idle.connections.retain(fresh);
            if idle.connections.is_empty() {
                idle.evicting = false;
                return;
            }
        }
    }
}

// === impl Connection ===

impl Connection {
    /// Sends a request. The error holds the request if nothing of it was written.
    fn exchange(
        &mut self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<http::Response<Incoming>, Box<TrySendError<Request<Body>>>>>
    {
        // Nothing polls an idle connection, so its end is noticed here.
        self.drive(&mut Context::from_waker(Waker::noop()));
        let answer = self.sender.try_send_request(request);
        async {
            // Only `drive` can complete it, so it needs neither a waker nor a share of the budget
            // for cooperative scheduling, whose end would be told to that waker.
            let mut answer = pin!(tokio::task::coop::unconstrained(answer));
            poll_fn(|context| {
                self.drive(context);
                answer
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()))
            })
            .await
            .map_err(Box::new)
        }
    }

    /// Reads and writes what can be at the moment. When the connection ends, so does what waits
    /// for it.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(context).is_ready()
        {
            self.driver = None;
        }
    }

    /// Whether it can take the next request.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }
}
