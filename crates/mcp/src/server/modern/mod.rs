//! The modern era, 2026-07-28, whatever carries it: every request stands by itself, and what the
//! service asks the client becomes the answer to the client's call.
//!
//! The service notices nothing of this. While a call waits for input its future goes on beside the
//! [`parked_calls`], and the client's next request brings the answers to it.

mod answer;
mod capability;
mod conversation;
mod listener;
mod listeners;
mod opened;
mod parked_calls;
mod subscription;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Extensions;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub(super) use self::answer::Answer;
use self::answer::Question;
pub use self::capability::may_be_asked;
pub(super) use self::conversation::Conversation;
use self::conversation::InputRequest;
pub(super) use self::listener::Listener;
use self::listeners::Listeners;
pub(super) use self::opened::Opened;
use self::opened::{Facts, Input};
pub use self::parked_calls::Parking;
use self::parked_calls::{Parked, ParkedCalls, RequestIdentity, Reservation};
use super::call::run;
use super::exchange::Outcome;
use super::outbound::Outbound;
use super::route::Route;
use super::service::{
    ClientIdentity, Connection, InitializeResult, RequestContext, SameCaller, Service,
};
use super::session_id::{NoRandomness, SessionId};
use crate::lock::lock;
use crate::modern::{methods, result_type};
use crate::{ErrorObject, Notification, ProtocolVersion};

/// How long a first question waits for others, so that they go to the client together. Over HTTP a server sends each
/// in a piece of its own.
const GATHER: Duration = Duration::from_millis(100);

/// The modern side of an endpoint or a pipe.
#[derive(Debug)]
pub(super) struct Modern<S: Service> {
    service: Arc<S>,
    parked_calls: Arc<ParkedCalls>,
    listeners: Arc<Listeners>,
    /// What the service said last about who it is; results repeat it.
    server_info: Mutex<Option<Arc<RawValue>>>,
    ended: Mutex<CancellationToken>,
    same_caller: SameCaller,
}

/// A call as one round finds it.
struct Running {
    conversation: Arc<Conversation>,
    connection: Arc<Connection>,
    subject: RequestIdentity,
    work: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

/// Whether the method left the protocol with this era.
fn is_removed(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "ping"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe"
    )
}

impl<S: Service> Modern<S> {
    pub(super) fn new(service: Arc<S>, parking: Parking, max_listeners: usize) -> Self {
        Self {
            service,
            parked_calls: ParkedCalls::new(parking),
            listeners: Arc::new(Listeners::new(max_listeners)),
            server_info: Mutex::default(),
            ended: Mutex::default(),
            same_caller: |_, _| true,
        }
    }

    /// A call that waits for input goes on only for who began it.
    pub(super) fn told_apart_by(mut self, same_caller: SameCaller) -> Self {
        self.same_caller = same_caller;
        self
    }

    /// Fires when a round's answer is no longer wanted; the transport cancels it when its client
    /// hangs up.
    pub(super) fn new_round(&self) -> CancellationToken {
        lock(&self.ended).child_token()
    }

    /// Answers one request other than `subscriptions/listen`; `None` if the client hung up.
    pub(super) async fn serve(
        self: Arc<Self>,
        opened: Opened,
        extensions: Extensions,
        route: Route,
        round: CancellationToken,
    ) -> Option<Answer> {
        let question = Question::of(&opened.request);
        let method = opened.request.method.as_str();
        if is_removed(method) {
            let error = ErrorObject::method_not_found(method);
            return Some(question.refuse(error));
        }
        let outcome = if method == methods::DISCOVER {
            self.discover(&opened, extensions).await
        } else {
            match self.begin(opened, extensions, route) {
                Ok(running) => self.converse(running, round).await?,
                Err(error) => Err(error),
            }
        };
        let server_info = lock(&self.server_info).clone();
        Some(question.answer(outcome, server_info.as_deref()))
    }

    pub(super) async fn notified(&self, notification: Notification, extensions: Extensions) {
        let facts = Facts::unknown();
        match self.connection(&notification.method, facts, extensions, None) {
            Ok(connection) => {
                let connection = Arc::new(connection);
                self.service.notification(notification, connection).await;
            }
            Err(error) => tracing::error!(%error, "a notification is lost"),
        }
    }

    pub(super) fn broadcast(&self, notification: &Notification) {
        self.listeners.announce(notification);
    }

    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        self.listeners.connections()
    }

    /// Cancels every call, running or parked, and ends every stream of subscriptions.
    pub(super) fn end_all(&self) {
        std::mem::take(&mut *lock(&self.ended)).cancel();
        self.parked_calls.clear();
        self.listeners.end_all();
    }

    /// Whom the service is, for clients of an era without a handshake.
    async fn introduce(&self, connection: &Connection) -> Result<InitializeResult, ErrorObject> {
        let hello = self.service.initialize(connection).await?;
        *lock(&self.server_info) = Some(Arc::from(hello.server_info.clone()));
        Ok(hello)
    }

    async fn discover(&self, opened: &Opened, extensions: Extensions) -> Outcome {
        let facts = opened.facts.clone();
        let connection = self
            .connection(&opened.request.method, facts, extensions, None)
            .map_err(|error| ErrorObject::internal(error.to_string()))?;
        let hello = self.introduce(&connection).await?;
        hello.encode_discovery()
    }

    /// A connection for one message; `route` is where its call can be heard.
    fn connection(
        &self,
        method: &str,
        facts: Facts,
        extensions: Extensions,
        route: Option<Route>,
    ) -> Result<Connection, NoRandomness> {
        let listeners = Arc::clone(&self.listeners);
        let conversation = Conversation::new(method, &facts, HashMap::new(), route, listeners);
        connection_of(conversation, facts.client, extensions)
    }

    /// Hands the request to the service, or finds the call that it goes on with.
    fn begin(
        &self,
        opened: Opened,
        extensions: Extensions,
        route: Route,
    ) -> Result<Running, ErrorObject> {
        let Opened {
            request,
            facts,
            input,
        } = opened;
        if let Some(state) = &input.state {
            let parked = self.parked_calls.resume(state, |parked| {
                parked.subject.is_of(&request)
                    && (self.same_caller)(&parked.connection.extensions, &extensions)
            });
            let parked = parked.ok_or_else(|| {
                ErrorObject::invalid_params(
                    "Invalid params: this requestState is not known here. It may have expired or \
                     been used before; make the call again without it",
                )
            })?;
            return Ok(Running::resumed(parked, facts, input, route));
        }
        let subject = RequestIdentity::of(&request);
        let listeners = Arc::clone(&self.listeners);
        let given = input.responses;
        let conversation =
            Conversation::new(&request.method, &facts, given, Some(route), listeners);
        let log_level = facts.log_level;
        let connection = connection_of(Arc::clone(&conversation), facts.client, extensions)
            .map_err(|error| ErrorObject::internal(error.to_string()))?;
        let connection = Arc::new(connection);
        let context = RequestContext {
            connection: Arc::clone(&connection),
            request_id: request.id.clone(),
            outbound: connection.outbound.clone(),
            cancelled: conversation.cancelled.clone(),
            log_level,
        };
        let service = Arc::clone(&self.service);
        Ok(Running {
            conversation,
            connection,
            subject,
            work: Box::pin(async move { run(&*service, request, context).await }),
        })
    }

    /// Runs a call until it is over or needs input; `None` if the client hung up.
    async fn converse(&self, mut running: Running, round: CancellationToken) -> Option<Outcome> {
        loop {
            let conversation = Arc::clone(&running.conversation);
            let asked = async {
                conversation.asked().await;
                sleep(GATHER).await;
            };
            tokio::select! {
                biased;
                outcome = &mut running.work => return Some(outcome),
                () = round.cancelled() => {
                    conversation.cancelled.cancel();
                    // The client waits no longer; the service may still have things to put away.
                    let _ = running.work.await;
                    return None;
                }
                () = asked => {}
            }
            let questions = conversation.questions();
            if questions.is_empty() {
                continue;
            }
            match self.parked_calls.reserve() {
                Ok(place) => return Some(input_required(&questions, &running.park(place))),
                Err(no_place) => {
                    let error = ErrorObject::internal(no_place.to_string());
                    conversation.refuse_questions(&error);
                }
            }
        }
    }
}

// === impl Running ===

impl Running {
    fn resumed(parked: Parked, facts: Facts, input: Input, route: Route) -> Self {
        let Parked {
            conversation,
            connection,
            subject,
            outcome,
            unless_resumed,
        } = parked;
        unless_resumed.disarm();
        conversation.resume(facts, input, route);
        let work = async move {
            // The sender is dropped only with the runtime.
            let outcome = outcome.await;
            outcome.unwrap_or_else(|_| Err(ErrorObject::internal("the call was lost")))
        };
        Self {
            conversation,
            connection,
            subject,
            work: Box::pin(work),
        }
    }

    /// Lets the call go on by itself, and names the state to come back with.
    fn park(self, place: Reservation) -> String {
        self.conversation.pause();
        let (sender, outcome) = oneshot::channel();
        let work = self.work;
        tokio::spawn(async move {
            // The client of a call that has expired does not learn how it ended.
            let _ = sender.send(work.await);
        });
        place.take(Parked {
            unless_resumed: self.conversation.cancelled.clone().drop_guard(),
            conversation: self.conversation,
            connection: self.connection,
            subject: self.subject,
            outcome,
        })
    }
}

fn connection_of(
    conversation: Arc<Conversation>,
    client: ClientIdentity,
    extensions: Extensions,
) -> Result<Connection, NoRandomness> {
    Ok(Connection {
        session: SessionId::random()?,
        protocol: ProtocolVersion::MODERN,
        client,
        extensions,
        outbound: Outbound::of_conversation(conversation),
    })
}

fn input_required(questions: &BTreeMap<String, InputRequest>, state: &str) -> Outcome {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct InputRequired<'a> {
        result_type: &'static str,
        input_requests: &'a BTreeMap<String, InputRequest>,
        request_state: &'a str,
    }

    to_raw_value(&InputRequired {
        result_type: result_type::INPUT_REQUIRED,
        input_requests: questions,
        request_state: state,
    })
    .map_err(|error| ErrorObject::internal(error.to_string()))
}
