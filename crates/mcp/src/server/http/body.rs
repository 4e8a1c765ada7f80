//! Reads a request's body whole, up to a limit.

use axum::body::Body;
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::refusal::Reason;

/// How much of a body that is too large is read in order to be thrown away.
const DISCARDED: u64 = 64 * 1024 * 1024;

pub(super) async fn read_body(mut body: Body, limit: usize) -> Result<Bytes, Reason> {
    // A body that says how large it is need not be kept to be refused.
    if body.size_hint().lower() > limit as u64 {
        discard(body).await;
        return Err(Reason::TooLarge { limit });
    }
    match Limited::new(&mut body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            discard(body).await;
            Err(Reason::TooLarge { limit })
        }
        Err(error) => Err(Reason::Body(axum::Error::new(error))),
    }
}

/// Reads a body that will be refused. Many clients look at the answer only once they have sent all,
/// and would find the connection closed instead.
pub async fn discard(mut body: Body) {
    let mut left = DISCARDED;
    if body.size_hint().lower() > left {
        return;
    }
    while let Some(Ok(frame)) = body.frame().await {
        let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
        let Some(rest) = left.checked_sub(bytes) else {
            return;
        };
        left = rest;
    }
}
