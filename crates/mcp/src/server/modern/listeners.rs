//! All streams of subscriptions that are open, bounded in number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::listener::Listener;
use crate::Notification;
use crate::lock::lock;
use crate::server::SessionId;
use crate::server::service::Connection;

#[derive(Debug)]
pub(super) struct Listeners {
    by_session: Mutex<HashMap<SessionId, Entry>>,
    limit: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    connection: Arc<Connection>,
    listener: Arc<Listener>,
}

/// There are as many streams as there may be.
#[derive(Debug)]
pub(super) struct TooMany;

impl Listeners {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            by_session: Mutex::default(),
            limit,
        }
    }

    pub(super) fn insert(
        &self,
        connection: Arc<Connection>,
        listener: Arc<Listener>,
    ) -> Result<(), TooMany> {
        let mut by_session = lock(&self.by_session);
        if by_session.len() >= self.limit {
            return Err(TooMany);
        }
        let session = connection.session.clone();
        let entry = Entry {
            connection,
            listener,
        };
        by_session.insert(session, entry);
        Ok(())
    }

    pub(super) fn remove(&self, session: &SessionId) {
        lock(&self.by_session).remove(session);
    }

    pub(super) fn announce(&self, notification: &Notification) {
        for entry in self.all() {
            // One that cannot take it has lost its stream, and its client will see that.
            let _ = entry.listener.offer(notification);
        }
    }

    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        self.all().into_iter().map(|it| it.connection).collect()
    }

    pub(super) fn end_all(&self) {
        for entry in self.all() {
            entry.listener.end();
        }
    }

    /// A copy, so that nothing is done under the lock.
    fn all(&self) -> Vec<Entry> {
        lock(&self.by_session).values().cloned().collect()
    }
}
