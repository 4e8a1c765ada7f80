//! What the log costs a call, and what questions cost a large log.
//!
//! `cargo bench -p activity` measures on 20,000 records; `ACTIVITY_BENCH_RECORDS=1000000` on as
//! many as that, kept in the temporary directory for the next run.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be set up has nothing better to do than to stop"
)]

use std::path::PathBuf;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use activity::sqlite::{SqliteOptions, SqliteStore};
use activity::{
    Activity, ActivityId, ActivityStore, Durability, End, ExportFormat, ExportRequest, Facts,
    Filter, Given, GroupBy, ListRequest, Metadata, Outcome, Payloads, Period, PruneStep,
    RecordType, RecordedIntent, RetentionPolicy, Settings, Source, Start,
};
use divan::{Bencher, black_box};
use jiff::{SignedDuration, Timestamp};
use policy::{DataSensitivity, OperationType, Provenance, Tier};
use redact::Redactor;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
static LARGE: LazyLock<Large> = LazyLock::new(Large::open);

/// A log with many records, spread over the last thirty days.
struct Large {
    activity: Activity,
    middle: ActivityId,
}

fn main() {
    divan::main();
}

fn settings() -> Settings {
    let secrets = ["a-configured-secret", "another-configured-secret"];
    let redactor = Redactor::new(secrets).expect("a redactor");
    Settings {
        redactor,
        max_response_bytes: 65_536,
        max_argument_bytes: 65_536,
        payloads: Payloads::Full,
    }
}

fn start(number: u64, texts: &Texts) -> Start<'_> {
    let operation = OperationType::ALL[usize::try_from(number % 10).unwrap_or(0).min(2)];
    Start {
        server_name: Some(&texts.server),
        tool_name: Some(&texts.tool),
        arguments: Some(&texts.arguments),
        request_bytes: 180,
        session_id: Some(&texts.session),
        client_name: Some(if number.is_multiple_of(3) {
            "cursor"
        } else {
            "claude-code"
        }),
        request_id: Some(&texts.request),
        metadata: Metadata {
            intent: Some(RecordedIntent {
                operation_type: Some(operation),
                data_sensitivity: number.is_multiple_of(5).then_some(DataSensitivity::Private),
                reason: Some("the user asked for it".to_owned()),
            }),
            tool_variant: Some(operation.variant()),
            effective_tier: Some(Tier::ReadOnly),
            provenance: Some(Provenance::Declared),
            warnings: Vec::new(),
            facts: Some(Facts {
                declared_tier: Some(Tier::ReadOnly),
                audited_tier: Some(Tier::ReadOnly),
                pinned: None,
                hold: None,
                lane_chosen: true,
                intent_given: true,
                operation_type: Given::Understood,
                data_sensitivity: Given::Absent,
            }),
        },
        ..Start::new(RecordType::ToolCall, Source::Mcp)
    }
}

struct Texts {
    server: String,
    tool: String,
    arguments: String,
    session: String,
    request: String,
}

impl Texts {
    fn of(number: u64) -> Self {
        Self {
            server: format!("server-{}", number % 97 % 12),
            tool: format!("tool_{}", number % 97),
            arguments: format!(
                r#"{{"path":"/home/user/project/src/file-{}.rs","limit":{}}}"#,
                number % 5_000,
                number % 50
            ),
            session: format!("session-{}", number / 200),
            request: format!("request-{number}"),
        }
    }
}

const RESPONSE: &str = r#"{"content":[{"type":"text","text":"line one\nline two\nline three"}]}"#;

fn end<'a>(number: u64) -> End<'a> {
    let outcome = match number % 40 {
        0 => Outcome::Error {
            code: "UPSTREAM_ERROR",
            message: "the upstream said no",
        },
        1 => Outcome::Blocked {
            code: "SERVER_MISMATCH",
            message: "use call_tool_write",
        },
        _ => Outcome::Success,
    };
    let duration = Duration::from_millis(number % 300);
    End {
        outcome,
        duration,
        response: Some(RESPONSE),
        response_bytes: 69,
    }
}

impl Large {
    fn open() -> Self {
        let records: u64 = std::env::var("ACTIVITY_BENCH_RECORDS")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(20_000);
        let directory: PathBuf =
            std::env::temp_dir().join(format!("mcpproxy-activity-bench-{records}"));
        let options = SqliteOptions {
            directory,
            max_file_bytes: None,
        };
        let store = Arc::new(SqliteStore::open(&options).expect("a store").store);
        let activity = Activity::new(Arc::clone(&store) as _, settings());
        RUNTIME.block_on(async {
            let held = activity
                .page(ListRequest::default())
                .await
                .expect("a page")
                .total;
            if held == 0 {
                fill(store, records).await;
            }
            let offset = (records / 2).to_string();
            let request = ListRequest::from_pairs([("offset", offset.as_str()), ("limit", "1")]);
            let page = activity
                .page(request.expect("a request"))
                .await
                .expect("a page");
            let middle = page.activities[0].id;
            Self { activity, middle }
        })
    }
}

/// Fills the log as if its records had come evenly over thirty days.
async fn fill(store: Arc<SqliteStore>, records: u64) {
    let past = Activity::with_clock(store, settings(), past_clock);
    let (now, month) = (Timestamp::now(), Period::Month.length().as_millis());
    for number in 0..records {
        let back = month * i128::from(records - number) / i128::from(records);
        let back = SignedDuration::from_millis_i128(back);
        let time = now.saturating_sub(back).expect("a time");
        CLOCK.store(time.as_millisecond(), Relaxed);
        let texts = Texts::of(number);
        let recorded = past
            .record(start(number, &texts), end(number), Durability::Batched)
            .await;
        recorded.expect("a record");
    }
    past.usage(Period::Day)
        .await
        .expect("everything is derived");
}

static CLOCK: AtomicI64 = AtomicI64::new(0);

fn past_clock() -> Timestamp {
    Timestamp::from_millisecond(CLOCK.load(Relaxed)).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn fresh() -> (tempfile::TempDir, Activity) {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("data");
    let options = SqliteOptions {
        directory,
        max_file_bytes: None,
    };
    let store = SqliteStore::open(&options).expect("a store").store;
    (folder, Activity::new(Arc::new(store), settings()))
}

/// A read: its start and its end ride the next batch.
#[divan::bench(sample_count = 50, sample_size = 100)]
fn read_call_caller_side(bencher: Bencher<'_, '_>) {
    let (_folder, activity) = fresh();
    let texts = Texts::of(7);
    bencher.bench_local(|| {
        RUNTIME.block_on(async {
            let open = activity.begin(start(7, &texts), Durability::Batched).await;
            let open = open.expect("a start");
            open.finish(end(7), Durability::Batched)
                .await
                .expect("an end");
        });
    });
}

/// A read whose end is stored before its caller is answered.
#[divan::bench(sample_count = 50, sample_size = 20)]
fn read_call_written(bencher: Bencher<'_, '_>) {
    let (_folder, activity) = fresh();
    let texts = Texts::of(7);
    bencher.bench_local(|| {
        RUNTIME.block_on(async {
            let open = activity.begin(start(7, &texts), Durability::Batched).await;
            let open = open.expect("a start");
            open.finish(end(7), Durability::Written)
                .await
                .expect("an end");
        });
    });
}

/// A write: its start is on the disk before it is sent.
#[divan::bench(sample_count = 50, sample_size = 5)]
fn write_call_durable_start(bencher: Bencher<'_, '_>) {
    let (_folder, activity) = fresh();
    let texts = Texts::of(7);
    bencher.bench_local(|| {
        RUNTIME.block_on(async {
            let open = activity.begin(start(7, &texts), Durability::Durable).await;
            let open = open.expect("a start");
            open.finish(end(7), Durability::Batched)
                .await
                .expect("an end");
        });
    });
}

#[divan::bench(sample_count = 30, args = [
    "", "type=tool_call", "type=system", "server=server-3", "server=nobody", "tool=tool_42",
    "status=success", "status=error", "status=pending", "intent_type=read",
    "intent_type=destructive", "sensitivity=private", "session_id=session-40",
    "request_id=request-777", "source=mcp", "source=cli", "client=cursor",
    "start_time=2001-01-01T00:00:00Z", "end_time=2100-01-01T00:00:00Z", "q=tool", "q=file",
    "q=upstream", "q=4242", "q=absent", "q=proj*", "offset=5000",
])]
fn list(bencher: Bencher<'_, '_>, filter: &str) {
    let large = &*LARGE;
    let pairs: Vec<_> = filter.split_once('=').into_iter().collect();
    let request = ListRequest::from_pairs(pairs).expect("a request");
    bencher.bench_local(|| {
        RUNTIME
            .block_on(large.activity.page(black_box(request.clone())))
            .expect("a page")
    });
}

#[divan::bench(sample_count = 50)]
fn show(bencher: Bencher<'_, '_>) {
    let large = &*LARGE;
    bencher.bench_local(|| RUNTIME.block_on(large.activity.get(black_box(large.middle))));
}

#[divan::bench(sample_count = 20, args = ["1h", "24h", "7d", "30d"])]
fn summary(bencher: Bencher<'_, '_>, period: &str) {
    let large = &*LARGE;
    let period = Period::parse(period).expect("a period");
    bencher.bench_local(|| RUNTIME.block_on(large.activity.summary(period, GroupBy::Tool)));
}

#[divan::bench(sample_count = 10)]
fn usage(bencher: Bencher<'_, '_>) {
    let large = &*LARGE;
    bencher.bench_local(|| RUNTIME.block_on(large.activity.usage(Period::Month)));
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn export_100_000(bencher: Bencher<'_, '_>) {
    let large = &*LARGE;
    bencher.bench_local(|| {
        RUNTIME.block_on(async {
            let mut export = large.activity.export(ExportRequest {
                filter: Filter::default(),
                format: ExportFormat::JsonLines,
                include_bodies: true,
                limit: Some(100_000),
            });
            let mut bytes = 0;
            while let Some(chunk) = export.next_chunk().await.expect("a chunk") {
                bytes += chunk.len();
            }
            bytes
        })
    });
}

/// One slice of forgetting: the longest that pruning makes a call wait.
#[divan::bench(sample_count = 60, sample_size = 1)]
fn prune_slice(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("data");
    let options = SqliteOptions {
        directory,
        max_file_bytes: None,
    };
    let store = Arc::new(SqliteStore::open(&options).expect("a store").store);
    RUNTIME.block_on(fill(Arc::clone(&store), 5_000));
    let policy = RetentionPolicy {
        max_count: Some(0),
        ..RetentionPolicy::default()
    };
    bencher.bench_local(|| {
        let step = RUNTIME.block_on(store.prune_step(policy, Timestamp::now()));
        assert!(matches!(step, Ok(PruneStep::Removed(1..))), "{step:?}");
    });
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn verify(bencher: Bencher<'_, '_>) {
    let large = &*LARGE;
    bencher.bench_local(|| RUNTIME.block_on(large.activity.verify(None)));
}
