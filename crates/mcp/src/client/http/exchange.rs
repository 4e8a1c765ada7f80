//! From the response to a POST to the answer it carries, however it is carried.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use super::response::{Content, Response};
use super::session::is_lost;
use super::stream::{EventStream, Position};
use super::wire::Wire;
use crate::client::events::Origin;
use crate::client::frame::each_message;
use crate::client::pending::{Answer, answer, own_id};
use crate::client::{ProtocolError, RequestError};
use crate::{Message, ParseError};

/// One request and what belongs to it.
#[derive(Debug, Clone, Copy)]
pub(in crate::client) struct Exchange<'a> {
    pub(in crate::client) wire: &'a Arc<Wire>,
    /// The session it belongs to. Modern servers have none: a stream of theirs cannot be taken up
    /// again, and carries no requests.
    pub(in crate::client) session: Option<&'a HeaderMap>,
    pub(in crate::client) id: u64,
    pub(in crate::client) origin: Origin,
}

/// What a frame held for a call.
#[derive(Default)]
struct Sorted {
    answer: Option<Answer>,
    /// Something in it could not be read.
    broken: Option<ParseError>,
}

impl Exchange<'_> {
    pub(in crate::client) async fn answer(&self, response: Response) -> Answer {
        match response.content() {
            Content::EventStream => self.streamed(response).await,
            Content::Json => self.whole(response).await,
            Content::Other(found) => {
                Err(RequestError::Protocol(ProtocolError::ContentType { found }))
            }
        }
    }

    async fn whole(&self, response: Response) -> Answer {
        let body = self.wire.body(response).await?;
        if body.trim_ascii().is_empty() {
            return Err(RequestError::Protocol(ProtocolError::NoAnswer));
        }
        let sorted = self.sort(&body);
        match (sorted.answer, sorted.broken) {
            (Some(answer), _) => answer,
            (None, Some(error)) => Err(error.into()),
            (None, None) => Err(RequestError::Protocol(ProtocolError::NoAnswer)),
        }
    }

    /// Reads the stream to the answer. A server may end a stream before that and have the rest
    /// fetched later, so that no connection has to stay open for as long as a call takes.
    async fn streamed(&self, response: Response) -> Answer {
        let mut stream = EventStream::new(self.wire, response);
        let mut position = Position::default();
        loop {
            if let Some(answer) = self.read(&mut stream, &mut position).await {
                stream.finish();
                return answer;
            }
            // Boxed, because hardly any call needs it.
            stream = Box::pin(self.reopen(&mut position)).await?;
        }
    }

    /// The answer, or `None` if the stream ended or broke without it.
    async fn read(&self, stream: &mut EventStream, position: &mut Position) -> Option<Answer> {
        loop {
            let event = match stream.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return None,
                Err(RequestError::Transport(error)) => {
                    tracing::debug!(?error, "a stream broke before the answer came");
                    return None;
                }
                Err(error) => return Some(Err(error)),
            };
            position.advance(&event);
            // An event without data only marks a place to resume from.
            if event.data.is_empty() {
                continue;
            }
            let sorted = self.sort(&event.data);
            if let Some(error) = sorted.broken {
                tracing::debug!(?error, "something that is no message was skipped");
            }
            if sorted.answer.is_some() {
                return sorted.answer;
            }
        }
    }

    async fn reopen(&self, position: &mut Position) -> Result<EventStream, RequestError> {
        let Some(session) = self.session else {
            return Err(RequestError::StreamEnded);
        };
        while position.try_again() {
            tokio::time::sleep(position.retry()).await;
            let response = match self.wire.get(session, position.last_event_id()).await {
                Ok(response) => response,
                Err(error) => {
                    tracing::debug!(?error, "a stream could not be taken up again yet");
                    continue;
                }
            };
            let status = response.status();
            if status.is_success() {
                return Ok(EventStream::new(self.wire, response));
            }
            if status.is_server_error() {
                continue;
            }
            let failure = self.wire.failure(response).await;
            // The server cannot resume, or has lost the session and the call with it; the next
            // request will find that out for itself.
            if status == StatusCode::METHOD_NOT_ALLOWED || is_lost(session, &failure) {
                break;
            }
            return Err(RequestError::Http(Box::new(failure)));
        }
        Err(RequestError::StreamEnded)
    }

    /// Passes on what the server sends on its own, and finds the answer if it is there.
    fn sort(&self, frame: &[u8]) -> Sorted {
        let mut sorted = Sorted::default();
        each_message(frame, |message| match message {
            Ok(message) => {
                if let Some(answer) = self.sort_one(message) {
                    sorted.answer = Some(answer);
                }
            }
            Err(broken) if broken.answered == Some(self.id) => {
                sorted.answer = Some(Err(broken.error.into()));
            }
            Err(broken) => sorted.broken = Some(broken.error),
        });
        sorted
    }

    fn sort_one(&self, message: Message) -> Option<Answer> {
        match message {
            Message::Response(response) => {
                let ours = match &response.id {
                    Some(id) => own_id(id) == Some(self.id),
                    // Only this request can be meant on a stream of its own.
                    None => true,
                };
                return ours.then(|| answer(response));
            }
            Message::Notification(notification) => {
                self.wire.incoming.notification(notification, self.origin);
            }
            Message::Request(request) => {
                if let Some(session) = self.session {
                    self.wire.serve(request, session, self.origin);
                } else {
                    let method = request.method;
                    tracing::debug!(method, "a request of a modern server was ignored");
                }
            }
        }
        None
    }
}
