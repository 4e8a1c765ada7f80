//! The activity log as its users see it, over a real file.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers fail as tests do, by panicking"
)]

mod beside;
mod blocks;
mod concurrency;
mod crash;
mod events;
mod export;
mod files;
mod full;
mod lifecycle;
mod listing;
mod migration;
mod redaction;
mod retention;
mod stats;
mod support;
mod tamper;
mod tamper_checkpoints;
mod tamper_index;
