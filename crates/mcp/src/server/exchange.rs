//! What is under way on one connection, whatever carries it: the calls that run for the client and
//! the questions that were put to it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::outbound::Gone;
use crate::lock::lock;
use crate::{ErrorObject, RequestId, Response, codes};

pub(super) type Outcome = Result<Box<RawValue>, ErrorObject>;

#[derive(Debug)]
pub(super) struct Exchange {
    calls: Mutex<HashMap<RequestId, CancellationToken>>,
    max_calls: usize,
    questions: Mutex<Questions>,
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct Questions {
    open: HashMap<u64, oneshot::Sender<Outcome>>,
    last: u64,
    /// No answer can come any more, so nothing more is asked.
    closed: bool,
}

/// A request of the client's that is being answered. Dropping it frees its id.
#[derive(Debug)]
pub(super) struct Call {
    exchange: Arc<Exchange>,
    id: RequestId,
    pub(super) cancelled: CancellationToken,
}

/// Why a request is not even begun.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotBegun {
    #[error("request id {0} is already in use by a request that has not been answered yet")]
    Duplicate(RequestId),
    #[error("too many requests at once; at most {0} may be unanswered")]
    TooMany(usize),
}

/// Ids of questions begin at random: a client that outlives a session, such as one behind a relay,
/// must not answer a question of the next session with what it meant for the last one.
fn first_question() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness the count begins at zero, as if this were the first session.
    let _ = getrandom::fill(&mut bytes[..6]);
    // Six bytes, so that every peer can hold the id as a number exactly.
    u64::from_le_bytes(bytes)
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn new(max_calls: usize) -> Arc<Self> {
        Arc::new(Self {
            calls: Mutex::default(),
            max_calls,
            questions: Mutex::new(Questions {
                last: first_question(),
                ..Questions::default()
            }),
            ended: CancellationToken::new(),
        })
    }

    pub(super) fn begin(self: &Arc<Self>, id: &RequestId) -> Result<Call, NotBegun> {
        let mut calls = lock(&self.calls);
        let running = calls.len();
        let Entry::Vacant(entry) = calls.entry(id.clone()) else {
            return Err(NotBegun::Duplicate(id.clone()));
        };
        if running >= self.max_calls {
            return Err(NotBegun::TooMany(self.max_calls));
        }
        let cancelled = entry.insert(self.ended.child_token()).clone();
        Ok(Call {
            exchange: Arc::clone(self),
            id: id.clone(),
            cancelled,
        })
    }

    /// Does nothing for an id that is not running: the cancellation crossed the answer.
    pub(super) fn cancel(&self, id: &RequestId) {
        let token = lock(&self.calls).get(id).cloned();
        if let Some(token) = token {
            token.cancel();
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        !lock(&self.calls).is_empty()
    }

    /// Opens a question to the client and gives it an id of our own.
    pub(super) fn ask(&self) -> Result<(u64, oneshot::Receiver<Outcome>), Gone> {
        let mut questions = lock(&self.questions);
        if questions.closed {
            return Err(Gone);
        }
        let (sender, receiver) = oneshot::channel();
        questions.last += 1;
        let id = questions.last;
        questions.open.insert(id, sender);
        Ok((id, receiver))
    }

    /// Whether the question was still open.
    pub(super) fn withdraw(&self, id: u64) -> bool {
        lock(&self.questions).open.remove(&id).is_some()
    }

    /// Hands the client's answer to the call that asked. An answer to no open question is dropped.
    pub(super) fn answered(&self, response: Response) {
        let asked = response
            .id
            .and_then(|id| id.as_u64())
            .and_then(|id| lock(&self.questions).open.remove(&id));
        if let Some(asked) = asked {
            let _ = asked.send(response.outcome);
        }
    }

    /// Leaves every question unanswered, because the client will not speak again.
    pub(super) fn close_questions(&self) {
        let mut questions = lock(&self.questions);
        questions.closed = true;
        questions.open.clear();
    }

    /// Cancels every call and leaves every question unanswered.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.close_questions();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }
}

// === impl Call, NotBegun ===

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.exchange.calls).remove(&self.id);
    }
}

impl NotBegun {
    pub(super) fn to_error(&self) -> ErrorObject {
        ErrorObject::new(codes::INVALID_REQUEST, format!("Invalid request: {self}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_free_again_once_its_call_is_over() {
        let exchange = Exchange::new(8);
        let id = RequestId::from("a");
        let call = exchange.begin(&id).unwrap();
        assert!(matches!(exchange.begin(&id), Err(NotBegun::Duplicate(_))));
        drop(call);
        assert!(exchange.begin(&id).is_ok());
    }

    #[test]
    fn calls_are_bounded() {
        let exchange = Exchange::new(1);
        let _call = exchange.begin(&RequestId::from(1)).unwrap();
        let refused = exchange.begin(&RequestId::from(2));
        assert!(matches!(refused, Err(NotBegun::TooMany(1))));
    }

    #[test]
    fn cancelling_reaches_only_the_call_that_is_named() {
        let exchange = Exchange::new(8);
        let one = exchange.begin(&RequestId::from(1)).unwrap();
        let two = exchange.begin(&RequestId::from(2)).unwrap();
        exchange.cancel(&RequestId::from(1));
        exchange.cancel(&RequestId::from(3));
        assert!(one.cancelled.is_cancelled());
        assert!(!two.cancelled.is_cancelled());
    }

    #[tokio::test]
    async fn the_end_cancels_calls_and_leaves_questions_unanswered() {
        let exchange = Exchange::new(8);
        let call = exchange.begin(&RequestId::from(1)).unwrap();
        let (_, answer) = exchange.ask().unwrap();
        exchange.end();
        assert!(call.cancelled.is_cancelled());
        assert!(answer.await.is_err());
        assert!(exchange.ask().is_err());
    }

    #[tokio::test]
    async fn an_answer_finds_its_question_once() {
        let exchange = Exchange::new(8);
        let (id, answer) = exchange.ask().unwrap();
        let response = Response {
            id: Some(id.into()),
            outcome: Ok(RawValue::NULL.to_owned()),
        };
        exchange.answered(response.clone());
        exchange.answered(response);
        assert_eq!(answer.await.unwrap().unwrap().get(), "null");
        assert!(!exchange.withdraw(id));
    }
}
