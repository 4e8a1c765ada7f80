//! A legacy server that has been greeted, over a connection that all messages share.

use std::future::Future;
use std::sync::Arc;

use super::pending::Answer;
use super::{ConnectError, Handshake, Hello, RequestError};
use crate::ProtocolVersion;
use crate::message::encode_call;

/// A connection that all messages share.
pub(super) trait Duplex: Sync {
    fn next_id(&self) -> u64;

    fn call(&self, id: u64, message: Vec<u8>) -> impl Future<Output = Answer> + Send;

    fn send(&self, message: Vec<u8>) -> impl Future<Output = Result<(), RequestError>> + Send;

    /// Takes note of what is spoken from now on.
    fn speak(&self, _protocol: ProtocolVersion) {}
}

#[derive(Debug)]
pub(super) struct Greeted<D> {
    pub(super) link: Arc<D>,
    pub(super) handshake: Arc<Handshake>,
}

impl<D: Duplex> Greeted<D> {
    pub(super) async fn begin(link: Arc<D>, hello: &Hello) -> Result<Self, ConnectError> {
        let id = link.next_id();
        let result = link
            .call(id, hello.encode(id))
            .await
            .map_err(ConnectError::Initialize)?;
        let handshake = Arc::new(Handshake::parse(result)?);
        link.speak(handshake.protocol);
        link.send(encode_call(None, "notifications/initialized", None))
            .await
            .map_err(ConnectError::Initialize)?;
        Ok(Self { link, handshake })
    }
}
