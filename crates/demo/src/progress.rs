//! How a tool that takes a while says how far it is and learns that nobody waits any more.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A tool reports at most about this often, however much it has to do.
const REPORTS: usize = 100;

/// So many of so many things are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub done: usize,
    pub total: usize,
}

#[derive(Debug)]
pub(crate) struct Progress {
    /// Absent when the client asked for no progress.
    listener: Option<mpsc::Sender<Step>>,
    cancelled: CancellationToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call was cancelled; nothing was changed")]
pub(crate) struct Cancelled;

impl Progress {
    pub(crate) fn new(listener: Option<mpsc::Sender<Step>>, cancelled: CancellationToken) -> Self {
        Self {
            listener,
            cancelled,
        }
    }

    /// Tells the client, where it is due; blocks while the client is slow to listen.
    pub(crate) fn report(&self, done: usize, total: usize) -> Result<(), Cancelled> {
        if self.cancelled.is_cancelled() {
            return Err(Cancelled);
        }
        let due = done == total || done.is_multiple_of((total / REPORTS).max(1));
        match &self.listener {
            // The listener lives as long as the request does.
            Some(listener) if due => listener
                .blocking_send(Step { done, total })
                .map_err(|_| Cancelled),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_work_makes_few_reports_and_the_last_one_is_complete() {
        let (sender, mut receiver) = mpsc::channel(1000);
        let progress = Progress::new(Some(sender), CancellationToken::new());
        for done in 1..=12_345 {
            progress.report(done, 12_345).unwrap();
        }
        drop(progress);
        let steps: Vec<_> = std::iter::from_fn(|| receiver.blocking_recv()).collect();
        assert!(steps.len() <= REPORTS + 2, "{} reports", steps.len());
        assert!(steps.is_sorted_by(|a, b| a.done < b.done));
        assert_eq!(steps.last().unwrap().done, 12_345);
    }

    #[test]
    fn work_stops_when_the_request_is_cancelled_or_gone() {
        let token = CancellationToken::new();
        let progress = Progress::new(None, token.clone());
        assert_eq!(progress.report(1, 2), Ok(()));
        token.cancel();
        assert_eq!(progress.report(2, 2), Err(Cancelled));

        let (sender, receiver) = mpsc::channel(1);
        drop(receiver);
        let progress = Progress::new(Some(sender), CancellationToken::new());
        assert_eq!(progress.report(1, 2), Err(Cancelled));
    }
}
