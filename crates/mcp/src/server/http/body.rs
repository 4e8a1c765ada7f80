//! Reads a request's body whole, up to a limit.

use axum::body::Body;
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::refusal::Reason;

pub(super) async fn read_body(body: Body, limit: usize) -> Result<Bytes, Reason> {
    // A body that says how large it is need not be read to be refused.
    if body.size_hint().lower() > limit as u64 {
        return Err(Reason::TooLarge { limit });
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Reason::TooLarge { limit }),
        Err(error) => Err(Reason::Body(axum::Error::new(error))),
    }
}
