//! Counts how often the program of an upstream is started, so that a crash loop ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The starts of one program within a window of time. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Starts {
    most: usize,
    window: Duration,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    times: VecDeque<Instant>,
    /// How the last connection failed.
    last_failure: Option<String>,
}

/// The program has been started too often.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "crash loop: the program was started {starts} times within {} s{}",
    .window.as_secs(),
    last(.last_failure.as_deref())
)]
pub(crate) struct CrashLoop {
    starts: usize,
    window: Duration,
    last_failure: Option<String>,
}

fn last(failure: Option<&str>) -> String {
    failure
        .map(|failure| format!("; last time {failure}"))
        .unwrap_or_default()
}

impl Starts {
    pub(crate) fn new(limits: &config::Limits) -> Self {
        Self {
            most: limits.starts,
            window: limits.start_window.get(),
            inner: Arc::default(),
        }
    }

    /// Counts a start, unless there have been too many.
    pub(crate) fn admit(&self) -> Result<(), CrashLoop> {
        self.admit_at(Instant::now())
    }

    fn admit_at(&self, now: Instant) -> Result<(), CrashLoop> {
        let mut inner = self.inner();
        while inner
            .times
            .front()
            .is_some_and(|time| now.saturating_duration_since(*time) >= self.window)
        {
            inner.times.pop_front();
        }
        if inner.times.len() >= self.most {
            return Err(CrashLoop {
                starts: inner.times.len(),
                window: self.window,
                last_failure: inner.last_failure.clone(),
            });
        }
        inner.times.push_back(now);
        Ok(())
    }

    /// The last start does not count.
    pub(crate) fn forgive(&self) {
        self.inner().times.pop_back();
    }

    /// Notes how a connection failed, for the message of a crash loop.
    pub(crate) fn note(&self, failure: &str) {
        self.inner().last_failure = Some(failure.to_owned());
    }

    /// Begins to count again, because the operator wants another try.
    pub(crate) fn reset(&self) {
        *self.inner() = Inner::default();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_starts_in_ten_minutes_are_the_most() {
        let starts = Starts::new(&config::Limits::default());
        let begin = Instant::now();
        let after = |minutes| begin + Duration::from_mins(minutes);
        for minute in 0..10 {
            starts.admit_at(after(minute)).unwrap();
        }
        starts.note("the process ended with exit code 3");
        let refused = starts.admit_at(after(9)).unwrap_err().to_string();
        assert!(refused.contains("crash loop"), "{refused}");
        assert!(refused.contains("exit code 3"), "{refused}");
        // The first one is past the window.
        starts.admit_at(after(10)).unwrap();
        assert!(starts.admit_at(after(10)).is_err());
        starts.reset();
        starts.admit_at(after(10)).unwrap();
    }
}
