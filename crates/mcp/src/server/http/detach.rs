//! A call that its connection drives as long as it is there, and that goes on without it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// Runs a future inside the task that awaits it, which is cheaper than a task of its own, but when
/// dropped unfinished hands it to the runtime: a client that hangs up does not end its call.
#[derive(Debug)]
pub(super) struct Detachable<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    future: Option<Pin<Box<F>>>,
}

impl<F> Detachable<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    pub(super) fn new(future: F) -> Self {
        Self {
            future: Some(Box::pin(future)),
        }
    }

    /// The future, if it has not come to its end.
    pub(super) fn into_future(mut self) -> Option<Pin<Box<F>>> {
        self.future.take()
    }
}

impl<F> Future for Detachable<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = &mut self.future else {
            return Poll::Pending;
        };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<F> Drop for Detachable<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn drop(&mut self) {
        // Without a runtime the process is on its way out, and the call with it.
        if let (Some(future), Ok(runtime)) = (self.future.take(), Handle::try_current()) {
            runtime.spawn(future);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_future_dropped_halfway_comes_to_its_end() {
        let (go, gone) = oneshot::channel::<()>();
        let (done, finished) = oneshot::channel();
        let mut call = Detachable::new(async move {
            let _ = gone.await;
            let _ = done.send(7);
        });
        tokio::select! {
            biased;
            () = &mut call => panic!("it cannot be over yet"),
            () = std::future::ready(()) => {}
        }
        drop(call);
        go.send(()).unwrap();
        assert_eq!(finished.await.unwrap(), 7);
    }
}
