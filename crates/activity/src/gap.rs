//! What could not be recorded: counted while the store takes nothing, and recorded when it does again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::record::{End, Outcome, Start};
use crate::words::{RecordType, Source};

/// The error code of a record that stands for others.
pub const NOT_RECORDED: &str = "NOT_RECORDED";

/// Something that happened and has no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// A call that was made.
    Call,
    /// A call that was refused.
    Refusal,
    /// A change, or a start or stop of the daemon.
    Change,
}

/// How much has no record, and when it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gap {
    pub calls: u64,
    pub refusals: u64,
    pub changes: u64,
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub to: Timestamp,
}

/// The gap that is not recorded yet.
#[derive(Debug, Default)]
pub(crate) struct OpenGap {
    gap: Mutex<Option<Gap>>,
    /// Whether there is one; asked for every record.
    exists: AtomicBool,
}

impl Gap {
    fn new(at: Timestamp) -> Self {
        Self {
            calls: 0,
            refusals: 0,
            changes: 0,
            from: at,
            to: at,
        }
    }

    fn add(&mut self, missed: Missed, at: Timestamp) {
        match missed {
            Missed::Call => self.calls += 1,
            Missed::Refusal => self.refusals += 1,
            Missed::Change => self.changes += 1,
        }
        self.to = at;
    }

    fn join(self, later: Self) -> Self {
        Self {
            calls: self.calls + later.calls,
            refusals: self.refusals + later.refusals,
            changes: self.changes + later.changes,
            from: self.from,
            to: later.to,
        }
    }

    /// What a record says of it, and how it ended.
    pub(crate) fn texts(&self) -> (String, String) {
        let Self {
            calls,
            refusals,
            changes,
            from,
            to,
        } = self;
        let arguments = json!({
            "event": "gap",
            "calls_not_recorded": calls,
            "refusals_not_recorded": refusals,
            "changes_not_recorded": changes,
            "from": format!("{from:.3}"),
            "to": format!("{to:.3}"),
        });
        let message = format!(
            "{calls} calls, {refusals} refused calls and {changes} changes were not recorded between \
             {from:.3} and {to:.3}, because the activity log could not be written"
        );
        (arguments.to_string(), message)
    }
}

impl OpenGap {
    pub(crate) fn add(&self, missed: Missed, at: Timestamp) {
        let mut gap = self.gap.lock().unwrap_or_else(PoisonError::into_inner);
        gap.get_or_insert_with(|| Gap::new(at)).add(missed, at);
        self.exists.store(true, Ordering::Release);
    }

    pub(crate) fn get(&self) -> Option<Gap> {
        *self.gap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the gap in order to record it.
    pub(crate) fn take(&self) -> Option<Gap> {
        if !self.exists.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut gap = self.gap.lock().unwrap_or_else(PoisonError::into_inner);
        gap.take()
    }

    /// It could not be recorded.
    pub(crate) fn put_back(&self, earlier: Gap) {
        let mut gap = self.gap.lock().unwrap_or_else(PoisonError::into_inner);
        *gap = Some(match gap.take() {
            Some(later) => earlier.join(later),
            None => earlier,
        });
        self.exists.store(true, Ordering::Release);
    }
}

/// The record of a gap.
pub(crate) fn record<'a>(arguments: &'a str, message: &'a str) -> (Start<'a>, End<'a>) {
    let start = Start {
        arguments: Some(arguments),
        ..Start::new(RecordType::System, Source::Api)
    };
    let outcome = Outcome::Error {
        code: NOT_RECORDED,
        message,
    };
    (start, End::new(outcome, Duration::ZERO))
}
