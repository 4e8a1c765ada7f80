//! CPU-heavy work, kept off the thread that serves calls.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::spawn_blocking;

/// Runs `work` on a blocking thread and returns what it returns. Search, audit and lists of all tools
/// take milliseconds; every call would wait for them on the only thread of the runtime.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and the caller with it.
            Err(_) => pending().await,
        },
    }
}
