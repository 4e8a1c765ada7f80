//! Long results, kept for a while so that the agent that caused them can read on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

const KEPT_FOR: Duration = Duration::from_mins(30);
const MAX_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct ResponseCache {
    kept_for: Duration,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first; what is over the limits falls off the front.
    entries: VecDeque<Entry>,
    /// Whether a task removes what expires.
    is_watched: bool,
}

#[derive(Debug)]
struct Entry {
    key: String,
    /// The session that made the call; no other may read what it got.
    owner: String,
    text: Arc<str>,
    expires: Instant,
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self {
            kept_for: KEPT_FOR,
            kept: Arc::default(),
        }
    }
}

impl ResponseCache {
    /// Keeps a text and returns the key to it. None if it is too large to keep, or if there is no
    /// randomness to make a key from.
    pub(super) fn keep(&self, owner: &str, text: String) -> Option<String> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let key = format!("{:032x}", u128::from_be_bytes(bytes));
        let mut kept = lock(&self.kept);
        kept.entries.push_back(Entry {
            key: key.clone(),
            owner: owner.to_owned(),
            text: text.into(),
            expires: Instant::now() + self.kept_for,
        });
        let mut bytes: usize = kept.entries.iter().map(|entry| entry.text.len()).sum();
        while bytes > MAX_BYTES {
            let oldest = kept.entries.pop_front();
            bytes -= oldest.map_or(0, |oldest| oldest.text.len());
        }
        if !std::mem::replace(&mut kept.is_watched, true) {
            tokio::spawn(remove_expired(Arc::downgrade(&self.kept)));
        }
        Some(key)
    }

    pub(super) fn get(&self, owner: &str, key: &str) -> Option<Arc<str>> {
        let kept = lock(&self.kept);
        let mut entries = kept.entries.iter();
        let entry = entries.find(|entry| entry.key == key && entry.owner == owner)?;
        Some(Arc::clone(&entry.text))
    }

    /// Forgets what a session kept.
    pub(super) fn forget(&self, owner: &str) {
        lock(&self.kept)
            .entries
            .retain(|entry| entry.owner != owner);
    }
}

/// Removes entries as they expire, until none is left: an agent that has gone quiet must not hold
/// memory until another one gets a long result.
async fn remove_expired(kept: Weak<Mutex<Kept>>) {
    while let Some(next) = kept.upgrade().and_then(|kept| lock(&kept).next_to_expire()) {
        sleep_until(next).await;
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    /// Removes what has expired; when the oldest of the rest does.
    fn next_to_expire(&mut self) -> Option<Instant> {
        let now = Instant::now();
        while self
            .entries
            .front()
            .is_some_and(|oldest| oldest.expires <= now)
        {
            self.entries.pop_front();
        }
        self.is_watched = !self.entries.is_empty();
        Some(self.entries.front()?.expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_owner_reads() {
        let cache = ResponseCache::default();
        let key = cache.keep("one", "text".to_owned()).unwrap();
        assert_eq!(cache.get("one", &key).as_deref(), Some("text"));
        assert_eq!(cache.get("two", &key), None);
        cache.forget("one");
        assert_eq!(cache.get("one", &key), None);
    }

    #[tokio::test]
    async fn expired_texts_are_removed_without_another_call() {
        let cache = ResponseCache {
            kept_for: Duration::from_millis(20),
            ..ResponseCache::default()
        };
        let removed = async |text: Weak<str>| {
            while text.strong_count() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // The second is kept after the task of the first has ended.
        for text in ["first", "second"] {
            let key = cache.keep("one", text.to_owned()).unwrap();
            let text = Arc::downgrade(&cache.get("one", &key).unwrap());
            tokio::time::timeout(Duration::from_secs(20), removed(text))
                .await
                .unwrap();
        }
    }

    #[tokio::test]
    async fn the_oldest_make_room() {
        let cache = ResponseCache::default();
        let half = "x".repeat(MAX_BYTES / 2);
        let keys: Vec<_> = (0..3)
            .map(|_| cache.keep("one", half.clone()).unwrap())
            .collect();
        assert_eq!(cache.get("one", &keys[0]), None);
        assert!(cache.get("one", &keys[2]).is_some());
        assert_eq!(cache.keep("one", "x".repeat(MAX_BYTES + 1)), None);
    }
}
