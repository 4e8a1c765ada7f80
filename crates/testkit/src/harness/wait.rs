//! Waiting for a condition with a deadline, instead of sleeping for luck.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Long enough for a busy machine; a test that passes never waits this long.
pub const DEADLINE: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(20);

/// Waits until `condition` gives a value, and panics with `what` when it does not in time.
pub async fn wait_for<T>(
    what: &str,
    deadline: Duration,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + deadline;
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < end, "not within {deadline:?}: {what}");
        sleep(PAUSE).await;
    }
}

/// Waits until `condition` holds, and panics with `what` when it does not in time.
pub async fn wait_until(what: &str, deadline: Duration, mut condition: impl AsyncFnMut() -> bool) {
    wait_for(what, deadline, async || condition().await.then_some(())).await;
}
