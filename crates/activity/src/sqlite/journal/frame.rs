//! Entries as bytes of the journal, each in a frame of its own:
//!
//! ```text
//! frame = length:u32  checksum:u32  head:u32  head bytes  arguments:u32  text  response:u32  text
//! ```
//!
//! `length` is of what follows the checksum, which is CRC-32 over it; integers are little-endian.
//! The head is JSON, so that a newer mcpproxy reads what an older one left behind. The texts of
//! payloads stand beside it as they are: escaping them would cost more than everything else.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::ActivityId;
use crate::payload::{Payload, SealedPayload};
use crate::record::{Ended, Started};
use crate::store::Entry;

const PREAMBLE: usize = 8;

/// Stands for a text that was not kept.
const NO_TEXT: u32 = u32::MAX;

/// What a frame says.
#[derive(Debug)]
pub(super) enum Content {
    /// The first frame of a segment: which one it is.
    Segment(u64),
    Entry(Entry),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Head<'a> {
    Segment(u64),
    Start(Cow<'a, Started>),
    End(ActivityId, Cow<'a, Ended>),
    Whole(Cow<'a, Started>, Cow<'a, Ended>),
}

/// Why the rest of a segment cannot be read. A torn last frame is what a crash leaves behind.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("the last frame is not whole")]
    Torn,
    #[error("a frame's head cannot be understood")]
    Head(#[source] serde_json::Error),
}

pub(super) fn write_segment(output: &mut Vec<u8>, number: u64) -> serde_json::Result<()> {
    write(output, &Head::Segment(number), None, None)
}

pub(super) fn write_entry(output: &mut Vec<u8>, entry: &Entry) -> serde_json::Result<()> {
    let (head, started, ended) = match entry {
        Entry::Start(started) => (Head::Start(Cow::Borrowed(&**started)), Some(started), None),
        Entry::End(id, ended) => (Head::End(*id, Cow::Borrowed(ended)), None, Some(ended)),
        Entry::Whole(started, ended) => (
            Head::Whole(Cow::Borrowed(&**started), Cow::Borrowed(ended)),
            Some(started),
            Some(ended),
        ),
    };
    let arguments = started.and_then(|started| text(started.arguments.as_ref()));
    let response = ended.and_then(|ended| text(ended.response.as_ref()));
    write(output, &head, arguments, response)
}

fn write(
    output: &mut Vec<u8>,
    head: &Head<'_>,
    arguments: Option<&str>,
    response: Option<&str>,
) -> serde_json::Result<()> {
    let start = output.len();
    output.extend([0; PREAMBLE + 4]);
    if let Err(error) = serde_json::to_writer(&mut *output, head) {
        output.truncate(start);
        return Err(error);
    }
    let head_length = output.len() - start - PREAMBLE - 4;
    put_number(output, start + PREAMBLE, head_length);
    for part in [arguments, response] {
        match part {
            None => output.extend(NO_TEXT.to_le_bytes()),
            Some(text) => {
                output.extend(number(text.len()).to_le_bytes());
                output.extend(text.as_bytes());
            }
        }
    }
    let body = start + PREAMBLE;
    let length = output.len() - body;
    let checksum = crc32fast::hash(output.get(body..).unwrap_or_default());
    put_number(output, start, length);
    put_number(output, start + 4, checksum as usize);
    Ok(())
}

/// Reads the first frame, and tells where the next one begins.
pub(super) fn read(bytes: &[u8]) -> Result<(Content, &[u8]), FrameError> {
    let mut rest = bytes;
    let length = take_number(&mut rest)? as usize;
    let checksum = take_number(&mut rest)?;
    let mut body = take(&mut rest, length)?;
    if crc32fast::hash(body) != checksum {
        return Err(FrameError::Torn);
    }
    let head_length = take_number(&mut body)? as usize;
    let head = serde_json::from_slice(take(&mut body, head_length)?).map_err(FrameError::Head)?;
    let arguments = take_text(&mut body)?;
    let response = take_text(&mut body)?;
    let content = match head {
        Head::Segment(number) => Content::Segment(number),
        Head::Start(started) => Content::Entry(Entry::Start(with_arguments(started, arguments))),
        Head::End(id, ended) => Content::Entry(Entry::End(id, with_response(ended, response))),
        Head::Whole(started, ended) => Content::Entry(Entry::Whole(
            with_arguments(started, arguments),
            with_response(ended, response),
        )),
    };
    Ok((content, rest))
}

fn with_arguments(started: Cow<'_, Started>, text: Option<Payload>) -> Arc<Started> {
    let mut started = started.into_owned();
    if let Some(arguments) = &mut started.arguments {
        arguments.text = text;
    }
    Arc::new(started)
}

fn with_response(ended: Cow<'_, Ended>, text: Option<Payload>) -> Ended {
    let mut ended = ended.into_owned();
    if let Some(response) = &mut ended.response {
        response.text = text;
    }
    ended
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
