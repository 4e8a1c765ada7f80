//! Runs a call on its connection's task; if the client disconnects, finishes it in the background.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// A future that is polled by the task that awaits it, which is cheaper than a task of its own. When
/// dropped unfinished it goes to the runtime: a client that hangs up does not end its call.
///
/// The future is boxed once, where it is made: a call's state is several kilobytes, and every layer
/// that held it inline would copy it.
pub(super) struct Detachable<T: Send + 'static> {
    future: Option<Boxed<T>>,
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<T: Send + 'static> Detachable<T> {
    pub(super) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self {
            future: Some(Box::pin(future)),
        }
    }

    /// The future, if it has not come to its end.
    pub(super) fn into_future(mut self) -> Option<Boxed<T>> {
        self.future.take()
    }
}

impl<T: Send + 'static> Future for Detachable<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
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

impl<T: Send + 'static> Drop for Detachable<T> {
    fn drop(&mut self) {
        // Without a runtime the process is on its way out, and the call with it.
        if let (Some(future), Ok(runtime)) = (self.future.take(), Handle::try_current()) {
            runtime.spawn(async move {
                future.await;
            });
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
