//! One pipe and what runs for its client.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::LineOptions;
use crate::modern::is_modern;
use crate::server::call::{answer, encode_batch, for_service};
use crate::server::exchange::{Exchange, NotBegun, Outcome};
use crate::server::handshake::{Hello, empty_object};
use crate::server::modern::Modern;
use crate::server::outbound::Outbound;
use crate::server::route::Route;
use crate::server::service::{Connection, Service};
use crate::server::session_id::SessionId;
use crate::{ErrorObject, Inbound, Message, Request, RequestId, Response, codes};

/// The state of one connection. Dropping it ends the session.
#[derive(Debug)]
pub(super) struct Lines<S: Service> {
    service: Arc<S>,
    pub(super) modern: Arc<Modern<S>>,
    pub(super) exchange: Arc<Exchange>,
    pub(super) pipe: mpsc::Sender<Vec<u8>>,
    /// What connections are made of: the one that `initialize` makes, or that of each request.
    pub(super) extensions: http::Extensions,
    connection: Option<Arc<Connection>>,
    max_calls: usize,
    permits: Arc<Semaphore>,
    /// Apart from the calls, so that calls that hang do not cost notifications.
    notices: Arc<Semaphore>,
    pub(super) session_bytes: usize,
    pub(super) calls: JoinSet<()>,
}

// === impl Lines ===

impl<S: Service> Lines<S> {
    pub(super) fn new(service: Arc<S>, pipe: mpsc::Sender<Vec<u8>>, options: &LineOptions) -> Self {
        let modern = Modern::new(Arc::clone(&service), options.parking, options.max_calls);
        Self {
            service,
            modern: Arc::new(modern),
            exchange: Exchange::new(options.max_calls),
            pipe,
            extensions: options.extensions.clone(),
            connection: None,
            max_calls: options.max_calls,
            permits: Arc::new(Semaphore::new(options.max_calls)),
            notices: Arc::new(Semaphore::new(options.max_calls)),
            session_bytes: options.session_bytes,
            calls: JoinSet::new(),
        }
    }

    pub(super) async fn line(&mut self, text: &[u8]) {
        // Only those that run are of interest.
        while self.calls.try_join_next().is_some() {}
        match Inbound::parse_from_client(text) {
            Ok(Inbound::One(message)) => self.message(message).await,
            Ok(Inbound::Batch(messages)) => self.batch(messages).await,
            Err(error) => self.send(error.to_response().encode()).await,
        }
    }

    pub(super) async fn oversized(&self, id: Option<RequestId>, bytes: u64, limit: usize) {
        let message = format!("Invalid request: {bytes} bytes, but at most {limit} are accepted");
        let error = ErrorObject::new(codes::INVALID_REQUEST, message);
        self.send(response(id, Err(error)).encode()).await;
    }

    async fn message(&mut self, message: Message) {
        let Some(connection) = self.connection.clone() else {
            return self.without_session(message).await;
        };
        match message {
            Message::Request(request) => {
                let Some(permit) = self.permit() else {
                    return self.refuse(request.id).await;
                };
                let pipe = self.pipe.clone();
                let work = self.work(connection, request);
                self.calls.spawn(async move {
                    if let Some(response) = work.await {
                        // A client that is gone needs no answer.
                        let _ = pipe.send(response.encode()).await;
                    }
                    drop(permit);
                });
            }
            Message::Notification(notification) => {
                if let Some(notification) = for_service(&self.exchange, notification) {
                    // Beside the reading, because the service may ask the client something.
                    let Ok(permit) = Arc::clone(&self.notices).try_acquire_owned() else {
                        tracing::warn!("the client sends more notifications than can be taken");
                        return;
                    };
                    let service = Arc::clone(&self.service);
                    self.calls.spawn(async move {
                        service.notification(notification, connection).await;
                        drop(permit);
                    });
                }
            }
            Message::Response(response) => self.exchange.answered(response),
        }
    }

    async fn batch(&mut self, messages: Vec<Message>) {
        let connection = self.connection.clone();
        let Some(connection) = connection.filter(|it| it.protocol.allows_batches()) else {
            let message = "Invalid request: batches are not part of this protocol version";
            let error = ErrorObject::new(codes::INVALID_REQUEST, message);
            return self.send(response(None, Err(error)).encode()).await;
        };
        let permit = self.permit();
        let mut work = Vec::new();
        for message in messages {
            match message {
                Message::Request(request) if permit.is_none() => self.refuse(request.id).await,
                Message::Request(request) => {
                    work.push(self.work(Arc::clone(&connection), request));
                }
                other => Box::pin(self.message(other)).await,
            }
        }
        let pipe = self.pipe.clone();
        self.calls.spawn(async move {
            let answers: Vec<_> = join_all(work).await.into_iter().flatten().collect();
            if !answers.is_empty() {
                let _ = pipe.send(encode_batch(&answers)).await;
            }
            drop(permit);
        });
    }

    /// A message of a client that has not said hello, and of the modern era need not.
    async fn without_session(&mut self, message: Message) {
        match message {
            Message::Request(request) if is_modern(&request) => self.modern_request(request).await,
            Message::Request(request) => {
                let answer = self.first_contact(request).await;
                self.send(answer.encode()).await;
            }
            Message::Notification(notification) => {
                // Of what is left nothing can be acted on without knowing who sent it.
                let _ = for_service(&self.exchange, notification);
            }
            Message::Response(_) => {}
        }
    }

    /// A request before there is a session.
    async fn first_contact(&mut self, request: Request) -> Response {
        let outcome = match request.method.as_str() {
            "initialize" => self.initialize(request.params.as_deref()).await,
            "ping" => Ok(empty_object()),
            _ => Err(ErrorObject::new(
                codes::INVALID_REQUEST,
                "Invalid request: begin with an initialize request",
            )),
        };
        response(Some(request.id), outcome)
    }

    async fn initialize(&mut self, params: Option<&RawValue>) -> Outcome {
        let hello = Hello::parse(params, self.session_bytes)?;
        let session = SessionId::random().map_err(|error| {
            tracing::error!(%error, "cannot begin a session");
            ErrorObject::internal(error.to_string())
        })?;
        let connection = Connection {
            session,
            protocol: hello.protocol,
            client: hello.client,
            extensions: self.extensions.clone(),
            outbound: Outbound::of_session(self.route(), Arc::clone(&self.exchange)),
        };
        let result = self.service.initialize(&connection).await?;
        let result = result.encode(connection.protocol)?;
        self.connection = Some(Arc::new(connection));
        Ok(result)
    }

    /// One request on its way through the service. Its id is taken at once, so that a
    /// cancellation on the next line finds it.
    fn work(
        &self,
        connection: Arc<Connection>,
        request: Request,
    ) -> impl Future<Output = Option<Response>> + Send + use<S> {
        let exchange = Arc::clone(&self.exchange);
        let begun = exchange.begin(&request.id);
        let service = Arc::clone(&self.service);
        let route = self.route();
        async move {
            match begun {
                Ok(call) => {
                    let outbound = Outbound::of_call(route, exchange, &call);
                    answer(&*service, connection, outbound, call, request).await
                }
                Err(refused) => Some(response(Some(request.id), Err(refused.to_error()))),
            }
        }
    }

    pub(super) fn route(&self) -> Route {
        Route::Pipe(self.pipe.clone())
    }

    /// Room for one more call, which it has until its answer is on the way. Not waited for: what
    /// ends a call that hangs is a message that has yet to be read.
    pub(super) fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    pub(super) async fn refuse(&self, id: RequestId) {
        let error = NotBegun::TooMany(self.max_calls).to_error();
        self.send(response(Some(id), Err(error)).encode()).await;
    }

    pub(super) async fn send(&self, message: Vec<u8>) {
        // A closed pipe ends the loop that called this.
        let _ = self.pipe.send(message).await;
    }

    /// The client says nothing more: what runs may end by itself, then is cancelled, then dropped.
    pub(super) async fn finish_calls(&mut self, grace: Duration) {
        let exchange = Arc::clone(&self.exchange);
        exchange.close_questions();
        self.modern.end_all();
        if timeout(grace, self.all_calls()).await.is_ok() {
            return;
        }
        exchange.end();
        if timeout(grace, self.all_calls()).await.is_err() {
            self.calls.shutdown().await;
        }
    }

    async fn all_calls(&mut self) {
        while self.calls.join_next().await.is_some() {}
    }
}

impl<S: Service> Drop for Lines<S> {
    fn drop(&mut self) {
        self.exchange.end();
        self.modern.end_all();
        if let Some(connection) = &self.connection {
            self.service.closed(connection);
        }
    }
}

pub(super) fn response(id: Option<RequestId>, outcome: Outcome) -> Response {
    Response { id, outcome }
}
