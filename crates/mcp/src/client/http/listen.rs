//! The stream on which a server sends what belongs to no call. Servers need not offer one.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::Http;
use super::response::{Content, Response};
use super::session::{Session, is_lost};
use super::stream::{EventStream, Position};
use crate::Message;
use crate::client::RequestError;
use crate::client::events::Origin;
use crate::client::frame::each_message;

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// What came of one attempt to listen.
enum Heard {
    /// The stream was open and said something before it ended.
    Something,
    /// It failed, or ended without a word.
    Nothing,
    /// The server does not offer a stream, or not to us.
    NotOffered,
    SessionLost,
}

/// Listens until the client goes away, through broken streams and replaced sessions.
pub(super) async fn listen(http: Arc<Http>) {
    let gone = http.wire.incoming.gone().clone();
    tokio::select! {
        () = gone.cancelled() => {}
        _ = http.closed.wait() => {}
        () = follow(&http) => {}
    }
}

async fn follow(http: &Arc<Http>) {
    let mut sessions = http.session.subscribe();
    loop {
        let session = Arc::clone(&sessions.borrow_and_update());
        let finished = tokio::select! {
            // A stream of the old session may hang on for ever.
            changed = sessions.changed() => changed.is_err(),
            finished = follow_session(http, &session) => finished,
        };
        if finished {
            return;
        }
    }
}

/// Listens in one session. Whether there is nothing more to hear in any.
async fn follow_session(http: &Arc<Http>, session: &Arc<Session>) -> bool {
    let mut position = Position::default();
    let mut pause = SHORTEST_PAUSE;
    loop {
        match attempt(http, session, &mut position).await {
            Heard::Something => pause = SHORTEST_PAUSE,
            Heard::Nothing => pause = (pause * 2).min(LONGEST_PAUSE),
            Heard::NotOffered => return true,
            Heard::SessionLost => return http.recover(session).await.is_err(),
        }
        tokio::time::sleep(pause.max(position.retry())).await;
    }
}

async fn attempt(http: &Arc<Http>, session: &Arc<Session>, position: &mut Position) -> Heard {
    let opening = http.wire.get(&session.headers, position.last_event_id());
    let opened = opening.await;
    http.stream_answered.notify_one();
    let response = match opened {
        Ok(response) => response,
        Err(error) => {
            tracing::debug!(?error, "the stream of server messages could not be opened");
            return Heard::Nothing;
        }
    };
    let status = response.status();
    if status.is_success() {
        if response.content() != Content::EventStream {
            return Heard::NotOffered;
        }
        return read(http, session, response, position).await;
    }
    let failure = http.wire.failure(response).await;
    if is_lost(&session.headers, &failure) {
        Heard::SessionLost
    } else if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        Heard::Nothing
    } else {
        tracing::debug!(
            status = status.as_u16(),
            "the server offers no stream of messages"
        );
        Heard::NotOffered
    }
}

async fn read(
    http: &Arc<Http>,
    session: &Arc<Session>,
    response: Response,
    position: &mut Position,
) -> Heard {
    let mut stream = EventStream::new(&http.wire, response);
    let mut heard = Heard::Nothing;
    loop {
        match stream.next().await {
            Ok(Some(event)) => {
                heard = Heard::Something;
                position.advance(&event);
                if !event.data.is_empty() {
                    pass_on(http, session, &event.data);
                }
            }
            Ok(None) => return heard,
            Err(RequestError::TooLarge { bytes }) => {
                tracing::warn!(
                    bytes,
                    "the stream of server messages ended with an event over the limit"
                );
                return Heard::Nothing;
            }
            Err(error) => {
                tracing::debug!(?error, "the stream of server messages broke");
                return heard;
            }
        }
    }
}

fn pass_on(http: &Arc<Http>, session: &Arc<Session>, data: &[u8]) {
    let origin = Origin::Connection;
    each_message(data, |message| match message {
        Ok(Message::Notification(notification)) => {
            http.wire.incoming.notification(notification, origin);
        }
        Ok(Message::Request(request)) => http.wire.serve(request, &session.headers, origin),
        Ok(Message::Response(_)) => {
            tracing::debug!("an answer came on the stream of server messages");
        }
        Err(broken) => {
            tracing::debug!(error = ?broken.error, "something that is no message was skipped");
        }
    });
}
