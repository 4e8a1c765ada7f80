//! What was told to the log and is not in the database yet, kept where the death of the process
//! cannot reach it.
//!
//! A commit costs as much for one entry as for a hundred. A caller who only needs its entry to
//! survive the process therefore appends it here, which is one write to the page cache, and goes on;
//! the writer brings what has gathered into the database as one batch. There are two segments:
//! while the entries of one are being stored, new ones go to the other. A segment is emptied when
//! all of its entries are stored. What is found in them at the next start is stored then, unless the
//! database has it already, so it does no harm if the process dies between storing and emptying.
//!
//! Emptying overwrites the beginning of a segment and keeps its space: to give it back and to get it
//! again for every batch would cost a third of every write. What stood there before is still there
//! behind what is written next, and is told from it by the checksums, which differ from segment to
//! segment.

mod frame;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::error::OpenError;
use super::files::{Files, open_to_write};
use crate::store::Entry;
use frame::{Content, FrameError};

/// A segment that grew beyond this gives its space back.
const LARGEST_KEPT: u64 = 16 * 1024 * 1024;

/// Both segments; one of them takes what comes.
#[derive(Debug)]
pub(super) struct Journal {
    active: Segment,
    other: Segment,
    /// What is noted and not written yet: starts that nobody waits for.
    buffer: Vec<u8>,
    /// How much of it is about to be stored, though it could not be written.
    taken: usize,
    /// How often segments were begun, so that they can be read in order.
    begun: u64,
}

#[derive(Debug)]
struct Segment {
    file: File,
    /// How much of the file counts.
    length: u64,
}

impl Journal {
    /// Opens the segments. Their content must have been taken care of before.
    pub(super) fn open(files: &Files) -> Result<Self, OpenError> {
        let [active, other] = files.journal();
        Ok(Self {
            active: Segment::open(active)?,
            other: Segment::open(other)?,
            buffer: Vec::new(),
            taken: 0,
            begun: 0,
        })
    }

    /// Takes note of an entry; it is written with the next one that has to be.
    pub(super) fn note(&mut self, entry: &Entry) {
        if self.active.is_empty() && self.buffer.is_empty() {
            self.begun += 1;
            frame::write_segment(&mut self.buffer, self.begun);
        }
        frame::write_entry(&mut self.buffer, frame::salt(self.begun), entry);
    }

    /// Writes everything that was noted.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let segment = &mut self.active;
        if let Err(error) = segment.file.write_all_at(&self.buffer, segment.length) {
            // Half a frame would hide everything after it.
            segment.file.set_len(segment.length)?;
            return Err(error);
        }
        segment.length += self.buffer.len() as u64;
        self.buffer.clear();
        self.taken = 0;
        Ok(())
    }

    /// Everything noted so far is about to be stored; what comes now goes to the other segment.
    /// If that one is still needed, everything stays where it is.
    pub(super) fn turn(&mut self) {
        // A start that is only noted must not be lost if its end is written before it is stored.
        if !self.buffer.is_empty()
            && let Err(error) = self.write()
        {
            tracing::warn!(%error, "the activity log's journal could not be written");
            self.taken = self.buffer.len();
            return;
        }
        if !self.active.is_empty() && self.other.is_empty() {
            std::mem::swap(&mut self.active, &mut self.other);
        }
    }

    /// The entries of the segment that was turned away from are stored.
    pub(super) fn clear_stored(&mut self) {
        self.drop_taken();
        if !self.other.is_empty()
            && let Err(error) = self.other.clear()
        {
            tracing::warn!(%error, "the activity log's journal was not emptied");
        }
    }

    /// Drops what could not be written and is stored now: while the journal alone fails, what is noted
    /// must not pile up.
    fn drop_taken(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        let rest = self.buffer.split_off(taken);
        if taken > 0 && self.active.is_empty() && !rest.is_empty() {
            // The frame that begins the segment went with the others.
            self.buffer.clear();
            frame::write_segment(&mut self.buffer, self.begun);
            self.buffer.extend(rest);
        } else {
            self.buffer = rest;
        }
    }

    /// Everything is stored, and nothing more will come.
    pub(super) fn give_back(&mut self) {
        for segment in [&mut self.active, &mut self.other] {
            if let Err(error) = segment.file.set_len(0) {
                tracing::warn!(%error, "the activity log's journal was not emptied");
            }
        }
    }
}

impl Segment {
    fn open(path: PathBuf) -> Result<Self, OpenError> {
        let file = open_to_write(&path)?;
        let length = file.metadata().map_err(OpenError::file(path))?.len();
        Ok(Self { file, length })
    }

    fn clear(&mut self) -> io::Result<()> {
        if self.length > LARGEST_KEPT {
            self.file.set_len(0)?;
        } else {
            self.file.write_all_at(&frame::NOTHING, 0)?;
        }
        self.length = 0;
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// What the last process left behind, oldest first, as far as it is whole.
pub(super) fn left_behind(files: &Files) -> Result<Vec<Entry>, OpenError> {
    let mut segments = Vec::new();
    for path in files.journal() {
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => segments.push(read_segment(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(OpenError::file(path)(error)),
        }
    }
    segments.sort_by_key(|(number, _)| *number);
    Ok(segments
        .into_iter()
        .flat_map(|(_, entries)| entries)
        .collect())
}

/// Empties both segments, once what was in them is stored.
pub(super) fn discard(files: &Files) -> Result<(), OpenError> {
    for path in files.journal() {
        let file = open_to_write(&path)?;
        file.set_len(0).map_err(OpenError::file(path))?;
    }
    Ok(())
}

/// The number of a segment and its entries, as far as it is whole.
pub fn read_segment(bytes: &[u8]) -> (u64, Vec<Entry>) {
    let (mut number, mut entries, mut rest) = (0, Vec::new(), bytes);
    let mut salt = 0;
    while !rest.is_empty() {
        match frame::read(rest, salt) {
            Ok((content, following)) => {
                match content {
                    Content::Segment(found) => (number, salt) = (found, frame::salt(found)),
                    Content::OlderSegment(found) => number = found,
                    Content::Entry(entry) => entries.push(entry),
                }
                rest = following;
            }
            // Nobody was told that it was written, or it is of an earlier segment.
            Err(FrameError::Torn) => break,
            Err(error) => {
                tracing::error!(%error, bytes = rest.len(), "a part of the activity log's journal is lost");
                break;
            }
        }
    }
    (number, entries)
}

/// A segment with these entries, as it is written.
pub fn write_segment(number: u64, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_segment(&mut bytes, number);
    for entry in entries {
        frame::write_entry(&mut bytes, frame::salt(number), entry);
    }
    bytes
}

/// A segment whose second frame has this body, right or wrong, and the checksum that it needs.
pub fn write_body(number: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = write_segment(number, &[]);
    frame::write_body(&mut bytes, frame::salt(number), body);
    bytes
}

#[cfg(test)]
mod tests;
