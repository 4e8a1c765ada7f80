//! Long results, kept for a while so that the agent that caused them can read on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const KEPT_FOR: Duration = Duration::from_mins(30);
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Oldest first; what is over the limits falls off the front.
#[derive(Debug, Default)]
pub(super) struct ResponseCache {
    entries: Mutex<VecDeque<Entry>>,
}

#[derive(Debug)]
struct Entry {
    key: String,
    /// The session that made the call; nobody else may read what it got.
    owner: String,
    text: Arc<str>,
    expires: Instant,
}

impl ResponseCache {
    /// Keeps a text and returns the key to it. None if it is too large to keep, or if there is no
    /// randomness to make a key from.
    pub(super) fn keep(&self, owner: &str, text: String, now: Instant) -> Option<String> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let key = format!("{:032x}", u128::from_be_bytes(bytes));
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push_back(Entry {
            key: key.clone(),
            owner: owner.to_owned(),
            text: text.into(),
            expires: now + KEPT_FOR,
        });
        let mut bytes: usize = entries.iter().map(|entry| entry.text.len()).sum();
        while bytes > MAX_BYTES || entries.front().is_some_and(|oldest| oldest.expires <= now) {
            bytes -= entries.pop_front().map_or(0, |oldest| oldest.text.len());
        }
        Some(key)
    }

    pub(super) fn get(&self, owner: &str, key: &str, now: Instant) -> Option<Arc<str>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries
            .iter()
            .find(|entry| entry.key == key && entry.owner == owner && entry.expires > now)
            .map(|entry| Arc::clone(&entry.text))
    }

    /// Forgets what a session kept.
    pub(super) fn forget(&self, owner: &str) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.owner != owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_reads_and_only_for_a_while() {
        let cache = ResponseCache::default();
        let now = Instant::now();
        let key = cache.keep("one", "text".to_owned(), now).unwrap();
        assert_eq!(cache.get("one", &key, now).as_deref(), Some("text"));
        assert_eq!(cache.get("two", &key, now), None);
        assert_eq!(cache.get("one", &key, now + KEPT_FOR), None);
        cache.forget("one");
        assert_eq!(cache.get("one", &key, now), None);
    }

    #[test]
    fn the_oldest_make_room() {
        let cache = ResponseCache::default();
        let now = Instant::now();
        let half = "x".repeat(MAX_BYTES / 2);
        let keys: Vec<_> = (0..3)
            .map(|_| cache.keep("one", half.clone(), now).unwrap())
            .collect();
        assert_eq!(cache.get("one", &keys[0], now), None);
        assert!(cache.get("one", &keys[2], now).is_some());
        assert_eq!(cache.keep("one", "x".repeat(MAX_BYTES + 1), now), None);
    }
}
