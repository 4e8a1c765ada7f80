//! One redactor for the whole process. It learns secrets and does not forget them soon.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::{MASK, Redactor, RedactorError, searched};

/// Secrets of earlier configs are kept up to this many: calls that were given them may be under
/// way, and servers may still write them.
const MOST_SECRETS: usize = 512;
const MOST_BYTES: usize = 32 * 1024;

/// A redactor that all parts of the process share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SharedRedactor {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The least recently learnt first.
    secrets: Mutex<VecDeque<String>>,
    current: ArcSwap<Result<Redactor, RedactorError>>,
}

impl Default for SharedRedactor {
    fn default() -> Self {
        let current = ArcSwap::from_pointee(Redactor::new([""; 0]));
        Self {
            inner: Arc::new(Inner {
                secrets: Mutex::default(),
                current,
            }),
        }
    }
}

impl SharedRedactor {
    /// Searches for these secrets, too, from now on. All of them are kept, and as many of those
    /// that were learnt before as there is room for.
    pub fn learn<S: AsRef<str>>(&self, secrets: impl IntoIterator<Item = S>) {
        let mut known = self
            .inner
            .secrets
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut learnt: Vec<String> = secrets
            .into_iter()
            .filter_map(|secret| searched(secret.as_ref()).map(ToOwned::to_owned))
            .collect();
        learnt.sort_unstable();
        learnt.dedup();
        let before = known.len();
        known.retain(|secret| learnt.binary_search(secret).is_err());
        let nothing_new = before - known.len() == learnt.len();
        let wanted = learnt.len();
        known.extend(learnt);
        if nothing_new {
            return;
        }
        let mut bytes: usize = known.iter().map(String::len).sum();
        while known.len() > wanted && (known.len() > MOST_SECRETS || bytes > MOST_BYTES) {
            bytes -= known.pop_front().map_or(0, |secret| secret.len());
        }
        self.inner.current.store(Arc::new(Redactor::new(&*known)));
    }

    /// The redactor over all that was learnt so far.
    pub fn current(&self) -> Result<Redactor, RedactorError> {
        (**self.inner.current.load()).clone()
    }

    /// Runs `redact`; where the secrets cannot be searched for, nothing of the text is shown.
    pub fn with(&self, redact: impl FnOnce(&Redactor) -> Option<String>) -> Option<String> {
        match &**self.inner.current.load() {
            Ok(redactor) => redact(redactor),
            Err(_) => Some(MASK.to_owned()),
        }
    }

    /// Redacts plain text.
    pub fn text(&self, text: &str) -> String {
        let redacted = self.with(|redactor| Some(redactor.text(text).into_owned()));
        redacted.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_once_stays_struck_out() {
        let redactor = SharedRedactor::default();
        let other = redactor.clone();
        redactor.learn(["first-secret"]);
        redactor.learn(["second-secret", "short"]);
        assert_eq!(
            other.text("first-secret second-secret short"),
            "[REDACTED] [REDACTED] short"
        );
    }

    #[test]
    fn the_least_recently_learnt_is_forgotten_first() {
        let redactor = SharedRedactor::default();
        let numbered = |number: usize| format!("secret-number-{number}-");
        redactor.learn((0..MOST_SECRETS).map(numbered));
        redactor.learn([numbered(0)]);
        redactor.learn([numbered(MOST_SECRETS)]);
        assert_eq!(redactor.text(&numbered(0)), MASK);
        assert_eq!(redactor.text(&numbered(MOST_SECRETS)), MASK);
        let kept = (0..=MOST_SECRETS).filter(|number| redactor.text(&numbered(*number)) == MASK);
        assert_eq!(kept.count(), MOST_SECRETS);
    }

    #[test]
    fn the_secrets_of_one_config_are_all_kept() {
        let redactor = SharedRedactor::default();
        let long = |number: usize| format!("{number:06}").repeat(MOST_BYTES / 24);
        redactor.learn((0..5).map(long));
        for number in 0..5 {
            assert_eq!(redactor.text(&long(number)), MASK);
        }
    }
}
