//! What the tests of the store have in common.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use activity::sqlite::{Opened, SqliteOptions, SqliteStore};
use activity::{
    Activity, ActivityId, Durability, End, Facts, Filter, Given, ListRequest, Metadata, Outcome,
    Page, Payloads, RecordType, RecordedIntent, Settings, Source, Start,
};
use policy::{OperationType, Provenance, Tier};
use redact::Redactor;

pub(crate) const JOURNAL: [&str; 2] = ["activity.journal-1", "activity.journal-2"];

const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) fn options(directory: &Path) -> SqliteOptions {
    SqliteOptions {
        directory: directory.join("data"),
        max_file_bytes: None,
    }
}

pub(crate) fn open(directory: &Path) -> Activity {
    let Opened {
        store, moved_aside, ..
    } = SqliteStore::open(&options(directory)).unwrap();
    assert_eq!(moved_aside, None);
    Activity::new(Arc::new(store), settings())
}

/// Opens the log as commands without a daemon do; also how many entries are not shown.
pub(crate) fn open_to_read(directory: &Path) -> (Activity, u64) {
    let opened = SqliteStore::open_read_only(&directory.join("data")).unwrap();
    (
        Activity::new(Arc::new(opened.store), settings()),
        opened.waiting,
    )
}

pub(crate) fn settings() -> Settings {
    let redactor = Redactor::new(["hunter2-secret"]).unwrap();
    Settings {
        redactor,
        max_response_bytes: 65_536,
        max_argument_bytes: 65_536,
        payloads: Payloads::Full,
    }
}

/// A call of `server:tool` on the lane of its operation type.
pub(crate) fn call<'a>(server: &'a str, tool: &'a str, operation: OperationType) -> Start<'a> {
    Start {
        server_name: Some(server),
        tool_name: Some(tool),
        arguments: Some(r#"{"path":"/tmp/notes.txt"}"#),
        request_bytes: 120,
        session_id: Some("session-1"),
        client_name: Some("claude-code"),
        request_id: Some("request-1"),
        metadata: Metadata {
            intent: Some(RecordedIntent {
                operation_type: Some(operation),
                data_sensitivity: Some(policy::DataSensitivity::Internal),
                reason: Some("because it was asked for".to_owned()),
            }),
            tool_variant: Some(operation.variant()),
            effective_tier: Some(Tier::ReadOnly),
            provenance: Some(Provenance::Declared),
            warnings: vec!["the tool is new".to_owned()],
            facts: Some(Facts {
                declared_tier: Some(Tier::ReadOnly),
                audited_tier: Some(Tier::Write),
                pinned: None,
                hold: None,
                lane_chosen: true,
                intent_given: true,
                operation_type: Given::Understood,
                data_sensitivity: Given::Understood,
            }),
        },
        ..Start::new(RecordType::ToolCall, Source::Mcp)
    }
}

pub(crate) fn read_call<'a>() -> Start<'a> {
    call("files", "read_file", OperationType::Read)
}

pub(crate) fn success<'a>() -> End<'a> {
    End {
        outcome: Outcome::Success,
        duration: Duration::from_millis(12),
        response: Some(r#"{"content":[{"type":"text","text":"hello"}]}"#),
        response_bytes: 44,
    }
}

pub(crate) fn failure<'a>() -> End<'a> {
    let outcome = Outcome::Error {
        code: "UPSTREAM_ERROR",
        message: "the disk went away",
    };
    End::new(outcome, Duration::from_millis(900))
}

pub(crate) fn blocked<'a>() -> End<'a> {
    let message = "Tool 'x' is marked destructive by server, use call_tool_destructive";
    End::new(
        Outcome::Blocked {
            code: "SERVER_MISMATCH",
            message,
        },
        Duration::ZERO,
    )
}

/// Records a call from start to end.
pub(crate) async fn complete(activity: &Activity, start: Start<'_>, end: End<'_>) -> ActivityId {
    let open = activity.begin(start, Durability::Batched).await.unwrap();
    let id = open.id();
    open.finish(end, Durability::Written).await.unwrap();
    id
}

pub(crate) async fn list(activity: &Activity, pairs: &[(&str, &str)]) -> Page {
    let request = ListRequest::from_pairs(pairs.iter().copied()).unwrap();
    activity.page(request).await.unwrap()
}

pub(crate) fn filter(pairs: &[(&str, &str)]) -> Filter {
    Filter::from_pairs(pairs.iter().copied()).unwrap()
}

/// Copies the files as they are at this instant, which is what a crash would leave behind.
pub(crate) fn copy_files(from: &Path, to: &Path) {
    let target = to.join("data");
    std::fs::create_dir_all(&target).unwrap();
    // The journal first: what leaves it meanwhile is in the database by then.
    let files = JOURNAL
        .into_iter()
        .chain(["activity.db", "activity.db-wal"]);
    for file in files {
        std::fs::copy(from.join("data").join(file), target.join(file)).unwrap();
    }
}

/// What comes within a bearable time.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(DEADLINE, future).await;
    result.unwrap_or_else(|_| panic!("it never came"))
}

/// Waits until the condition holds; fails when it never does.
pub(crate) async fn eventually<F: Future<Output = bool>>(
    what: &str,
    mut condition: impl FnMut() -> F,
) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, waiting).await.is_ok();
    assert!(in_time, "waited in vain until {what}");
}
