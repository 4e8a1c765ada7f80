//! A legacy server on the other end of two pipes.

use std::sync::Arc;

use super::link::Link;
use super::{ConnectError, Handshake, Hello};
use crate::message::encode_call;

#[derive(Debug)]
pub(super) struct Stdio {
    pub(super) link: Arc<Link>,
    pub(super) handshake: Arc<Handshake>,
}

impl Stdio {
    pub(super) async fn begin(link: Arc<Link>, hello: &Hello) -> Result<Self, ConnectError> {
        let id = link.next_id();
        let result = link
            .call(id, hello.encode(id))
            .await
            .map_err(ConnectError::Initialize)?;
        let handshake = Arc::new(Handshake::parse(result)?);
        link.send(encode_call(None, "notifications/initialized", None))
            .await
            .map_err(ConnectError::Initialize)?;
        Ok(Self { link, handshake })
    }
}
