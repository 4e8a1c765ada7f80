//! All sessions of one endpoint, bounded in number and in idle time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::session::Session;
use crate::lock::lock;
use crate::server::SessionId;

#[derive(Debug)]
pub(super) struct Sessions {
    by_id: Mutex<HashMap<SessionId, Arc<Session>>>,
    limit: usize,
}

/// Every session there is room for is answering a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AllBusy;

impl Sessions {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            by_id: Mutex::default(),
            limit,
        }
    }

    /// Adds a session and returns the one that had to make way, which is the caller's to end.
    pub(super) fn insert(&self, session: Arc<Session>) -> Result<Option<Arc<Session>>, AllBusy> {
        let mut by_id = lock(&self.by_id);
        let mut evicted = None;
        if by_id.len() >= self.limit {
            let least = by_id
                .values()
                .map(|session| (session.eviction_rank(), session))
                .min_by_key(|(eviction_rank, _)| *eviction_rank)
                .filter(|(eviction_rank, _)| !eviction_rank.busy)
                .map(|(_, session)| session.id().clone());
            evicted = Some(least.and_then(|id| by_id.remove(&id)).ok_or(AllBusy)?);
        }
        by_id.insert(session.id().clone(), session);
        Ok(evicted)
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.by_id).get(id).cloned()
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.by_id).remove(id)
    }

    /// Takes out the sessions that have been idle for too long.
    pub(super) fn take_idle(&self, limit: Duration) -> Vec<Arc<Session>> {
        lock(&self.by_id)
            .extract_if(|_, session| session.is_idle(limit))
            .map(|(_, session)| session)
            .collect()
    }

    pub(super) fn take_all(&self) -> Vec<Arc<Session>> {
        lock(&self.by_id)
            .drain()
            .map(|(_, session)| session)
            .collect()
    }

    /// The sessions as they are now. A copy, so that nothing is done under the lock.
    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        lock(&self.by_id).values().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.by_id).len()
    }
}
