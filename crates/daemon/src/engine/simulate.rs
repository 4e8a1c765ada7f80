//! Recorded calls replayed under a changed config: what would have been refused, warned about or
//! allowed instead.

use std::collections::BTreeMap;

use activity::{ActivityId, Cursor, Filter, StoreError};
use config::Config;
use policy::{Code, ToolId};
use serde::Serialize;
use utoipa::ToSchema;

use super::Engine;
use super::redecide::{Redecided, Verdict, message, redecide};

/// Records that are read at once.
const CHUNK: u32 = 500;
/// Examples of each kind of change; the newest are shown.
const EXAMPLES: usize = 3;

/// What another config would have changed.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Simulation {
    /// Calls that were decided again.
    pub calls: u64,
    /// Calls that could not be, because they named no tool or are from before that was recorded.
    pub not_decided: u64,
    pub unchanged: u64,
    pub refused: u64,
    pub warned: u64,
    pub allowed: u64,
    /// The tools for which something would have changed, by name.
    pub tools: Vec<ToolSimulation>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolSimulation {
    #[schema(value_type = String)]
    pub tool: ToolId,
    /// All calls of the tool, changed or not.
    pub calls: u64,
    pub changes: Vec<SimulatedChange>,
}

/// Calls of a tool that would have ended otherwise, all in the same way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SimulatedChange {
    /// `allowed`, `warned` or `refused`, then and instead.
    pub from: &'static str,
    #[schema(value_type = Option<String>)]
    pub from_code: Option<Code>,
    pub to: &'static str,
    #[schema(value_type = Option<String>)]
    pub to_code: Option<Code>,
    pub calls: u64,
    /// What the newest of them would have been told.
    pub message: Option<String>,
    #[schema(value_type = Vec<String>)]
    pub examples: Vec<ActivityId>,
}

#[derive(Debug, Default)]
struct Tally {
    calls: u64,
    changes: Vec<SimulatedChange>,
}

impl Engine {
    /// Replays every matching call under `config`, the newest first.
    pub(crate) async fn simulate(
        &self,
        filter: &Filter,
        config: &Config,
    ) -> Result<Simulation, StoreError> {
        let mut simulation = Simulation::default();
        let mut tallies: BTreeMap<ToolId, Tally> = BTreeMap::new();
        let mut after = None;
        loop {
            let records = self.activity.scan(filter.clone(), after, CHUNK).await?;
            for record in records
                .iter()
                .filter(|record| record.metadata.tool_variant.is_some())
            {
                match redecide(record, config) {
                    Some(replayed) => {
                        let tally = tallies.entry(replayed.tool.clone()).or_default();
                        simulation.count(record.id, &replayed, tally);
                    }
                    None => simulation.not_decided += 1,
                }
            }
            match records.last() {
                Some(last) if records.len() == CHUNK as usize => {
                    after = Some(Cursor::after(last.id));
                }
                _ => break,
            }
        }
        let changed = tallies
            .into_iter()
            .filter(|(_, tally)| !tally.changes.is_empty());
        simulation.tools = changed
            .map(|(tool, tally)| ToolSimulation {
                tool,
                calls: tally.calls,
                changes: tally.changes,
            })
            .collect();
        Ok(simulation)
    }
}

impl Simulation {
    fn count(&mut self, id: ActivityId, replayed: &Redecided, tally: &mut Tally) {
        let (from, to) = (replayed.recorded, Verdict::from(&replayed.decision));
        self.calls += 1;
        tally.calls += 1;
        if from == to {
            self.unchanged += 1;
            return;
        }
        *match to {
            Verdict::Allowed => &mut self.allowed,
            Verdict::Warned => &mut self.warned,
            Verdict::Refused(_) => &mut self.refused,
        } += 1;
        tally.count(id, from, to, replayed);
    }
}

impl Tally {
    fn count(&mut self, id: ActivityId, from: Verdict, to: Verdict, replayed: &Redecided) {
        let same = |change: &SimulatedChange| {
            (change.from, change.from_code) == parts(from)
                && (change.to, change.to_code) == parts(to)
        };
        let index = self.changes.iter().position(same).unwrap_or_else(|| {
            let ((from, from_code), (to, to_code)) = (parts(from), parts(to));
            self.changes.push(SimulatedChange {
                from,
                from_code,
                to,
                to_code,
                calls: 0,
                message: message(&replayed.decision),
                examples: Vec::new(),
            });
            self.changes.len() - 1
        });
        if let Some(change) = self.changes.get_mut(index) {
            change.calls += 1;
            if change.examples.len() < EXAMPLES {
                change.examples.push(id);
            }
        }
    }
}

fn parts(verdict: Verdict) -> (&'static str, Option<Code>) {
    match verdict {
        Verdict::Allowed => ("allowed", None),
        Verdict::Warned => ("warned", None),
        Verdict::Refused(code) => ("refused", Some(code)),
    }
}
