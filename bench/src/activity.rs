//! `bench activity [--records N]`: what the activity log costs a call, and what questions cost a
//! large log. The log is filled through the crate, as the daemon does it, and removed at the end.
//! With `--records 0` only the calls are measured.

pub(crate) mod fill;
mod memory;

use std::fs::File;
use std::hint::black_box;
use std::io::{Write, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use activity::sqlite::{SqliteOptions, SqliteStore};
use activity::{
    Activity, ActivityId, Durability, ExportFormat, ExportRequest, Filter, GroupBy, ListRequest,
    Period,
};
use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;

use fill::{Call, settings};

const DEFAULT_RECORDS: u64 = 1_000_000;
const REPETITIONS: usize = 31;
const EXPORTED: [u64; 2] = [10_000, 100_000];

const READ_CALLS: u64 = 100_000;
const READ_CLIENTS: u64 = 64;
const READ_ROUNDS: usize = 7;
const WRITE_CALLS: usize = 300;

/// One of each filter, with values that match many records, few and none.
const FILTERS: [&str; 23] = [
    "",
    "type=tool_call",
    "type=system",
    "server=server-3",
    "server=nobody",
    "tool=tool_42",
    "status=success",
    "status=error",
    "status=pending",
    "intent_type=read",
    "intent_type=destructive",
    "sensitivity=private",
    "session_id=session-40",
    "request_id=request-777",
    "source=mcp",
    "source=cli",
    "client=cursor",
    "start_time=2001-01-01T00:00:00Z",
    "end_time=2100-01-01T00:00:00Z",
    "q=file",
    "q=absent",
    "q=4242",
    "offset=5000",
];

pub(crate) fn run(options: &[&str]) -> Result<()> {
    let records = match options {
        [] => DEFAULT_RECORDS,
        ["--records", number] => number.parse().context("--records takes a number")?,
        _ => bail!("usage: bench activity [--records N]"),
    };
    let folder = tempfile::Builder::new()
        .prefix("mcpproxy-bench")
        .tempdir()?;
    Runtime::new()?.block_on(async {
        // First, while the disk is not yet busy with a million records.
        reads(&folder.path().join("reads")).await?;
        writes(folder.path()).await?;
        if records > 0 {
            large(&folder.path().join("large"), records).await?;
        }
        anyhow::Ok(())
    })
}

async fn large(directory: &Path, records: u64) -> Result<()> {
    let store = open(directory)?;
    let began = Instant::now();
    fill::fill(&store, records).await?;
    let took = began.elapsed();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = records as f64 / took.as_secs_f64();
    writeln!(
        stdout(),
        "\n{records} records, filled in {took:.1?} ({rate:.0} a second)"
    )?;
    let activity = Activity::new(store, settings()?);
    questions(&activity, records).await?;
    exports(&activity).await?;
    activity.close().await?;
    Ok(())
}

pub(crate) fn open(directory: &Path) -> Result<Arc<SqliteStore>> {
    let options = SqliteOptions {
        directory: directory.to_owned(),
        max_file_bytes: None,
    };
    Ok(Arc::new(SqliteStore::open(&options)?.store))
}

async fn questions(activity: &Activity, records: u64) -> Result<()> {
    writeln!(
        stdout(),
        "\nlist, 50 records a page (target: p50 under 20 ms)"
    )?;
    for filter in FILTERS {
        let pairs: Vec<_> = filter.split_once('=').into_iter().collect();
        let request = ListRequest::from_pairs(pairs)?;
        let p50 = p50(async || {
            activity.page(request.clone()).await?;
            Ok(())
        })
        .await?;
        writeln!(stdout(), "  {filter:<32} {p50:>10.2?}")?;
    }
    let middle = middle(activity, records).await?;
    let show = p50(async || {
        activity.get(middle).await?.context("the record is there")?;
        Ok(())
    })
    .await?;
    writeln!(
        stdout(),
        "\nshow (target: under 2 ms)\n  {:<32} {show:>10.2?}",
        ""
    )?;
    writeln!(stdout(), "\nsummary of 24 h (target: under 200 ms)")?;
    for by in ["server", "tool", "status", "intent_type", "client", "hour"] {
        let group_by = GroupBy::parse(by)?;
        let p50 = p50(async || {
            activity.summary(Period::Day, group_by).await?;
            Ok(())
        })
        .await?;
        writeln!(stdout(), "  by {by:<29} {p50:>10.2?}")?;
    }
    Ok(())
}

async fn middle(activity: &Activity, records: u64) -> Result<ActivityId> {
    let offset = (records / 2).to_string();
    let request = ListRequest::from_pairs([("offset", offset.as_str()), ("limit", "1")])?;
    let page = activity.page(request).await?;
    let record = page.activities.first().context("a record in the middle")?;
    Ok(record.id)
}

/// The more is exported, the longer it takes; memory stays where it is.
async fn exports(activity: &Activity) -> Result<()> {
    writeln!(
        stdout(),
        "\nexport as JSON lines, bodies included (target: memory does not grow)"
    )?;
    for limit in EXPORTED {
        let before = memory::used()?;
        let mut peak = before;
        let began = Instant::now();
        let mut export = activity.export(ExportRequest {
            filter: Filter::default(),
            format: ExportFormat::JsonLines,
            include_bodies: true,
            limit: Some(limit),
        });
        let mut bytes = 0;
        while let Some(chunk) = export.next_chunk().await? {
            bytes += chunk.len();
            peak = peak.max(memory::used()?);
        }
        writeln!(
            stdout(),
            "  {:<10} records, {:>4} MB in {:>8.2?}, peak {:>5} kB above {before} kB",
            export.written(),
            bytes / 1_000_000,
            began.elapsed(),
            peak - before,
        )?;
    }
    Ok(())
}

/// Reads as the daemon records them, beside the same calls with no log at all: the start rides
/// along, the end is in the journal before the answer. In turns, because a machine is not as fast
/// in one second as in the next.
async fn reads(directory: &Path) -> Result<()> {
    let activity = Activity::new(open(directory)?, settings()?);
    let mut rounds = Vec::new();
    for _ in 0..READ_ROUNDS {
        let without = drive_reads(None).await?;
        let with = drive_reads(Some(&activity)).await?;
        rounds.push(PerCall {
            callers: with.callers.saturating_sub(without.callers),
            ..with
        });
    }
    activity.close().await?;
    writeln!(
        stdout(),
        "read calls, begin and finish, {READ_CLIENTS} at once, {READ_ROUNDS} rounds \
         (target: at most 15 µs of CPU more)\n  \
         {:<32} {:>10} {:>10} {:>10}",
        "",
        "median",
        "least",
        "most"
    )?;
    let print = |title, of: fn(&PerCall) -> Duration| {
        let mut times: Vec<_> = rounds.iter().map(of).collect();
        times.sort_unstable();
        let (least, most) = (times.first().copied(), times.last().copied());
        writeln!(
            stdout(),
            "  {title:<32} {:>10.2?} {:>10.2?} {:>10.2?}",
            median(times),
            least.unwrap_or_default(),
            most.unwrap_or_default(),
        )
    };
    print("more for the callers", |round| round.callers)?;
    print("more for the log's thread", |round| round.log)?;
    print("more together", |round| round.callers + round.log)?;
    print("time per call", |round| round.time)?;
    Ok(())
}

/// What one call took.
struct PerCall {
    callers: Duration,
    log: Duration,
    time: Duration,
}

async fn drive_reads(activity: Option<&Activity>) -> Result<PerCall> {
    let calls_of = |client| {
        let numbers = 0..READ_CALLS / READ_CLIENTS;
        let calls = numbers.map(|number| Call::new(client * READ_CALLS + number));
        calls.collect::<Vec<_>>()
    };
    let calls: Vec<_> = (0..READ_CLIENTS).map(calls_of).collect();
    let (began, cpu) = (Instant::now(), memory::cpu_time()?);
    let mut clients = tokio::task::JoinSet::new();
    for calls in calls {
        let activity = activity.cloned();
        clients.spawn(async move {
            for call in &calls {
                let (start, end) = (black_box(call.start()), black_box(call.end()));
                if let Some(activity) = &activity {
                    let open = activity.begin(start, Durability::Batched).await?;
                    open.finish(end, Durability::Written).await?;
                }
            }
            anyhow::Ok(())
        });
    }
    for outcome in clients.join_all().await {
        outcome?;
    }
    let time = began.elapsed();
    if let Some(activity) = activity {
        // What the calls left to be stored, indexed and summed up is part of what they cost.
        activity.usage(Period::Day).await?;
    }
    let after = memory::cpu_time()?;
    let calls = u32::try_from(READ_CALLS / READ_CLIENTS * READ_CLIENTS)?;
    let (all, log) = (after.0.saturating_sub(cpu.0), after.1.saturating_sub(cpu.1));
    Ok(PerCall {
        callers: all.saturating_sub(log) / calls,
        log: log / calls,
        time: time / calls,
    })
}

/// Writes one after the other, beside what a plain file needs to reach the disk.
async fn writes(folder: &Path) -> Result<()> {
    let activity = Activity::new(open(&folder.join("writes"))?, settings()?);
    let (mut begins, mut finishes, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    let mut file = File::create(folder.join("plain"))?;
    for number in 0..WRITE_CALLS {
        let call = Call::new(number as u64);
        let began = Instant::now();
        let open = activity.begin(call.start(), Durability::Durable).await?;
        begins.push(began.elapsed());
        let began = Instant::now();
        open.finish(call.end(), Durability::Written).await?;
        finishes.push(began.elapsed());
        let began = Instant::now();
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        plain.push(began.elapsed());
    }
    writeln!(
        stdout(),
        "\nwrite calls, one at a time, p50 (target: one commit)\n  \
         start on the disk                {:>10.2?}\n  \
         end stored                       {:>10.2?}\n  \
         for comparison: 4 kB and a sync  {:>10.2?}",
        median(begins),
        median(finishes),
        median(plain)
    )?;
    activity.close().await?;
    Ok(())
}

async fn p50(mut question: impl AsyncFnMut() -> Result<()>) -> Result<Duration> {
    // The first answer reads the pages that the others find in memory.
    question().await?;
    let mut times = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        let began = Instant::now();
        question().await?;
        times.push(began.elapsed());
    }
    Ok(median(times))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
