//! What a case is, how it is run, and the row that it becomes.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

/// Longer than any case takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// One thing that is tried.
pub(super) struct Case {
    pub(super) id: &'static str,
    pub(super) tried: &'static str,
    /// Needs the machine for itself, because of its load or its figures.
    pub(super) alone: bool,
    patience: Duration,
    /// The cases that show it, if it has none of its own.
    pub(super) shown_by: &'static [&'static str],
    run: Box<dyn FnOnce() -> LocalBoxFuture<'static, Report>>,
}

/// The proof that a case went through the invariants: only they make one.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) figures: Vec<String>,
    pub(super) applicable: bool,
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) tried: &'static str,
    pub(super) took: Duration,
    /// The figures, or why it failed.
    pub(super) outcome: Result<Report, String>,
}

/// A case by its function.
pub(super) fn case<F>(id: &'static str, tried: &'static str, run: fn() -> F) -> Case
where
    F: Future<Output = Report> + 'static,
{
    Case {
        id,
        tried,
        alone: false,
        patience: PATIENCE,
        shown_by: &[],
        run: Box::new(move || run().boxed_local()),
    }
}

/// A case that is added together with the feature it is about.
pub(super) fn not_yet(id: &'static str, tried: &'static str, reason: &'static str) -> Case {
    let report = Report {
        figures: vec![reason.to_owned()],
        applicable: false,
    };
    Case {
        id,
        tried,
        alone: false,
        patience: PATIENCE,
        shown_by: &[],
        run: Box::new(move || std::future::ready(report).boxed_local()),
    }
}

/// A finding that other cases show.
pub(super) fn shown_by(
    id: &'static str,
    tried: &'static str,
    cases: &'static [&'static str],
) -> Case {
    Case {
        shown_by: cases,
        ..not_yet(id, tried, "")
    }
}

impl Case {
    /// The row of a finding that other cases show; they have all run.
    pub(super) fn row_among(&self, rows: &[Row]) -> Row {
        let of_case = |row: &&Row| self.shown_by.contains(&row.id);
        let failed = rows.iter().filter(of_case).filter(|row| row.failed());
        let failed: Vec<&str> = failed.map(|row| row.id).collect();
        let outcome = match failed.as_slice() {
            [] => Ok(Report {
                figures: vec![format!("shown by {}", self.shown_by.join(", "))],
                applicable: true,
            }),
            failed => Err(format!("shown by {}", failed.join(", "))),
        };
        Row {
            id: self.id,
            tried: self.tried,
            took: Duration::ZERO,
            outcome,
        }
    }

    #[must_use]
    pub(super) fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Takes as long as it takes.
    #[must_use]
    pub(super) fn unhurried(mut self) -> Self {
        self.patience = Duration::MAX;
        self
    }

    /// Runs the case; whatever panics in it is why it failed.
    pub(super) async fn run(self) -> Row {
        let began = Instant::now();
        let run = tokio::time::timeout(self.patience, (self.run)());
        let outcome = match AssertUnwindSafe(run).catch_unwind().await {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(_)) => Err(format!("not finished within {:?}", self.patience)),
            Err(payload) => Err(match LAST_PANIC.take() {
                // It panicked on another thread.
                text if text.is_empty() => text_of(payload.as_ref()).to_owned(),
                text => text,
            }),
        };
        Row {
            id: self.id,
            tried: self.tried,
            took: began.elapsed(),
            outcome,
        }
    }
}

thread_local! {
    /// Cases run on one thread, and a panic is caught where it happened.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The message of a panic.
pub(super) fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or(payload.downcast_ref::<&str>().copied());
    text.unwrap_or("?")
}

/// Keeps panics for the table instead of printing them.
pub(super) fn keep_panics() {
    std::panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let text = info.payload_as_str().unwrap_or("?");
        let place = info.location().map(|place| {
            let file = place.file().rsplit('/').next().unwrap_or_default();
            format!("{file}:{}: ", place.line())
        });
        let text = format!("{}{text}", place.unwrap_or_default());
        LAST_PANIC.with(|last| *last.borrow_mut() = text);
    }));
}
