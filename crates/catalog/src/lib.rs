//! All tools of all upstreams as an immutable snapshot, the search over it, and the pins of tools.
//!
//! Nothing here does I/O or waits: whoever owns the upstreams hands in their tools, publishes the
//! [`Snapshot`] that comes out, and every reader searches that without a lock.

mod action;
mod bm25;
mod difference;
mod document;
mod embedding;
mod explain;
mod fingerprint;
mod hash;
mod index;
mod lexical;
mod pins;
mod query;
mod ranking;
mod search;
mod segment;
mod signature;
mod snapshot;
mod suggest;
mod summary;
mod synonyms;
mod text;
mod token_table;
mod tool;
mod typo;
mod word_list;
mod word_piece;

pub use bm25::Field;
pub use difference::{DifferenceLine, Side, difference};
pub use explain::{Explanation, Fusion, Match, Reasons};
pub use fingerprint::{Fingerprint, InvalidFingerprint};
pub use lexical::MatchKind;
pub use pins::{Announced, Drift, DriftKind, Observation, Pin, Remembered, ServerPins};
pub use query::LONGEST_QUERY;
pub use search::{Hit, Query, SearchResults};
pub use signature::signature;
pub use snapshot::{Entry, ServerTools, Snapshot};
pub use suggest::suggest_servers;
pub use summary::summary;
pub use tool::{ToolDefinition, ToolError};
