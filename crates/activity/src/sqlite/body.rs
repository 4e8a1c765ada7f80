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

pub(super) struct Body<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// The size of the text, if it was packed.
    pub(super) unpacked: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the payload cannot be unpacked")]
    Unpack(#[from] io::Error),
    #[error("the payload has another size than noted")]
    Size,
    #[error("the payload is not text")]
    Text(#[from] std::str::Utf8Error),
}

impl<'a> Body<'a> {
    pub(super) fn encode(text: &'a str) -> Self {
        let plain = Self {
            bytes: Cow::Borrowed(text.as_bytes()),
            unpacked: None,
        };
        if text.len() < SMALLEST_COMPRESSED {
            return plain;
        }
        match zstd::bulk::compress(text.as_bytes(), LEVEL) {
            Ok(packed) if packed.len() < text.len() => Self {
                bytes: Cow::Owned(packed),
                unpacked: i64::try_from(text.len()).ok(),
            },
            // Packing can only fail for want of memory; unpacked it is still right.
            _ => plain,
        }
    }

    pub(super) fn decode(bytes: &[u8], unpacked: Option<i64>) -> Result<Payload, BodyError> {
        let Some(size) = unpacked else {
            return Ok(Payload::new(str::from_utf8(bytes)?));
        };
        let size = usize::try_from(size).map_err(|_| BodyError::Size)?;
        let text = unpack(bytes, size)?;
        if text.len() != size {
            return Err(BodyError::Size);
        }
        Ok(Payload::new(str::from_utf8(&text)?))
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

    fn round_trip(text: &str) -> (bool, String) {
        let body = Body::encode(text);
        let decoded = Body::decode(&body.bytes, body.unpacked).unwrap();
        (body.unpacked.is_some(), decoded.as_str().to_owned())
    }

    #[test]
    fn small_is_plain_and_large_is_packed() {
        assert_eq!(round_trip("{}"), (false, "{}".to_owned()));
        let large = "ä".repeat(4_000);
        assert_eq!(round_trip(&large), (true, large));
    }

    #[test]
    fn what_was_changed_is_not_read() {
        let large = "abc".repeat(4_000);
        let body = Body::encode(&large);
        assert!(Body::decode(&body.bytes, None).is_err());
        for size in [11_999, 12_001, -1, i64::MAX] {
            assert!(Body::decode(&body.bytes, Some(size)).is_err());
        }
        assert!(Body::decode(b"garbage", Some(i64::MAX)).is_err());
    }
}
