//! A request that was sent and not yet answered: how long it may take, and that the server is told
//! when its caller stops waiting.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::RequestError;
use super::pending::Answer;
use crate::coarse_timer::CoarseTimer;
use crate::id::encode_string;
use crate::message::encode_call;

/// Until when a caller waits, through all the messages that its call may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline<'a>(Option<(Duration, Instant, &'a CoarseTimer)>);

/// Gives up a request.
pub(super) trait Cancel {
    fn cancel(&self, id: u64, reason: &str);
}

/// Unless it is finished, dropping it cancels the request.
struct InFlight<'a, C: Cancel> {
    connection: &'a C,
    id: u64,
    finished: bool,
    reason: String,
}

impl<'a> Deadline<'a> {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn after(timeout: Option<Duration>, timer: &'a CoarseTimer) -> Self {
        let at = |after| Some((after, Instant::now().checked_add(after)?, timer));
        // A timeout beyond the end of time is none.
        Self(timeout.and_then(at))
    }

    pub(super) async fn bound<T>(
        self,
        work: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        let Some((after, at, timer)) = self.0 else {
            return work.await;
        };
        let answer = timer.timeout_at(at, work).await;
        answer.unwrap_or(Err(RequestError::Timeout { after }))
    }
}

/// Waits for the answer to the request `id`. Dropping the future cancels the request; so does the
/// deadline.
pub(super) async fn answered<C: Cancel>(
    connection: &C,
    id: u64,
    deadline: Deadline<'_>,
    answering: impl Future<Output = Answer>,
) -> Answer {
    let mut in_flight = InFlight {
        connection,
        id,
        finished: false,
        reason: String::new(),
    };
    let answer = deadline.bound(answering).await;
    match &answer {
        Err(RequestError::Timeout { after }) => {
            in_flight.reason = format!("timed out after {} ms", after.as_millis());
        }
        _ => in_flight.finished = true,
    }
    answer
}

impl<C: Cancel> Drop for InFlight<'_, C> {
    fn drop(&mut self) {
        if !self.finished {
            self.connection.cancel(self.id, &self.reason);
        }
    }
}

/// The notification that gives up the request `id`.
pub(super) fn cancellation(id: u64, reason: &str) -> Vec<u8> {
    let mut params = format!("{{\"requestId\":{id}").into_bytes();
    if !reason.is_empty() {
        params.extend_from_slice(b",\"reason\":");
        encode_string(reason, &mut params);
    }
    params.push(b'}');
    encode_call(None, "notifications/cancelled", Some(&params))
}
