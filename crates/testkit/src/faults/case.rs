//! What a case is, how it is run, and the row that it becomes.

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
    run: Box<dyn FnOnce() -> LocalBoxFuture<'static, Report>>,
}

/// The proof that a case went through the invariants: only they make one.
#[derive(Debug)]
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
        run: Box::new(move || std::future::ready(report).boxed_local()),
    }
}

impl Case {
    #[must_use]
    pub(super) fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Runs the case; whatever panics in it is why it failed.
    pub(super) async fn run(self) -> Row {
        let began = Instant::now();
        let run = tokio::time::timeout(PATIENCE, (self.run)());
        let outcome = match AssertUnwindSafe(run).catch_unwind().await {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(_)) => Err(format!("not finished within {PATIENCE:?}")),
            Err(_) => Err(LAST_PANIC.take()),
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

/// Keeps panics for the table instead of printing them.
pub(super) fn keep_panics() {
    std::panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let payload = info.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or(payload.downcast_ref::<&str>().copied());
        let place = info.location().map(|place| {
            let file = place.file().rsplit('/').next().unwrap_or_default();
            format!("{file}:{}: ", place.line())
        });
        let text = format!("{}{}", place.unwrap_or_default(), text.unwrap_or("?"));
        LAST_PANIC.with(|last| *last.borrow_mut() = text);
    }));
}
