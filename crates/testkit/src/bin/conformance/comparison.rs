//! Servers on the SDKs of others: the suite judges each through `/mcp/server/{name}` and bare.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use serde_json::json;
use testkit::conformance::{Eras, ForeignServer, ForeignTransport, Sdk};

use crate::leg::{BEHIND_LEGACY, Impossible, reason_in};
use crate::place::{as_localhost, daemon};
use crate::suite::{Outcome, Revision, Scenario, Suite};

use ForeignTransport::{Http, Sse, Stdio};

/// Runs at the same time; the suite spends most of its time waiting.
const AT_ONCE: usize = 4;

/// One server and the transports over which mcpproxy reaches it. Bare, the suite reaches all of them over HTTP,
/// the only transport that it speaks.
#[derive(Debug)]
pub(crate) struct Subject {
    server: ForeignServer,
    transports: &'static [ForeignTransport],
}

const SUBJECTS: &[Subject] = &[
    Subject::new(Sdk::TypeScript, Eras::Both, &[Http, Stdio]),
    Subject::new(Sdk::TypeScript, Eras::Legacy, &[Http, Stdio]),
    Subject::new(Sdk::TypeScript, Eras::Modern, &[Http, Stdio]),
    Subject::new(Sdk::TypeScript1, Eras::Legacy, &[Http, Stdio, Sse]),
    Subject::new(Sdk::Python, Eras::Both, &[Http, Stdio]),
    Subject::new(Sdk::Python1, Eras::Legacy, &[Http, Stdio, Sse]),
    Subject::new(Sdk::Rmcp, Eras::Both, &[Http, Stdio]),
    Subject::new(Sdk::Rmcp, Eras::Modern, &[Http, Stdio]),
];

/// What a server of the legacy era does in its own way, where a modern client meets it.
const OF_LEGACY_SDKS: &[Impossible] = &[
    Impossible {
        scenarios: "server-stateless",
        checks: &[
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
        ],
        reason: "the SDK sees that the client cannot be asked and fails the call itself, by a result; \
                 -32021 is not known to it",
    },
    Impossible {
        scenarios: "server-stateless",
        checks: &[
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
            "sep-2575-http-server-no-independent-requests-on-stream",
        ],
        reason: "as over HTTP; and the suite waits 0.6 s for the first answer to a client that can be \
                 asked, for which the program is started once more",
    },
];

/// One run of the suite with all scenarios of a revision.
#[derive(Debug, Clone, Copy)]
struct Run {
    subject: usize,
    /// None is the bare server.
    through: Option<ForeignTransport>,
    revision: Revision,
}

/// What came of all runs of a subject.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) title: String,
    eras: Eras,
    bare: Vec<(Revision, Outcome)>,
    rows: Vec<Row>,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) transport: ForeignTransport,
    pub(crate) outcomes: Vec<(Revision, Outcome)>,
}

/// A scenario that a row should have passed, or could not.
pub(crate) struct Lost<'a> {
    pub(crate) revision: Revision,
    pub(crate) scenario: &'a Scenario,
    pub(crate) reason: Option<&'static str>,
}

/// Runs every subject whose title has `only` in it.
pub(crate) async fn run(suite: &Suite, only: &str) -> anyhow::Result<Vec<Comparison>> {
    let mut runs = Vec::new();
    let chosen = |subject: &&(usize, &Subject)| subject.1.title().contains(only);
    for (index, subject) in SUBJECTS.iter().enumerate().filter(|it| chosen(&it)) {
        for revision in [Revision::Legacy, Revision::Modern] {
            let through = subject.transports.iter().map(|it| Some(*it));
            let bare = speaks(subject.server.eras, revision).then_some(None);
            runs.extend(bare.into_iter().chain(through).map(|through| Run {
                subject: index,
                through,
                revision,
            }));
        }
    }
    let running = stream::iter(runs.into_iter().map(async |run| {
        let outcome = run.outcome(suite).await?;
        anyhow::Ok((run, outcome))
    }));
    let mut comparisons: Vec<Comparison> = Vec::new();
    let outcomes: Vec<_> = running.buffered(AT_ONCE).collect().await;
    for outcome in outcomes {
        let (run, outcome) = outcome?;
        run.add(outcome, &mut comparisons);
    }
    Ok(comparisons)
}

pub(crate) fn speaks(eras: Eras, revision: Revision) -> bool {
    matches!(
        (eras, revision),
        (Eras::Both, _) | (Eras::Legacy, Revision::Legacy) | (Eras::Modern, Revision::Modern)
    )
}

// === impl Subject, Run ===

impl Subject {
    const fn new(sdk: Sdk, eras: Eras, transports: &'static [ForeignTransport]) -> Self {
        let server = ForeignServer { sdk, eras };
        Self { server, transports }
    }

    fn title(&self) -> String {
        let ForeignServer { sdk, eras } = self.server;
        let eras = match eras {
            Eras::Both => "both eras",
            Eras::Legacy => "legacy only",
            Eras::Modern => "modern only",
        };
        format!("{}, {eras}", sdk.title())
    }
}

impl Run {
    async fn outcome(&self, suite: &Suite) -> anyhow::Result<Outcome> {
        let server = SUBJECTS[self.subject].server;
        let Some(transport) = self.through else {
            let bare = server.listen(Http).await?;
            return suite
                .requirements(&as_localhost(bare.url()), self.revision)
                .await;
        };
        let (config, _listening) = match transport {
            Stdio => (server.stdio_config()?, None),
            Http | Sse => {
                let listening = server.listen(transport).await?;
                (json!({"url": listening.url()}), Some(listening))
            }
        };
        let daemon = daemon(json!({"foreign": config}), &["foreign"]).await?;
        let url = as_localhost(&daemon.url("/mcp/server/foreign"));
        let outcome = suite.requirements(&url, self.revision).await?;
        anyhow::ensure!(
            daemon.is_up().await,
            "the daemon is gone; it said:\n{}",
            daemon.log()
        );
        Ok(outcome)
    }

    /// Puts the outcome where it belongs; runs come in the order of the subjects.
    fn add(&self, outcome: Outcome, comparisons: &mut Vec<Comparison>) {
        let subject = &SUBJECTS[self.subject];
        let title = subject.title();
        if comparisons.last().is_none_or(|last| last.title != title) {
            let row = |transport: &ForeignTransport| Row {
                transport: *transport,
                outcomes: Vec::new(),
            };
            comparisons.push(Comparison {
                title,
                eras: subject.server.eras,
                bare: Vec::new(),
                rows: subject.transports.iter().map(row).collect(),
            });
        }
        let Some(comparison) = comparisons.last_mut() else {
            return;
        };
        match self.through {
            None => comparison.bare.push((self.revision, outcome)),
            Some(transport) => {
                let mut rows = comparison.rows.iter_mut();
                if let Some(row) = rows.find(|row| row.transport == transport) {
                    row.outcomes.push((self.revision, outcome));
                }
            }
        }
    }
}

// === impl Comparison ===

impl Comparison {
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn bare(&self, revision: Revision) -> Option<&Outcome> {
        let mut bare = self.bare.iter();
        bare.find(|(of, _)| *of == revision)
            .map(|(_, outcome)| outcome)
    }

    /// What a row lost: against the bare server where that speaks the revision, and else of all that counts.
    pub(crate) fn lost<'a>(&'a self, row: &'a Row) -> Vec<Lost<'a>> {
        let mut lost = Vec::new();
        for (revision, outcome) in &row.outcomes {
            let failed = outcome.scenarios.iter().filter(|scenario| !scenario.passed);
            let expected: BTreeSet<_> = match self.bare(*revision) {
                Some(bare) => passed(&bare.scenarios).collect(),
                None => outcome.scored().map(|it| it.name.as_str()).collect(),
            };
            let failed = failed.filter(|scenario| expected.contains(scenario.name.as_str()));
            lost.extend(failed.map(|scenario| Lost {
                revision: *revision,
                scenario,
                reason: self.reason(row, *revision, scenario),
            }));
        }
        lost
    }

    fn reason(&self, row: &Row, revision: Revision, scenario: &Scenario) -> Option<&'static str> {
        if self.eras != Eras::Legacy || revision != Revision::Modern {
            return None;
        }
        let of_sdks = match row.transport {
            Stdio => OF_LEGACY_SDKS,
            Http | Sse => &OF_LEGACY_SDKS[..1],
        };
        reason_in(BEHIND_LEGACY, scenario).or_else(|| reason_in(of_sdks, scenario))
    }

    /// Whether every row equals the bare server, which passes all that counts.
    pub(crate) fn holds(&self) -> bool {
        let mut bare = self.bare.iter();
        bare.all(|(_, outcome)| outcome.scored().all(|scenario| scenario.passed))
            && self.rows.iter().all(|row| {
                self.lost(row)
                    .iter()
                    .all(|scenario| scenario.reason.is_some())
            })
    }
}

fn passed(scenarios: &[Scenario]) -> impl Iterator<Item = &str> {
    let passed = scenarios.iter().filter(|scenario| scenario.passed);
    passed.map(|scenario| scenario.name.as_str())
}
