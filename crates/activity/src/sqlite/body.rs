//! Payloads as bytes in the database: as they are when small, compressed when not.

use std::borrow::Cow;
use std::io::{self, Read};

use crate::payload::Payload;

/// Below this, compressing costs more than it saves.
const SMALLEST_COMPRESSED: usize = 4 * 1024;

/// No payload gets in that is larger.
const LARGEST: usize = 256 * 1024 * 1024;

/// The fastest useful level: the writer has other things to do.
const LEVEL: i32 = 1;

const PLAIN: i64 = 0;
const ZSTD: i64 = 1;

pub(super) struct Body<'a> {
    pub(super) coding: i64,
    pub(super) size: i64,
    pub(super) bytes: Cow<'a, [u8]>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the payload has an unknown coding {0}")]
    Coding(i64),
    #[error("the payload cannot be unpacked")]
    Unpack(#[from] io::Error),
    #[error("the payload has another size than noted")]
    Size,
    #[error("the payload is not text")]
    Text(#[from] std::str::Utf8Error),
}

impl<'a> Body<'a> {
    pub(super) fn encode(text: &'a str) -> Self {
        let size = i64::try_from(text.len()).unwrap_or(i64::MAX);
        let plain = Self {
            coding: PLAIN,
            size,
            bytes: Cow::Borrowed(text.as_bytes()),
        };
        if text.len() < SMALLEST_COMPRESSED {
            return plain;
        }
        match zstd::bulk::compress(text.as_bytes(), LEVEL) {
            Ok(packed) if packed.len() < text.len() => Self {
                coding: ZSTD,
                size,
                bytes: Cow::Owned(packed),
            },
            // Packing can only fail for want of memory; unpacked it is still right.
            _ => plain,
        }
    }

    pub(super) fn decode(coding: i64, size: i64, bytes: &[u8]) -> Result<Payload, BodyError> {
        let size = usize::try_from(size).map_err(|_| BodyError::Size)?;
        let bytes = match coding {
            PLAIN => Cow::Borrowed(bytes),
            ZSTD => Cow::Owned(unpack(bytes, size)?),
            other => return Err(BodyError::Coding(other)),
        };
        if bytes.len() != size {
            return Err(BodyError::Size);
        }
        Ok(Payload::new(str::from_utf8(&bytes)?))
    }
}

/// Grows with what comes out: a size that somebody changed must not be believed beforehand.
fn unpack(bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let most = size.min(LARGEST).saturating_add(1) as u64;
    zstd::stream::Decoder::with_buffer(bytes)?
        .take(most)
        .read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> (i64, String) {
        let body = Body::encode(text);
        let decoded = Body::decode(body.coding, body.size, &body.bytes).unwrap();
        (body.coding, decoded.as_str().to_owned())
    }

    #[test]
    fn small_is_plain_and_large_is_packed() {
        assert_eq!(round_trip("{}"), (PLAIN, "{}".to_owned()));
        let large = "ä".repeat(4_000);
        assert_eq!(round_trip(&large), (ZSTD, large));
    }

    #[test]
    fn what_was_changed_is_not_read() {
        let large = "abc".repeat(4_000);
        let body = Body::encode(&large);
        assert!(Body::decode(PLAIN, body.size, &body.bytes).is_err());
        assert!(Body::decode(ZSTD, body.size + 1, &body.bytes).is_err());
        assert!(Body::decode(ZSTD, body.size - 1, &body.bytes).is_err());
        assert!(Body::decode(7, body.size, &body.bytes).is_err());
        assert!(Body::decode(ZSTD, i64::MAX, b"garbage").is_err());
    }
}
