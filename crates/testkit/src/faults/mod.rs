//! Every fault and every attack that the product must withstand, tried on the real binary.
//!
//! A case starts a daemon (`setup`), does something to it and ends with the same `invariants` as
//! every other. Cases are written by what must hold, one file for each family.

mod case;
mod clock;
mod display;
mod envelopes;
mod hostile;
mod invariants;
mod kills;
mod life;
mod log;
mod machine;
mod network;
mod others;
mod people;
mod proxy;
mod random;
mod relay;
mod retention;
mod scale;
mod secrets;
mod settings;
mod setup;
mod sizes;
mod soak;
mod streams;
mod table;
mod upstreams;
mod web;
mod wire;

use std::io::Write;

use futures_util::{StreamExt, stream};

use self::case::{Case, Row};

/// Cases at the same time; most of them wait most of the time.
const AT_ONCE: usize = 3;

/// What to run.
#[derive(Debug, clap::Parser)]
pub struct Arguments {
    /// Only the cases with these ids, such as R7.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only attacks and findings.
    #[arg(long, conflicts_with = "faults")]
    attacks: bool,
    /// Only faults.
    #[arg(long)]
    faults: bool,
    /// Mixed load with random faults for this many seconds, instead of the cases.
    #[arg(long)]
    soak: Option<u64>,
    /// How often R21 kills the daemon.
    #[arg(long)]
    kills: Option<u64>,
    /// Cases at the same time.
    #[arg(long, default_value_t = AT_ONCE)]
    jobs: usize,
    /// Does not try a case again that failed.
    #[arg(long)]
    once: bool,
}

impl Arguments {
    /// The cases to run: those that are asked for, and those that show them.
    fn choose(&self, all: Vec<Case>) -> Vec<Case> {
        let asked = |case: &Case| {
            let is_fault = case.id.starts_with('R');
            let by_fault = case.shown_by.iter().any(|id| id.starts_with('R'));
            let named = self.only.is_empty() || self.only.iter().any(|id| id == case.id);
            named && !(self.attacks && (is_fault || by_fault)) && (!self.faults || is_fault)
        };
        let mut ids: Vec<&str> = Vec::new();
        for case in all.iter().filter(|case| asked(case)) {
            ids.push(case.id);
            ids.extend(case.shown_by);
        }
        all.into_iter()
            .filter(|case| ids.contains(&case.id))
            .collect()
    }
}

/// Runs what is wanted and prints the table; whether all of it passed.
pub async fn run(arguments: Arguments) -> anyhow::Result<bool> {
    case::keep_panics();
    if let Some(kills) = arguments.kills {
        kills::ROUNDS.get_or_init(|| kills);
    }
    if let Some(seconds) = arguments.soak {
        let passed = soak::run(seconds).await?;
        return Ok(passed || (!arguments.once && soak::run(seconds).await?));
    }
    let cases = arguments.choose(all());
    anyhow::ensure!(!cases.is_empty(), "no case is called that");
    let (shown, cases): (Vec<_>, Vec<_>) = cases
        .into_iter()
        .partition(|case| !case.shown_by.is_empty());
    let (alone, together): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.alone);
    let mut rows = run_all(together, arguments.jobs).await?;
    rows.extend(run_all(alone, 1).await?);
    if !arguments.once {
        try_again(&mut rows).await?;
    }
    let shown: Vec<_> = shown.iter().map(|case| case.row_among(&rows)).collect();
    rows.extend(shown);
    rows.sort_by_key(|row| order(row.id));
    writeln!(std::io::stdout(), "{}", table::of(&rows))?;
    Ok(!rows.iter().any(Row::failed))
}

/// Runs what failed once more, with nothing beside it. The table tells what passed only then.
async fn try_again(rows: &mut [Row]) -> anyhow::Result<()> {
    let failed: Vec<_> = rows.iter_mut().filter(|row| row.failed()).collect();
    let ids: Vec<_> = failed.iter().map(|row| row.id).collect();
    let again = all().into_iter().filter(|case| ids.contains(&case.id));
    let second = run_all(again.collect(), 1).await?;
    for first in failed {
        let Some(second) = second.iter().find(|second| second.id == first.id) else {
            continue;
        };
        if let (Err(why), Ok(report)) = (&first.outcome, &second.outcome) {
            let mut report = report.clone();
            let why = why.lines().next().unwrap_or_default();
            report.figures.push(format!("FLAKY, the first try: {why}"));
            first.outcome = Ok(report);
        }
    }
    Ok(())
}

async fn run_all(cases: Vec<Case>, at_once: usize) -> anyhow::Result<Vec<Row>> {
    let mut running = stream::iter(cases.into_iter().map(Case::run)).buffer_unordered(at_once);
    let mut rows = Vec::new();
    while let Some(row) = running.next().await {
        writeln!(std::io::stderr(), "{}", table::progress(&row))?;
        rows.push(row);
    }
    Ok(rows)
}

fn all() -> Vec<Case> {
    let families = [
        upstreams::cases(),
        network::cases(),
        kills::cases(),
        log::cases(),
        settings::cases(),
        scale::cases(),
        life::cases(),
        hostile::cases(),
        display::cases(),
        web::cases(),
        people::cases(),
        secrets::cases(),
        sizes::cases(),
        envelopes::cases(),
        retention::cases(),
        others::cases(),
        streams::cases(),
        relay::cases(),
    ];
    families.into_iter().flatten().collect()
}

/// The place of a row in the table: faults, threats, findings, other attacks, each by number.
fn order(id: &str) -> (usize, u32, String) {
    let digits: String = id.chars().filter(char::is_ascii_digit).collect();
    let group = id.chars().next().and_then(|letter| "RTFX".find(letter));
    (
        group.unwrap_or(9),
        digits.parse().unwrap_or(0),
        id.to_owned(),
    )
}
