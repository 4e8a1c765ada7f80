//! POST: a message from the client, and the answer by JSON or by events.

use std::pin::pin;
use std::sync::Arc;

use axum::response::Response as HttpResponse;
use futures_util::FutureExt;
use futures_util::future::join_all;
use http::request::Parts;
use http::{Extensions, HeaderValue, StatusCode};
use tokio::time::timeout;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Legacy;
use super::session::{Session, SessionParts};
use super::sessions::AllBusy;
use crate::server::SessionId;
use crate::server::call::{answer, encode_batch, for_service};
use crate::server::exchange::{Call, NotBegun};
use crate::server::handshake::Hello;
use crate::server::http::detach::Detachable;
use crate::server::http::headers;
use crate::server::http::refusal::{Reason, Refusal};
use crate::server::http::reply::{empty, json};
use crate::server::http::stream::EventStream;
use crate::server::outbound::Outbound;
use crate::server::route::Route;
use crate::server::service::{Connection, Service};
use crate::{ErrorObject, Inbound, Message, Notification, Request, RequestId, Response, codes};

/// What a POST with requests in it is answered with.
enum Answers {
    /// `None` after a cancellation.
    One(Option<Response>),
    Batch(Vec<Response>),
}

/// A stream that no client knows of yet. If its request is given up now nobody can ever resume it,
/// so it ends, and what is written to it is not kept.
struct UnpublishedStream(Option<Arc<EventStream>>);

// === impl Legacy ===

impl<S: Service> Legacy<S> {
    pub(in crate::server::http) async fn post(
        self: &Arc<Self>,
        parts: Parts,
        inbound: Inbound,
    ) -> Result<HttpResponse, Refusal> {
        if self.options.draining.is_cancelled()
            && let Some(request) = first_request(&inbound)
        {
            return Err(Refusal::of(&request.id, Reason::Stopping));
        }
        let inbound = match inbound {
            Inbound::One(Message::Request(request)) if request.method == "initialize" => {
                return self.initialize(request, parts.extensions).await;
            }
            inbound => inbound,
        };
        let session = self.session(&parts.headers, &parts.extensions);
        match inbound {
            Inbound::One(Message::Request(request)) => {
                let session = session.map_err(|reason| Refusal::of(&request.id, reason))?;
                Ok(self.call(session, request).await)
            }
            Inbound::One(Message::Notification(notification)) => {
                let session = session?;
                self.notified(&session, notification).await;
                Ok(empty(StatusCode::ACCEPTED))
            }
            Inbound::One(Message::Response(response)) => {
                session?.exchange().answered(response);
                Ok(empty(StatusCode::ACCEPTED))
            }
            Inbound::Batch(messages) => {
                let session = session?;
                if !session.connection.protocol.allows_batches() {
                    return Err(Reason::Batch.into());
                }
                Ok(self.batch(session, messages).await)
            }
        }
    }

    async fn initialize(
        self: &Arc<Self>,
        request: Request,
        extensions: Extensions,
    ) -> Result<HttpResponse, Refusal> {
        let _under_way = self.options.under_way.token();
        let refuse = |reason| Refusal::of(&request.id, reason);
        let hello = Hello::parse(request.params.as_deref(), self.options.session_bytes)
            .map_err(|error| refuse(Reason::Handshake(error)))?;
        let beginnings = SessionParts::new(&self.options);
        let connection = Connection {
            session: SessionId::random().map_err(|error| refuse(error.into()))?,
            protocol: hello.protocol,
            client: hello.client,
            extensions,
            outbound: beginnings.outbound(),
        };
        let result = self
            .service
            .initialize(&connection)
            .await
            .and_then(|result| result.encode(connection.protocol))
            .map_err(|error| refuse(Reason::Handshake(error)))?;
        let session = Arc::new(Session::new(connection, beginnings));
        let header = HeaderValue::from_str(session.id().as_str());
        let evicted = self
            .sessions
            .insert(Arc::clone(&session))
            .map_err(|AllBusy| {
                self.close(&session);
                refuse(Reason::TooManySessions)
            })?;
        if let Some(evicted) = evicted {
            tracing::debug!(session = ?evicted.id(), "session evicted to make room");
            self.close(&evicted);
        }
        self.start_reaper();
        let answer = Response {
            id: Some(request.id),
            outcome: Ok(result),
        };
        let mut response = json(answer.encode());
        if let Ok(header) = header {
            response.headers_mut().insert(headers::SESSION_ID, header);
        }
        Ok(response)
    }

    async fn notified(&self, session: &Session, notification: Notification) {
        let Some(notification) = for_service(session.exchange(), notification) else {
            return;
        };
        let service = Arc::clone(&self.service);
        let connection = Arc::clone(&session.connection);
        let work = async move { service.notification(notification, connection).await };
        // Waiting keeps a client's notifications in order; but the service may be asking the very
        // client that waits here.
        let _ = timeout(self.options.patience, Detachable::new(work)).await;
    }

    async fn call(&self, session: Arc<Session>, request: Request) -> HttpResponse {
        session.mark_used();
        let call = match session.exchange().begin(&request.id) {
            Ok(call) => call,
            Err(refused) => return json(refusal_of(&request, &refused).encode()),
        };
        let stream = session.new_stream();
        let id = request.id.clone();
        let (service, session_of_call) = (Arc::clone(&self.service), Arc::clone(&session));
        let stream_of_call = Arc::clone(&stream);
        // Until the answer is in the stream, or in our response.
        let under_way = self.options.under_way.token();
        let answers = Detachable::new(async move {
            let cancelled = call.cancelled.clone();
            let mut work = pin!(serve(
                service,
                session_of_call,
                &stream_of_call,
                call,
                request
            ));
            let response = tokio::select! {
                biased;
                response = &mut work => response,
                () = cancelled.cancelled() => {
                    // The client waits no longer; the service may still have things to put away.
                    stream_of_call.finish([]);
                    work.await
                }
            };
            (Answers::One(response), under_way)
        });
        self.respond(session, stream, vec![id], answers).await
    }

    async fn batch(&self, session: Arc<Session>, messages: Vec<Message>) -> HttpResponse {
        session.mark_used();
        let stream = session.new_stream();
        let (mut work, mut ids, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
        for message in messages {
            match message {
                Message::Request(request) => {
                    ids.push(request.id.clone());
                    let (service, session) = (Arc::clone(&self.service), Arc::clone(&session));
                    let stream = Arc::clone(&stream);
                    match session.exchange().begin(&request.id) {
                        Ok(call) => work.push(
                            async move { serve(service, session, &stream, call, request).await }
                                .boxed(),
                        ),
                        Err(refused) => refusals.push(refusal_of(&request, &refused)),
                    }
                }
                Message::Notification(notification) => {
                    self.notified(&session, notification).await;
                }
                Message::Response(response) => session.exchange().answered(response),
            }
        }
        if ids.is_empty() {
            return empty(StatusCode::ACCEPTED);
        }
        let under_way = self.options.under_way.token();
        let answers = Detachable::new(async move {
            let mut responses: Vec<_> = join_all(work).await.into_iter().flatten().collect();
            responses.append(&mut refusals);
            (Answers::Batch(responses), under_way)
        });
        self.respond(session, stream, ids, answers).await
    }

    /// Answers by JSON if the service answers soon and says nothing else before; else by events.
    async fn respond(
        &self,
        session: Arc<Session>,
        stream: Arc<EventStream>,
        ids: Vec<RequestId>,
        mut answers: Detachable<(Answers, TaskTrackerToken)>,
    ) -> HttpResponse {
        let reader = stream.attach();
        let unpublished = UnpublishedStream(Some(Arc::clone(&stream)));
        tokio::select! {
            biased;
            (answers, _under_way) = &mut answers => {
                if let Some(message) = answers.to_json() && stream.finish_if_silent() {
                    return json(message);
                }
                stream.finish(answers.into_messages());
            }
            () = reader.opened() => {}
            () = self.timer.sleep(self.options.patience) => {}
        }
        if let Some(rest) = answers.into_future() {
            let stream = Arc::clone(&stream);
            tokio::spawn(async move {
                let (answers, _under_way) = rest.await;
                stream.finish(answers.into_messages());
            });
        }
        if stream.is_silent() && stream.finished_at().is_some() {
            return if session.exchange().has_ended() {
                // Not 404, after which clients send a request again: this one may have run.
                json(cut_off(ids))
            } else {
                // Cancelled: events that end without an answer, and with nothing to resume.
                self.events(session.connection.protocol, None, reader)
            };
        }
        unpublished.publish_in(&session);
        self.new_events(session.connection.protocol, reader)
    }
}

/// Takes one request through the service, independent of its connection.
async fn serve<S: Service>(
    service: Arc<S>,
    session: Arc<Session>,
    stream: &Arc<EventStream>,
    call: Call,
    request: Request,
) -> Option<Response> {
    let route = Route::Stream(Arc::clone(stream));
    let outbound = Outbound::of_call(route, Arc::clone(session.exchange()), &call);
    let connection = Arc::clone(&session.connection);
    let response = answer(&*service, connection, outbound, call, request).await;
    session.touch();
    response
}

// === impl UnpublishedStream ===

impl UnpublishedStream {
    fn publish_in(mut self, session: &Session) {
        if let Some(stream) = self.0.take() {
            session.publish(stream);
        }
    }
}

impl Drop for UnpublishedStream {
    fn drop(&mut self) {
        if let Some(stream) = &self.0 {
            stream.finish([]);
        }
    }
}

// === impl Answers ===

impl Answers {
    /// `None` where there is nothing to answer.
    fn to_json(&self) -> Option<Vec<u8>> {
        match self {
            Self::One(response) => response.as_ref().map(Response::encode),
            Self::Batch(responses) if responses.is_empty() => None,
            Self::Batch(responses) => Some(encode_batch(responses)),
        }
    }

    fn into_messages(self) -> Vec<Vec<u8>> {
        match self {
            Self::One(response) => response.iter().map(Response::encode).collect(),
            Self::Batch(responses) => responses.iter().map(Response::encode).collect(),
        }
    }
}

fn first_request(inbound: &Inbound) -> Option<&Request> {
    let messages = match inbound {
        Inbound::One(message) => std::slice::from_ref(message),
        Inbound::Batch(messages) => messages,
    };
    messages.iter().find_map(|message| match message {
        Message::Request(request) => Some(request),
        Message::Notification(_) | Message::Response(_) => None,
    })
}

/// The answer to requests whose session ended while they ran.
fn cut_off(ids: Vec<RequestId>) -> Vec<u8> {
    let message =
        "The session ended before this request was answered; it may have been carried out";
    let mut answers: Vec<_> = ids
        .into_iter()
        .map(|id| Response {
            id: Some(id),
            outcome: Err(ErrorObject::new(codes::CONNECTION_CLOSED, message)),
        })
        .collect();
    match (answers.pop(), answers.is_empty()) {
        (Some(only), true) => only.encode(),
        (last, _) => {
            answers.extend(last);
            encode_batch(&answers)
        }
    }
}

fn refusal_of(request: &Request, refused: &NotBegun) -> Response {
    Response {
        id: Some(request.id.clone()),
        outcome: Err(refused.to_error()),
    }
}
