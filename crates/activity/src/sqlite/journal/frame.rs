//! Entries as bytes of the journal, each in a frame of its own:
//!
//! ```text
//! frame = length:u32  checksum:u32  head:u32  head bytes  arguments:u32  text  response:u32  text
//! head  = 0x00  number                       (the first frame of a segment: which one it is)
//!       | 0x01  version:u8  start            (a start)
//!       | 0x02  id  end                      (an end)
//!       | 0x03  version:u8  start  end       (both at once)
//!       | JSON                               (what older versions wrote)
//! ```
//!
//! `length` is of what follows the checksum, which is CRC-32 over it, combined with the number of the
//! segment in all frames but the first; integers of the frame are little-endian. Start, end, number and version are those that the hash chain covers, see
//! `encoding.rs`. They do not include the texts of payloads, which stand beside the head.

mod older;

use std::sync::Arc;

use crate::encoding::{self, Decoder, Encoder, InvalidEncoding};
use crate::id::ActivityId;
use crate::payload::{Payload, SealedPayload};
use crate::record::{Ended, Started};
use crate::store::Entry;

const PREAMBLE: usize = 8;

/// What stands at the beginning of a segment that was emptied.
pub(super) const NOTHING: [u8; PREAMBLE] = [0; PREAMBLE];

/// Stands for a text that was not kept.
const NO_TEXT: u32 = u32::MAX;

const SEGMENT: u8 = 0;
const START: u8 = 1;
const END: u8 = 2;
const WHOLE: u8 = 3;

/// What a frame says.
#[derive(Debug)]
pub(super) enum Content {
    /// The first frame of a segment: which one it is.
    Segment(u64),
    /// The same, of a version that did not tell segments apart by their checksums.
    OlderSegment(u64),
    Entry(Entry),
}

/// Why the rest of a segment cannot be read. A torn last frame is what a crash leaves behind.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("the last frame is not whole")]
    Torn,
    #[error("a frame's head cannot be understood")]
    Head(#[from] InvalidEncoding),
    #[error("the head of an older version's frame cannot be understood")]
    OlderHead(#[from] serde_json::Error),
}

/// What makes the checksums of a segment different from those of others.
#[expect(
    clippy::cast_possible_truncation,
    reason = "segments that could be mistaken for each other follow each other closely"
)]
pub(super) fn salt(segment: u64) -> u32 {
    segment as u32
}

pub(super) fn write_segment(output: &mut Vec<u8>, number: u64) {
    let write_head = |output: &mut Vec<u8>| {
        output.push(SEGMENT);
        Encoder(output).number(number);
    };
    write(output, 0, write_head, [None, None]);
}

pub(super) fn write_entry(output: &mut Vec<u8>, salt: u32, entry: &Entry) {
    let texts = match entry {
        Entry::Start(started) => [text(started.arguments.as_ref()), None],
        Entry::End(_, ended, _) => [None, text(ended.response.as_ref())],
        Entry::Whole(started, ended) => [
            text(started.arguments.as_ref()),
            text(ended.response.as_ref()),
        ],
    };
    write(output, salt, |output| write_head(output, entry), texts);
}

fn write_head(output: &mut Vec<u8>, entry: &Entry) {
    match entry {
        Entry::Start(started) => {
            output.extend([START, encoding::version(started)]);
            Encoder(output).start(started);
        }
        Entry::End(id, ended, _) => {
            output.push(END);
            let mut encoder = Encoder(output);
            encoder.id(*id);
            encoder.end(ended);
        }
        Entry::Whole(started, ended) => {
            output.extend([WHOLE, encoding::version(started)]);
            let mut encoder = Encoder(output);
            encoder.start(started);
            encoder.end(ended);
        }
    }
}

fn write(
    output: &mut Vec<u8>,
    salt: u32,
    write_head: impl FnOnce(&mut Vec<u8>),
    texts: [Option<&str>; 2],
) {
    let start = output.len();
    output.extend([0; PREAMBLE + 4]);
    write_head(output);
    let head_length = output.len() - start - PREAMBLE - 4;
    put_number(output, start + PREAMBLE, head_length);
    for text in texts {
        match text {
            None => output.extend(NO_TEXT.to_le_bytes()),
            Some(text) => {
                output.extend(number(text.len()).to_le_bytes());
                output.extend(text.as_bytes());
            }
        }
    }
    let body = start + PREAMBLE;
    let length = output.len() - body;
    let checksum = salt ^ crc32fast::hash(output.get(body..).unwrap_or_default());
    put_number(output, start, length);
    put_number(output, start + 4, checksum as usize);
}

/// A frame around a body that is there already.
pub(super) fn write_body(output: &mut Vec<u8>, salt: u32, body: &[u8]) {
    output.extend(number(body.len()).to_le_bytes());
    output.extend((salt ^ crc32fast::hash(body)).to_le_bytes());
    output.extend(body);
}

/// Reads the first frame, and tells where the next one begins.
pub(super) fn read(bytes: &[u8], salt: u32) -> Result<(Content, &[u8]), FrameError> {
    let mut rest = bytes;
    let length = take_number(&mut rest)? as usize;
    let checksum = take_number(&mut rest)?;
    let mut body = take(&mut rest, length)?;
    if salt ^ crc32fast::hash(body) != checksum {
        return Err(FrameError::Torn);
    }
    let head_length = take_number(&mut body)? as usize;
    let head = read_head(take(&mut body, head_length)?)?;
    let arguments = take_text(&mut body)?;
    let response = take_text(&mut body)?;
    Ok((head.with_texts(arguments, response), rest))
}

/// A head as it was read: entries still lack the texts of their payloads.
enum Head {
    Segment(u64),
    OlderSegment(u64),
    Start(Started),
    End(ActivityId, Ended),
    Whole(Started, Ended),
}

fn read_head(bytes: &[u8]) -> Result<Head, FrameError> {
    if older::is_head(bytes) {
        return Ok(older::read_head(bytes)?);
    }
    let mut decoder = Decoder(bytes);
    let head = match decoder.byte()? {
        SEGMENT => Head::Segment(decoder.number()?),
        START => Head::Start(start(&mut decoder)?),
        END => Head::End(decoder.id()?, decoder.end()?),
        WHOLE => Head::Whole(start(&mut decoder)?, decoder.end()?),
        _ => return Err(InvalidEncoding.into()),
    };
    decoder.finish()?;
    Ok(head)
}

fn start(decoder: &mut Decoder<'_>) -> Result<Started, InvalidEncoding> {
    let version = decoder.byte()?;
    decoder.start(version)
}

impl Head {
    fn with_texts(self, arguments: Option<Payload>, response: Option<Payload>) -> Content {
        let with_arguments = |mut started: Started| {
            give(&mut started.arguments, arguments);
            Arc::new(started)
        };
        let with_response = |mut ended: Ended| {
            give(&mut ended.response, response);
            ended
        };
        Content::Entry(match self {
            Self::Segment(number) => return Content::Segment(number),
            Self::OlderSegment(number) => return Content::OlderSegment(number),
            Self::Start(started) => Entry::Start(with_arguments(started)),
            Self::End(id, ended) => Entry::End(id, with_response(ended), None),
            Self::Whole(started, ended) => {
                Entry::Whole(with_arguments(started), with_response(ended))
            }
        })
    }
}

fn give(payload: &mut Option<SealedPayload>, text: Option<Payload>) {
    if let Some(payload) = payload {
        payload.text = text;
    }
}

fn text(payload: Option<&SealedPayload>) -> Option<&str> {
    payload?.text.as_ref().map(Payload::as_str)
}

/// Payloads are limited far below 4 GiB before they get here.
fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn put_number(output: &mut [u8], at: usize, value: usize) {
    if let Some(place) = output.get_mut(at..at + 4) {
        place.copy_from_slice(&number(value).to_le_bytes());
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], FrameError> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(FrameError::Torn)?;
    *bytes = rest;
    Ok(taken)
}

fn take_number(bytes: &mut &[u8]) -> Result<u32, FrameError> {
    let (number, rest) = bytes.split_first_chunk().ok_or(FrameError::Torn)?;
    *bytes = rest;
    Ok(u32::from_le_bytes(*number))
}

fn take_text(bytes: &mut &[u8]) -> Result<Option<Payload>, FrameError> {
    let length = take_number(bytes)?;
    if length == NO_TEXT {
        return Ok(None);
    }
    let text = std::str::from_utf8(take(bytes, length as usize)?).map_err(|_| FrameError::Torn)?;
    Ok(Some(Payload::new(text)))
}
