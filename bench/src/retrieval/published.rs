//! What the README of the sets says other systems reach, to stand beside our own figures.

use std::io::Write;

use anyhow::Result;

use super::measures::Measures;

/// The sets for which there are figures, in the order of the columns.
pub(crate) const SETS: [&str; 3] = ["mcpproxy_golden", "azure_mcp", "livemcp_steps"];

/// R@5 and nDCG@10 on each of [`SETS`].
const SYSTEMS: [(&str, [(f64, f64); SETS.len()]); 6] = [
    (
        "the reference product",
        [(0.688, 0.616), (0.976, 0.911), (0.604, 0.553)],
    ),
    (
        "BM25, plain",
        [(0.670, 0.607), (0.957, 0.887), (0.582, 0.516)],
    ),
    (
        "BM25, split and stemmed",
        [(0.770, 0.707), (0.970, 0.891), (0.648, 0.580)],
    ),
    ("BM25F+", [(0.823, 0.734), (0.983, 0.912), (0.692, 0.614)]),
    (
        "BM25F+ and a static table",
        [(0.911, 0.798), (0.984, 0.921), (0.714, 0.642)],
    ),
    (
        "BM25F+ and all-MiniLM-L6-v2",
        [(0.915, 0.846), (0.992, 0.947), (0.747, 0.670)],
    ),
];

/// Writes the published table with `ours`, the measures on [`SETS`], as its last row.
pub(crate) fn write(out: &mut impl Write, ours: &[Measures; SETS.len()]) -> Result<()> {
    write!(out, "\n{:<28}", "R@5 / nDCG@10")?;
    for column in SETS.iter().chain(&["mean"]) {
        write!(out, "{column:>17}")?;
    }
    writeln!(out)?;
    for (system, figures) in SYSTEMS {
        write_row(out, system, figures)?;
    }
    let ours = ours.map(|measures| (measures.recall_at_5(), measures.ndcg));
    write_row(out, "this search", ours)
}

fn write_row(out: &mut impl Write, system: &str, figures: [(f64, f64); SETS.len()]) -> Result<()> {
    #[expect(clippy::cast_precision_loss, reason = "a handful of sets")]
    let mean =
        |part: fn(&(f64, f64)) -> f64| figures.iter().map(part).sum::<f64>() / SETS.len() as f64;
    write!(out, "{system:<28}")?;
    for (recall, ndcg) in figures
        .iter()
        .chain(&[(mean(|both| both.0), mean(|both| both.1))])
    {
        write!(out, "{:>17}", format!("{recall:.3} / {ndcg:.3}"))?;
    }
    writeln!(out)?;
    Ok(())
}
