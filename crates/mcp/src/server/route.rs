//! The way that messages take to a client: a stream of events, or the pipe that it reads.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::http::EventStream;
use super::outbound::{Gone, OfferError};

#[derive(Debug, Clone)]
pub(super) enum Route {
    Stream(Arc<EventStream>),
    Pipe(mpsc::Sender<Vec<u8>>),
}

impl Route {
    /// Waits while the client is behind.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<(), Gone> {
        match self {
            Self::Stream(stream) => stream.send(&message).await,
            Self::Pipe(pipe) => pipe.send(message).await.map_err(|_| Gone),
        }
    }

    /// Never waits. A stream whose client is too far behind is lost to it; a full pipe loses the
    /// message.
    pub(super) fn offer(&self, message: Vec<u8>) -> Result<(), OfferError> {
        match self {
            Self::Stream(stream) => Ok(stream.offer(&message)?),
            Self::Pipe(pipe) => pipe.try_send(message).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => OfferError::Full,
                mpsc::error::TrySendError::Closed(_) => Gone.into(),
            }),
        }
    }

    /// Sends the last message that there will be of its request.
    pub(super) fn finish(&self, message: Vec<u8>) {
        match self {
            Self::Stream(stream) => stream.finish([message]),
            // A client that reads nothing any more cannot be told that it is over either.
            Self::Pipe(pipe) => drop(pipe.try_send(message)),
        }
    }
}
