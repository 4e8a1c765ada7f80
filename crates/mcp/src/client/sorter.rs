//! Takes the messages of a connection that all calls share: answers go to their calls, everything
//! else to the owner.

use std::future::Future;
use std::sync::Arc;

use super::events::Origin;
use super::frame::each_message;
use super::incoming::Incoming;
use super::pending::{Pending, answer, own_id};
use crate::Message;

#[derive(Debug)]
pub(super) struct Sorter<R> {
    pub(super) pending: Arc<Pending>,
    pub(super) incoming: Arc<Incoming>,
    pub(super) reply: R,
}

/// Takes what is answered to a request of the server back to it.
pub(super) trait Reply: Clone + Send + 'static {
    fn reply(self, message: Vec<u8>) -> impl Future<Output = ()> + Send;
}

impl<R: Reply> Sorter<R> {
    /// Takes a frame. Whether there was anything of MCP in it.
    pub(super) fn frame(&self, frame: &[u8]) -> bool {
        let mut understood = false;
        each_message(frame, |message| match message {
            Ok(message) => {
                understood = true;
                self.message(message);
            }
            Err(broken) => {
                tracing::debug!(error = ?broken.error, "something that is no message was skipped");
                if let Some(id) = broken.answered {
                    understood = true;
                    self.pending.settle(id, Err(broken.error.into()));
                }
            }
        });
        understood
    }

    fn message(&self, message: Message) {
        match message {
            Message::Response(response) => {
                let id = response.id.as_ref().and_then(own_id);
                if !id.is_some_and(|id| self.pending.settle(id, answer(response))) {
                    // Usual after a cancellation, which the answer may cross on the way.
                    tracing::debug!(?id, "an answer came that no call waits for");
                }
            }
            Message::Notification(notification) => {
                self.incoming.notification(notification, Origin::Connection);
            }
            Message::Request(request) => {
                let reply = self.reply.clone();
                let origin = Origin::Connection;
                self.incoming
                    .request(request, origin, move |message| reply.reply(message));
            }
        }
    }
}
