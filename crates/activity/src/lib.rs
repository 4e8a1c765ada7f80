//! Records of what happened: store, retention, hash chain, export.
//!
//! [`Activity`] is the handle to hold; [`sqlite::SqliteStore`] is the store to give it. What goes
//! in is redacted and cut before any store sees it, and what has started always ends, once.

mod believed_time;
mod chain;
mod clock;
mod encoding;
mod event;
mod export;
mod facts;
mod filter;
mod gap;
mod id;
mod log;
mod page;
mod payload;
mod record;
mod retention;
mod seal;
mod search;
pub mod sqlite;
mod stats;
mod store;
mod verify;
mod words;

pub use chain::{Checkpoint, Hash, InvalidHash, Link};
pub use clock::now;
pub use event::{Event, Follow, FollowError, Phase, Replay};
pub use export::{Export, ExportError, ExportFormat, ExportRequest};
/// What only fuzz targets need from outside.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::export::write_line as csv_line;
    pub use crate::sqlite::{read_segment, write_body, write_segment};
}
pub use facts::{Facts, Given};
pub use filter::{Filter, FilterError};
pub use gap::{Gap, Missed, NOT_RECORDED};
pub use id::{ActivityId, InvalidActivityId};
pub use log::{Activity, Clock, OpenRecord, Payloads, Settings};
pub use page::{Begin, Cursor, DEFAULT_LIMIT, HIGHEST_LIMIT, ListRequest, Page, PageRequest};
pub use payload::{Payload, SealedPayload};
pub use record::{End, Ended, Metadata, Outcome, Record, RecordedIntent, Start, Started};
pub use retention::{Candidate, Fate, Holdings, PruneStep, Pruned, RetentionPolicy, Share};
pub use search::SearchText;
pub use stats::{Counts, Group, GroupBy, Period, Summary, ToolUsage, Usage};
pub use store::{ActivityStore, Durability, Entry, Health, StoreError, StoreFuture};
pub use verify::{Break, BreakReason, NotedHead, Verification};
pub use words::{RecordType, Source, Status, Word};
