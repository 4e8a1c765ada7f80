//! Where filters and words are looked up.
//!
//! A tree of SQLite's for every filter and an index of words made a record five times as dear as
//! its own rows are. Records are therefore indexed by the thousand: those that have ended are
//! gathered in a [`Draft`], and a full draft is written at once as a block. A block has the list
//! of its records and, for every *term* (a filter and its value, or a word), which of them have
//! it. Terms are spread over buckets by their hash, and a block writes its terms of one bucket as
//! one row: a question reads one row of every block for each of its conditions, a few hundred
//! bytes for a thousand records, and combines what it finds bit by bit.
//!
//! Records that are in no block yet, those of the draft and those that have not ended, are few;
//! questions look at them one by one.

mod blocks;
mod check;
mod draft;
mod lookup;
mod positions;
mod rebuild;
mod term;
mod terms;

pub(super) use blocks::{draft_missing, forget, indexed_sequence, write_next};
pub(super) use check::agrees;
use draft::Draft;
pub(super) use draft::Drafts;
pub(super) use lookup::{Wanted, look_up};
pub(super) use rebuild::{is_whole, rebuild};

/// How many records a block has. Larger ones make questions to a large log faster, and leave more
/// records that have to be looked at one by one.
pub(super) const BLOCK: usize = 1024;

/// Over how many rows the terms of a block are spread.
const BUCKETS: usize = 64;
