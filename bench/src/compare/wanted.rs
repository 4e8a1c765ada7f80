//! The ratios that mcpproxy is to keep, and whether it does.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use super::case::{Case, Cores, Upstream};
use super::paths::MCPPROXY;
use super::row::{Ratios, Row};
use super::table::spread;
use crate::load::Spread;
use crate::tool::{Lane, Size};

enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

struct Wanted {
    what: &'static str,
    ratio: fn(&Ratios) -> Option<Spread>,
    bound: Bound,
    applies: fn(&Case) -> bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    what: &'static str,
    case: Case,
    wanted: String,
    measured: Option<Spread>,
    kept: Option<bool>,
}

const WANTED: [Wanted; 5] = [
    Wanted {
        what: "added p50 / floor's",
        ratio: |ratios| ratios.added_p50,
        bound: Bound::AtMost(1.5),
        applies: |case| small(case) && case.clients == 1 && case.cores == Cores::One,
    },
    Wanted {
        what: "calls/s / floor's",
        ratio: |ratios| ratios.calls_per_second,
        bound: Bound::AtLeast(0.7),
        applies: |case| small(case) && case.clients == 16,
    },
    Wanted {
        what: "CPU / floor's",
        ratio: |ratios| ratios.cpu,
        bound: Bound::AtMost(1.8),
        applies: |case| small(case) && case.clients == 16,
    },
    Wanted {
        what: "p99 / floor's",
        ratio: |ratios| ratios.p99,
        bound: Bound::AtMost(2.0),
        applies: |case| {
            let http = case.upstream == Upstream::Http;
            http && small(case) && case.clients == 1 && case.cores == Cores::One
        },
    },
    Wanted {
        what: "p50 / floor's",
        ratio: |ratios| ratios.p50,
        bound: Bound::AtMost(1.2),
        applies: |case| case.size != Size::Small && case.clients == 1,
    },
];

fn small(case: &Case) -> bool {
    case.size == Size::Small && case.lane == Lane::Read
}

/// What became of each wanted ratio in the cases that were measured.
pub(super) fn outcomes(rows: &[Row]) -> Vec<Outcome> {
    let of_wanted = |wanted: &'static Wanted| {
        rows.iter()
            .filter(|row| row.path == MCPPROXY && (wanted.applies)(&row.case))
            .map(|row| wanted.outcome(row))
    };
    WANTED.iter().flat_map(of_wanted).collect()
}

pub(super) fn print(outcomes: &[Outcome]) -> Result<()> {
    if outcomes.is_empty() {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\nmcpproxy's ratios, median of the rounds (min..max)\n{:<20} {:<48} {:>8}   {:<22}",
        "ratio", "case", "wanted", "measured"
    )?;
    for outcome in outcomes {
        let verdict = match outcome.kept {
            Some(true) => "kept",
            Some(false) => "missed",
            None => "not measured",
        };
        writeln!(
            out,
            "{:<20} {:<48} {:>8}   {:<22} {verdict}",
            outcome.what,
            outcome.case.to_string(),
            outcome.wanted,
            spread(outcome.measured),
        )?;
    }
    Ok(())
}

// === impl Wanted ===

impl Wanted {
    fn outcome(&self, row: &Row) -> Outcome {
        let measured = (self.ratio)(&row.ratios);
        let (wanted, kept) = match self.bound {
            Bound::AtMost(most) => (format!("<= {most}"), measured.map(|it| it.median <= most)),
            Bound::AtLeast(least) => (format!(">= {least}"), measured.map(|it| it.median >= least)),
        };
        Outcome {
            what: self.what,
            case: row.case,
            wanted,
            measured,
            kept,
        }
    }
}
