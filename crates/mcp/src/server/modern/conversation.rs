//! A call of a modern client, over as many rounds as it takes: what the service says goes to the
//! response of the round, and what it asks is what a round ends with.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::capability::Capability;
use super::listeners::Listeners;
use super::opened::{Facts, Input, may_need_input};
use crate::lock::lock;
use crate::members::Members;
use crate::message::empty_object;
use crate::server::exchange::Outcome;
use crate::server::outbound::{Gone, OfferError, OutboundError};
use crate::server::route::Route;
use crate::{ErrorObject, LogLevel, Notification, codes};

/// Notifications that may wait for a client to come back.
const MAX_HELD_BACK: usize = 64;

#[derive(Debug)]
pub(in crate::server) struct Conversation {
    listeners: Arc<Listeners>,
    may_ask: bool,
    log_level: Option<LogLevel>,
    /// The token that the service knows; a later round may have another.
    progress_token: Option<Box<RawValue>>,
    pub(super) cancelled: CancellationToken,
    state: Mutex<State>,
    asked: Notify,
}

#[derive(Debug)]
struct State {
    /// `None` between two rounds, when there is no response to write to.
    route: Option<Route>,
    /// What was said between two rounds, for the next one.
    held_back: Vec<Notification>,
    progress_token: Option<Box<RawValue>>,
    capabilities: Box<RawValue>,
    /// Answers that came before their questions.
    given: HashMap<String, Box<RawValue>>,
    open: BTreeMap<u64, Question>,
    last: u64,
}

#[derive(Debug)]
struct Question {
    key: String,
    request: InputRequest,
    answer: oneshot::Sender<Outcome>,
}

/// A question as the client gets it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct InputRequest {
    method: String,
    params: Box<RawValue>,
}

/// Withdraws a question unless it was answered: its caller has stopped waiting.
struct Withdrawal<'a> {
    conversation: &'a Conversation,
    question: u64,
}

#[derive(Deserialize)]
struct LogMessage<'a> {
    level: &'a str,
}

// === impl Conversation ===

impl Conversation {
    pub(super) fn new(
        method: &str,
        facts: &Facts,
        given: HashMap<String, Box<RawValue>>,
        route: Option<Route>,
        listeners: Arc<Listeners>,
    ) -> Arc<Self> {
        Arc::new(Self {
            listeners,
            may_ask: may_need_input(method),
            log_level: facts.log_level,
            progress_token: facts.progress_token.clone(),
            cancelled: CancellationToken::new(),
            state: Mutex::new(State {
                route,
                held_back: Vec::new(),
                progress_token: facts.progress_token.clone(),
                capabilities: facts.client.capabilities.clone(),
                given,
                open: BTreeMap::new(),
                last: 0,
            }),
            asked: Notify::new(),
        })
    }

    /// The client is back. Questions that it did not answer stay open, and it is asked again.
    pub(super) fn resume(&self, facts: Facts, mut input: Input, route: Route) {
        let mut state = lock(&self.state);
        state.progress_token = facts.progress_token;
        for notification in std::mem::take(&mut state.held_back) {
            let message = self.encode(&notification, state.progress_token.as_deref());
            if let Some(message) = message {
                // A client that is gone again already has lost this round as well.
                let _ = route.offer(message);
            }
        }
        state.route = Some(route);
        state.capabilities = facts.client.capabilities;
        let answered: Vec<u64> = state
            .open
            .iter()
            .filter(|(_, question)| input.responses.contains_key(&question.key))
            .map(|(number, _)| *number)
            .collect();
        for number in answered {
            let question = state.open.remove(&number);
            if let Some(question) = question
                && let Some(response) = input.responses.remove(&question.key)
            {
                // The caller may have stopped waiting at this moment.
                let _ = question.answer.send(Ok(response));
            }
        }
    }

    /// Ends the round; what is said until the next is kept for it.
    pub(super) fn pause(&self) {
        lock(&self.state).route = None;
    }

    /// Waits until the service waits for the client.
    pub(super) async fn asked(&self) {
        loop {
            let asked = self.asked.notified();
            if !lock(&self.state).open.is_empty() {
                return;
            }
            asked.await;
        }
    }

    /// What the client has to answer before the call can go on.
    pub(super) fn questions(&self) -> BTreeMap<String, InputRequest> {
        lock(&self.state)
            .open
            .values()
            .map(|question| (question.key.clone(), question.request.clone()))
            .collect()
    }

    /// Answers every open question in the client's place.
    pub(super) fn refuse_questions(&self, error: &ErrorObject) {
        for (_, question) in std::mem::take(&mut lock(&self.state).open) {
            let _ = question.answer.send(Err(error.clone()));
        }
    }

    pub(in crate::server) async fn ask(
        &self,
        name: Option<&str>,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, OutboundError> {
        self.check()?;
        let needed = Capability::needed_for(method, params.as_deref()).filter(|_| self.may_ask);
        let Some(needed) = needed else {
            let message = format!("{method} cannot be asked of a client at this point");
            let error = ErrorObject::new(codes::METHOD_NOT_FOUND, message);
            return Err(OutboundError::Refused(error));
        };
        let (question, answer) = {
            let mut state = lock(&self.state);
            if !needed.is_declared_in(&state.capabilities) {
                return Err(OutboundError::Refused(needed.missing()));
            }
            if let Some(given) = name.and_then(|name| state.given.remove(name)) {
                return Ok(given);
            }
            let request = InputRequest {
                method: method.to_owned(),
                params: params.unwrap_or_else(empty_object),
            };
            state.open_question(name, request)
        };
        let _withdrawal = Withdrawal {
            conversation: self,
            question,
        };
        self.asked.notify_one();
        tokio::select! {
            biased;
            outcome = answer => match outcome {
                Ok(outcome) => outcome.map_err(OutboundError::Refused),
                Err(_) => Err(Gone.into()),
            },
            () = self.cancelled.cancelled() => Err(Gone.into()),
        }
    }

    pub(in crate::server) async fn notify(&self, notification: Notification) -> Result<(), Gone> {
        self.check()?;
        match self.message_of(&notification) {
            Some((route, message)) => route.send(message).await,
            None => Ok(()),
        }
    }

    pub(in crate::server) fn offer(&self, notification: &Notification) -> Result<(), OfferError> {
        self.check()?;
        match self.message_of(notification) {
            Some((route, message)) => route.offer(message),
            None => Ok(()),
        }
    }

    /// The notification as this round's response has to carry it; `None` if it does not belong
    /// there.
    fn message_of(&self, notification: &Notification) -> Option<(Route, Vec<u8>)> {
        match notification.method.as_str() {
            "notifications/message" if !self.wants_to_see(notification) => return None,
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated" => {
                // These are for streams of subscriptions only.
                self.listeners.announce(notification);
                return None;
            }
            _ => {}
        }
        let mut state = lock(&self.state);
        let Some(route) = state.route.clone() else {
            if state.held_back.len() < MAX_HELD_BACK {
                state.held_back.push(notification.clone());
            } else {
                tracing::debug!(
                    method = notification.method,
                    "too much is said between two rounds"
                );
            }
            return None;
        };
        let token = state.progress_token.clone();
        drop(state);
        let message = self.encode(notification, token.as_deref())?;
        Some((route, message))
    }

    /// The message for a round whose request has this token.
    fn encode(&self, notification: &Notification, token: Option<&RawValue>) -> Option<Vec<u8>> {
        if notification.method != "notifications/progress" {
            return Some(notification.encode());
        }
        self.progress_for(token?, notification)
    }

    fn wants_to_see(&self, message: &Notification) -> bool {
        let Some(wanted) = self.log_level else {
            return false;
        };
        let level = message
            .params
            .as_deref()
            .and_then(|params| serde_json::from_str::<LogMessage<'_>>(params.get()).ok())
            .and_then(|message| message.level.parse::<LogLevel>().ok());
        // An unknown level is no reason to lose the message.
        level.is_none_or(|level| level >= wanted)
    }

    /// Progress under the token of this round's request.
    fn progress_for(&self, token: &RawValue, progress: &Notification) -> Option<Vec<u8>> {
        let known = self.progress_token.as_deref().map(RawValue::get);
        if known == Some(token.get()) {
            return Some(progress.encode());
        }
        let params = progress.params.as_deref()?;
        let mut members = Members::parse(params).ok()?;
        members.set("progressToken", token.to_owned());
        let params = members.to_raw().ok()?;
        Some(Notification::new(progress.method.clone(), Some(params)).encode())
    }

    fn check(&self) -> Result<(), Gone> {
        if self.cancelled.is_cancelled() {
            return Err(Gone);
        }
        Ok(())
    }
}

// === impl State ===

impl State {
    fn open_question(
        &mut self,
        name: Option<&str>,
        request: InputRequest,
    ) -> (u64, oneshot::Receiver<Outcome>) {
        self.last += 1;
        let number = self.last;
        let taken = |key: &str| self.open.values().any(|question| question.key == key);
        let key = name.filter(|name| !taken(name)).map(ToOwned::to_owned);
        let (answer, receiver) = oneshot::channel();
        let question = Question {
            key: key.unwrap_or_else(|| format!("input-{number}")),
            request,
            answer,
        };
        self.open.insert(number, question);
        (number, receiver)
    }
}

// === impl Withdrawal ===

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        lock(&self.conversation.state).open.remove(&self.question);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::modern::listeners::Listeners;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn facts(log_level: Option<LogLevel>, token: Option<&str>) -> Facts {
        let mut facts = Facts::unknown();
        facts.client.capabilities = raw(r#"{"roots":{}}"#);
        facts.log_level = log_level;
        facts.progress_token = token.map(raw);
        facts
    }

    fn conversation(facts: &Facts, given: &[(&str, &str)]) -> (Arc<Conversation>, Pipe) {
        let (pipe, queue) = tokio::sync::mpsc::channel(8);
        let given = given
            .iter()
            .map(|(key, text)| ((*key).to_owned(), raw(text)))
            .collect();
        let route = Some(Route::Pipe(pipe));
        let listeners = Arc::new(Listeners::new(8));
        (
            Conversation::new("tools/call", facts, given, route, listeners),
            queue,
        )
    }

    type Pipe = tokio::sync::mpsc::Receiver<Vec<u8>>;

    fn input(responses: &[(&str, &str)]) -> Input {
        Input {
            responses: responses
                .iter()
                .map(|(key, text)| ((*key).to_owned(), raw(text)))
                .collect(),
            state: None,
        }
    }

    fn log(level: &str) -> Notification {
        let params = format!(r#"{{"level":"{level}","data":1}}"#);
        Notification::new("notifications/message", Some(raw(&params)))
    }

    #[tokio::test]
    async fn log_messages_pass_from_the_level_on_that_the_request_names() {
        let (quiet, mut nothing) = conversation(&facts(None, None), &[]);
        quiet.notify(log("emergency")).await.unwrap();
        assert!(nothing.try_recv().is_err());
        let (loud, mut messages) = conversation(&facts(Some(LogLevel::Warning), None), &[]);
        for level in ["info", "warning", "error", "odd"] {
            loud.notify(log(level)).await.unwrap();
        }
        for level in ["warning", "error", "odd"] {
            assert_eq!(messages.try_recv().unwrap(), log(level).encode());
        }
        assert!(messages.try_recv().is_err());
    }

    #[tokio::test]
    async fn progress_goes_by_the_token_of_the_round() {
        let progress = || {
            let params = r#"{"progressToken":"a","progress":0.5}"#;
            Notification::new("notifications/progress", Some(raw(params)))
        };
        let (conversation, mut first) = conversation(&facts(None, Some("\"a\"")), &[]);
        conversation.notify(progress()).await.unwrap();
        assert_eq!(first.try_recv().unwrap(), progress().encode());
        conversation.pause();
        conversation.notify(progress()).await.unwrap();
        let (pipe, mut second) = tokio::sync::mpsc::channel(8);
        conversation.resume(facts(None, Some("7")), input(&[]), Route::Pipe(pipe));
        conversation.notify(progress()).await.unwrap();
        // What was said between the rounds comes first, under the new token like the rest.
        for _ in 0..2 {
            let message = String::from_utf8(second.try_recv().unwrap()).unwrap();
            assert!(
                message.contains(r#"{"progressToken":7,"progress":0.5}"#),
                "{message}"
            );
        }
        assert!(second.try_recv().is_err() && first.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_not_put() {
        let (conversation, _pipe) = conversation(&facts(None, None), &[]);
        let mut waiting = Box::pin(conversation.ask(None, "roots/list", None));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert_eq!(conversation.questions().len(), 1);
        drop(waiting);
        assert!(conversation.questions().is_empty());
    }

    #[tokio::test]
    async fn names_are_keys_and_answers_may_come_first() {
        let (conversation, pipe) = conversation(&facts(None, None), &[("known", "{}")]);
        let known = conversation.ask(Some("known"), "roots/list", None).await;
        assert_eq!(known.unwrap().get(), "{}");
        let mut one = Box::pin(conversation.ask(Some("roots"), "roots/list", None));
        let mut two = Box::pin(conversation.ask(Some("roots"), "roots/list", None));
        assert!(futures_util::poll!(&mut one).is_pending());
        assert!(futures_util::poll!(&mut two).is_pending());
        let keys: Vec<_> = conversation.questions().into_keys().collect();
        assert_eq!(keys, ["input-2", "roots"]);
        let answers = input(&[("roots", r#"{"a":1}"#), ("other", "{}")]);
        let route = Route::Pipe(tokio::sync::mpsc::channel(1).0);
        conversation.resume(facts(None, None), answers, route);
        assert_eq!(one.await.unwrap().get(), r#"{"a":1}"#);
        assert!(futures_util::poll!(&mut two).is_pending());
        conversation.cancelled.cancel();
        assert!(matches!(two.await, Err(OutboundError::Gone(_))));
        drop(pipe);
    }

    #[tokio::test]
    async fn what_the_client_cannot_answer_is_refused_at_once() {
        let (conversation, _pipe) = conversation(&facts(None, None), &[]);
        let code = |outcome| match outcome {
            Err(OutboundError::Refused(error)) => error.code,
            other => panic!("{other:?}"),
        };
        let sampling = conversation.ask(None, "sampling/createMessage", None).await;
        assert_eq!(code(sampling), codes::MISSING_CLIENT_CAPABILITY);
        let ping = conversation.ask(None, "ping", None).await;
        assert_eq!(code(ping), codes::METHOD_NOT_FOUND);
    }
}
