//! What is being ended in the background.

use std::time::Duration;

use tokio_util::task::TaskTracker;

/// Tracks endings that run in the background: children, and connections that are closed in order.
#[derive(Debug, Clone)]
pub struct Endings(TaskTracker);

// === impl Endings ===

impl Default for Endings {
    fn default() -> Self {
        let tracker = TaskTracker::new();
        // A closed tracker accepts tasks and lets `wait` return whenever none is left.
        tracker.close();
        Self(tracker)
    }
}

impl Endings {
    /// Within this time a child is gone, whatever it does.
    pub const LONGEST: Duration = Duration::from_millis(3_600);

    /// Runs `ending` in the background; drops it where there is no runtime any more.
    pub fn spawn(&self, ending: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.0.spawn_on(ending, &runtime);
        }
    }

    /// Waits until nothing is left, or as long as an ending may take.
    pub async fn wait(&self) {
        let _ = tokio::time::timeout(Self::LONGEST, self.0.wait()).await;
    }
}
