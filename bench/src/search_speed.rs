//! How long the search takes and how much memory it needs with many tools.
//!
//! Repeats the tools of the retrieval sets under other server names until there are enough, since
//! real descriptions and real queries have the mix of common and rare words that made-up ones lack.

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use catalog::{Query, ServerTools, Snapshot, ToolDefinition};
use policy::ServerName;
use serde_json::value::RawValue;

use crate::proc::kilobytes;
use crate::retrieval::{RetrievalSet, sets_in};

const TOOLS: usize = 5_000;
const CHANGED: usize = 10;
const TOOLS_PER_SERVER: usize = 50;
const QUERIES: usize = 2_000;
const BUILDS: usize = 5;

pub(crate) fn run(directory: &Path) -> Result<()> {
    let (definitions, queries) = read(directory)?;
    let before = servers(&definitions)?;
    let tools: usize = before.iter().map(|server| server.tools.len()).sum();
    // The first build also brings the tables that are compiled in to memory, which is to be counted
    // as memory but not as time.
    let resident = resident_bytes();
    let snapshot = Snapshot::build(before.clone());
    let grown = resident_bytes()
        .zip(resident)
        .map(|(after, before)| after.saturating_sub(before));
    let build = fastest(|| Snapshot::build(before.clone()));
    let mut after = before.clone();
    change(&mut after)?;
    let rebuild = fastest(|| snapshot.rebuild(after.clone()));
    let mut times: Vec<Duration> = queries
        .iter()
        .cycle()
        .take(QUERIES)
        .map(|query| time(|| snapshot.search(&Query::new(query, 10))))
        .collect();
    times.sort_unstable();
    let percentile = |percent: usize| {
        times
            .get(times.len() * percent / 100)
            .copied()
            .unwrap_or_default()
    };

    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{tools} tools, {} servers, {QUERIES} queries",
        before.len()
    )?;
    writeln!(out, "build     {build:>10.1?}")?;
    writeln!(out, "rebuild   {rebuild:>10.1?}   {CHANGED} tools changed")?;
    writeln!(out, "query p50 {:>10.1?}", percentile(50))?;
    writeln!(out, "query p99 {:>10.1?}", percentile(99))?;
    match grown {
        Some(bytes) => writeln!(
            out,
            "index     {:>8} kB   index and tables, beside the definitions",
            bytes / 1024
        )?,
        None => writeln!(
            out,
            "index     unknown: this system does not tell how much memory is in use"
        )?,
    }
    Ok(())
}

fn read(directory: &Path) -> Result<(Vec<Box<RawValue>>, Vec<String>)> {
    let (mut definitions, mut queries) = (Vec::new(), Vec::new());
    for folder in sets_in(directory)? {
        let set = RetrievalSet::read(&folder)?;
        queries.extend(set.queries.into_iter().map(|query| query.query));
        let tools = set.servers.iter().flat_map(|server| server.tools.iter());
        definitions.extend(tools.map(|tool| tool.raw.clone()));
    }
    Ok((definitions, queries))
}

fn servers(definitions: &[Box<RawValue>]) -> Result<Vec<ServerTools>> {
    let all: Vec<_> = definitions.iter().cycle().take(TOOLS).collect();
    let numbered = all.chunks(TOOLS_PER_SERVER).enumerate();
    numbered
        .map(|(number, definitions)| {
            let server: ServerName = format!("server-{number}").parse()?;
            let tools = definitions
                .iter()
                .map(|raw| Ok(Arc::new(ToolDefinition::parse(&server, (*raw).clone())?)))
                .collect::<Result<_>>()?;
            Ok(ServerTools {
                server,
                tools,
                stale: false,
            })
        })
        .collect()
}

/// Gives the first tools of the first server another description.
fn change(servers: &mut [ServerTools]) -> Result<()> {
    let first = servers.first_mut().context("there are no tools")?;
    let mut tools = first.tools.to_vec();
    for tool in tools.iter_mut().take(CHANGED) {
        let mut definition: serde_json::Value = serde_json::from_str(tool.raw.get())?;
        definition["description"] = format!("{} Now faster.", tool.description).into();
        let raw = RawValue::from_string(definition.to_string())?;
        *tool = Arc::new(ToolDefinition::parse(&first.server, raw)?);
    }
    first.tools = tools.into();
    Ok(())
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    let result = work();
    let time = started.elapsed();
    drop(black_box(result));
    time
}

/// The fastest of a few times: everything that slows a run down comes from outside.
fn fastest<T>(work: impl Fn() -> T) -> Duration {
    let times = (0..BUILDS).map(|_| time(&work));
    times.min().unwrap_or_default()
}

/// The memory in use, on systems that say so in `/proc`.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = kilobytes(&status, "VmRSS:").ok()?;
    Some(kilobytes * 1024)
}
