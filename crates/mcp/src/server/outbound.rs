//! What a service uses to speak to its client unasked.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::exchange::{Call, Exchange};
use super::legacy_form;
use super::modern::{Conversation, Listener};
use super::route::Route;
use crate::{ErrorObject, Notification, Request};

/// A handle to one client; cheap to clone. It sends on the stream of one request, or outside any
/// request if it came from [`Connection::outbound`](super::Connection::outbound).
///
/// It works the same in both eras. A client of the modern era cannot be sent requests; what it is
/// asked becomes the answer to its call, and the call goes on when it comes back with the input.
#[derive(Debug, Clone)]
pub struct Outbound(Line);

#[derive(Debug, Clone)]
enum Line {
    Session(SessionLine),
    Conversation(Arc<Conversation>),
    Listener(Arc<Listener>),
}

/// Both peers may ask here.
#[derive(Debug, Clone)]
struct SessionLine {
    route: Route,
    exchange: Arc<Exchange>,
    /// Fires when the request this belongs to is cancelled; after that its client wants to hear
    /// nothing more of it.
    cancelled: Option<CancellationToken>,
}

/// Nothing can be sent any more: the request was answered or cancelled, or the session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client can no longer be reached here")]
pub struct Gone;

/// Why a request to the client brought no result.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    #[error(transparent)]
    Gone(#[from] Gone),
    #[error("the client refused: {0}")]
    Refused(#[source] ErrorObject),
}

/// Why [`Outbound::offer`] could not send at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    #[error(transparent)]
    Gone(#[from] Gone),
    #[error("the client is not keeping up")]
    Full,
}

/// Withdraws a question unless it was answered: its caller has stopped waiting.
struct Withdrawal<'a> {
    line: &'a SessionLine,
    question: u64,
}

// === impl Outbound ===

impl Outbound {
    pub(super) fn of_session(route: Route, exchange: Arc<Exchange>) -> Self {
        Self(Line::Session(SessionLine {
            route,
            exchange,
            cancelled: None,
        }))
    }

    pub(super) fn of_call(route: Route, exchange: Arc<Exchange>, call: &Call) -> Self {
        Self(Line::Session(SessionLine {
            route,
            exchange,
            cancelled: Some(call.cancelled.clone()),
        }))
    }

    pub(super) fn of_conversation(conversation: Arc<Conversation>) -> Self {
        Self(Line::Conversation(conversation))
    }

    pub(super) fn of_listener(listener: Arc<Listener>) -> Self {
        Self(Line::Listener(listener))
    }

    /// Sends a notification, waiting while the client is behind.
    pub async fn notify(&self, notification: Notification) -> Result<(), Gone> {
        match &self.0 {
            Line::Session(line) => {
                line.check()?;
                line.route.send(notification.encode()).await
            }
            Line::Conversation(conversation) => conversation.notify(notification).await,
            Line::Listener(listener) => listener.notify(&notification).await,
        }
    }

    /// Sends a notification without ever waiting. An HTTP client that is too far behind loses its
    /// stream and finds the message when it resumes; a pipe that is full loses the message.
    pub fn offer(&self, notification: &Notification) -> Result<(), OfferError> {
        match &self.0 {
            Line::Session(line) => {
                line.check()?;
                line.route.offer(notification.encode())
            }
            Line::Conversation(conversation) => conversation.offer(notification),
            Line::Listener(listener) => listener.offer(notification),
        }
    }

    /// Sends a request to the client and waits for what it answers. Dropping the future tells the
    /// client that the answer is no longer wanted.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, OutboundError> {
        self.ask(None, method, params).await
    }

    /// Like [`Outbound::request`], under a name that says what is asked for. A modern client sees
    /// the name as the key of the input request, and may give the answer along with its call.
    pub async fn request_as(
        &self,
        name: &str,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, OutboundError> {
        self.ask(Some(name), method, params).await
    }

    async fn ask(
        &self,
        name: Option<&str>,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, OutboundError> {
        match &self.0 {
            Line::Session(line) => line.ask(method, params).await,
            Line::Conversation(conversation) => conversation.ask(name, method, params).await,
            Line::Listener(_) => Err(Gone.into()),
        }
    }
}

// === impl SessionLine ===

impl SessionLine {
    async fn ask(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, OutboundError> {
        self.check()?;
        let (question, answer) = self.exchange.ask()?;
        let _withdrawal = Withdrawal {
            line: self,
            question,
        };
        let request = Request {
            id: question.into(),
            method: method.to_owned(),
            params: legacy_form::question(method, params),
        };
        self.route.send(request.encode()).await?;
        match answer.await {
            Ok(outcome) => outcome.map_err(OutboundError::Refused),
            Err(_) => Err(Gone.into()),
        }
    }

    fn check(&self) -> Result<(), Gone> {
        let cancelled = self.cancelled.as_ref();
        if cancelled.is_some_and(CancellationToken::is_cancelled) {
            return Err(Gone);
        }
        Ok(())
    }
}

// === impl Withdrawal ===

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if self.line.exchange.withdraw(self.question) {
            let params = RawValue::from_string(format!("{{\"requestId\":{}}}", self.question)).ok();
            let cancelled = Notification::new("notifications/cancelled", params);
            // A client that cannot be reached needs no telling.
            let _ = self.line.route.offer(cancelled.encode());
        }
    }
}
