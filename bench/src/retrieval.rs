//! How well the catalog's search finds the tool that a query was written for.
//!
//! Reads sets of queries with known answers, one folder each, and prints the usual measures, then
//! those that are published for other systems with ours beside them.

mod measures;
mod published;
mod set;

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use catalog::Snapshot;

use self::measures::Measures;
pub(crate) use self::set::RetrievalSet;

pub(crate) fn run(directory: &Path) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:<16} {:>5} {:>7}   {:>4}  {:>4}  {:>4}  {:>4}   {:>3} {:>7} {:>7} {:>9} {:>7}",
        "set",
        "tools",
        "queries",
        "R@1",
        "R@3",
        "R@5",
        "R@10",
        "MRR",
        "nDCG@10",
        "hits",
        "build",
        "query"
    )?;
    let mut all = HashMap::new();
    for folder in sets_in(directory)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut set = RetrievalSet::read(&folder)?;
        let servers = std::mem::take(&mut set.servers);
        let started = Instant::now();
        let snapshot = Snapshot::build(servers);
        let build_time = started.elapsed();
        let started = Instant::now();
        let (measures, hits) = set.measure(&snapshot);
        let query_time = started.elapsed() / u32::try_from(set.queries.len().max(1))?;
        writeln!(
            out,
            "{name:<16} {:>5} {:>7}  {measures} {hits:>7.1} {:>7.1}ms {:>5}µs",
            snapshot.len(),
            set.queries.len(),
            build_time.as_secs_f64() * 1000.0,
            query_time.as_micros(),
        )?;
        all.insert(name.into_owned(), measures);
    }
    let mean = Measures::mean(&all.values().copied().collect::<Vec<_>>());
    writeln!(out, "{:<30}  {mean}", "mean")?;
    let [golden, azure, livemcp] = published::SETS.map(|set| all.get(set).copied());
    if let (Some(golden), Some(azure), Some(livemcp)) = (golden, azure, livemcp) {
        published::write(&mut out, &[golden, azure, livemcp])?;
    }
    Ok(())
}

pub(crate) fn sets_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut folders = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    folders.retain(|folder| folder.join("queries.jsonl").is_file());
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R@5 and nDCG@10 that no change to the ranking may fall below: what was reached, less about
    /// one query in a hundred, so that a change for the better elsewhere is not held up by noise.
    const FLOORS: &[(&str, f64, f64)] = &[
        ("azure_mcp", 0.981, 0.939),
        ("bfcl_live", 0.600, 0.497),
        ("livemcp_steps", 0.737, 0.651),
        ("mcpproxy_golden", 0.923, 0.880),
        ("toole", 0.750, 0.677),
    ];

    #[test]
    fn no_set_falls_below_its_floor() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/retrieval");
        if !directory.is_dir() {
            println!("skipped: the sets are not at {}", directory.display());
            return;
        }
        for (name, recall, ndcg) in FLOORS {
            let mut set = RetrievalSet::read(&directory.join(name)).unwrap();
            let snapshot = Snapshot::build(std::mem::take(&mut set.servers));
            let (measures, _) = set.measure(&snapshot);
            assert!(measures.recall_at_5() >= *recall, "{name}: {measures:?}");
            assert!(measures.ndcg >= *ndcg, "{name}: {measures:?}");
        }
    }
}
