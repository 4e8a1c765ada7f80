//! Server-sent events, the framing of streamable HTTP answers, in both directions.

mod encode;
mod parse;

pub use encode::{encode_event, encode_retry};
pub use parse::{Event, EventParser, EventTooLarge};
