//! What has to end before the daemon can: calls and other requests that are under way.

use std::future::Future;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    requests: TaskTracker,
    interrupted: CancellationToken,
}

impl UnderWay {
    /// For endpoints, which count their requests until the answer is on its way.
    pub(crate) fn requests(&self) -> TaskTracker {
        self.requests.clone()
    }

    /// Counts a request until the token is dropped.
    pub(crate) fn begin(&self) -> TaskTrackerToken {
        self.requests.token()
    }

    /// Waits until no request is under way.
    pub(crate) async fn ended(&self) {
        self.requests.close();
        self.requests.wait().await;
    }

    /// Ends what is under way: nothing waits for an upstream any longer.
    pub(crate) fn interrupt(&self) {
        self.interrupted.cancel();
    }

    pub(crate) async fn interrupted(&self) {
        self.interrupted.cancelled().await;
    }

    /// What `work` comes to; `None` if it is interrupted before. Then it is not polled any more:
    /// the place in a queue that another call gave up must not get this one sent.
    pub(crate) async fn or_interrupted<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.interrupted() => None,
            outcome = work => Some(outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn the_end_is_when_the_last_request_is_over() {
        let under_way = UnderWay::default();
        let (first, second) = (under_way.begin(), under_way.begin());
        let mut ended = Box::pin(under_way.ended());
        assert!(poll!(&mut ended).is_pending());
        drop(first);
        assert!(poll!(&mut ended).is_pending());
        drop(second);
        ended.await;
    }

    #[tokio::test]
    async fn nothing_goes_on_once_it_is_interrupted() {
        let under_way = UnderWay::default();
        assert_eq!(under_way.or_interrupted(async { 1 }).await, Some(1));
        under_way.interrupt();
        let work = async { panic!("it must not begin") };
        assert_eq!(under_way.or_interrupted(work).await, None::<u8>);
    }
}
