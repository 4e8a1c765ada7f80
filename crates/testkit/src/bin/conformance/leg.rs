//! The rows of the table: what stands between the suite and the fixture, and what has to pass.

use testkit::conformance::Eras;

use crate::place::Place;
use crate::suite::{Outcome, Revision, Scenario, Suite};

/// One row.
#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) title: &'static str,
    subject: Subject,
    revisions: &'static [Revision],
    /// What cannot pass here.
    impossible: &'static [Impossible],
}

/// Scenarios, by their name or the beginning of it, that cannot pass on a leg, and why.
#[derive(Debug)]
pub(crate) struct Impossible {
    pub(crate) scenarios: &'static str,
    /// The checks that cannot pass, by the beginning of their ids; all of them if there is none. Another check that
    /// fails has no excuse.
    pub(crate) checks: &'static [&'static str],
    pub(crate) reason: &'static str,
}

/// What the suite looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject {
    /// The fixture itself.
    Fixture,
    /// One upstream through the endpoint for it.
    Server(Transport, Eras),
    /// Two upstreams through the endpoint for all.
    Direct,
    /// The scripted client itself.
    Client,
    /// mcpproxy as a client, driven by the scripted one.
    ProxiedClient,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Transport {
    Http,
    Stdio,
    Sse,
}

#[derive(Debug)]
pub(crate) struct LegResult {
    pub(crate) leg: &'static Leg,
    pub(crate) outcomes: Vec<(Revision, Outcome)>,
}

const BOTH: &[Revision] = &[Revision::Legacy, Revision::Modern];

/// Where a modern client meets a legacy upstream.
pub(crate) const BEHIND_LEGACY: &[Impossible] = &[
    Impossible {
        scenarios: "input-required-result-basic-elicitation",
        checks: &[],
        reason: "the suite wants the question under a key of the server's, and the question of a \
                 legacy server has none",
    },
    Impossible {
        scenarios: "tasks-",
        checks: &[],
        reason: NO_EXTENSIONS,
    },
    Impossible {
        scenarios: "sep-2640-",
        checks: &[],
        reason: NO_EXTENSIONS,
    },
];

const NO_EXTENSIONS: &str = "the extension is of the modern era; a legacy server does not offer it";

/// Every row, in the order they are shown.
pub(crate) const LEGS: &[Leg] = &[
    Leg::new("fixture without a proxy", Subject::Fixture, BOTH),
    Leg::new(
        "/mcp/server/{name}, HTTP upstream",
        Subject::Server(Transport::Http, Eras::Both),
        BOTH,
    ),
    Leg::new(
        "/mcp/server/{name}, stdio upstream",
        Subject::Server(Transport::Stdio, Eras::Both),
        BOTH,
    ),
    Leg::new(
        "/mcp/server/{name}, SSE upstream",
        Subject::Server(Transport::Sse, Eras::Both),
        BOTH,
    ),
    Leg::new("/mcp/direct, two upstreams", Subject::Direct, BOTH),
    Leg::new(
        "modern client, legacy-only HTTP upstream",
        Subject::Server(Transport::Http, Eras::Legacy),
        &[Revision::Modern],
    )
    .except(BEHIND_LEGACY),
    Leg::new(
        "modern client, legacy-only stdio upstream",
        Subject::Server(Transport::Stdio, Eras::Legacy),
        &[Revision::Modern],
    )
    .except(BEHIND_LEGACY),
    Leg::new(
        "modern client, legacy-only SSE upstream",
        Subject::Server(Transport::Sse, Eras::Legacy),
        &[Revision::Modern],
    )
    .except(BEHIND_LEGACY),
    Leg::new(
        "legacy client, modern-only HTTP upstream",
        Subject::Server(Transport::Http, Eras::Modern),
        &[Revision::Legacy],
    ),
    Leg::new(
        "legacy client, modern-only stdio upstream",
        Subject::Server(Transport::Stdio, Eras::Modern),
        &[Revision::Legacy],
    ),
    Leg::new(
        "legacy client, modern-only SSE upstream",
        Subject::Server(Transport::Sse, Eras::Modern),
        &[Revision::Legacy],
    ),
    Leg::new("client without a proxy", Subject::Client, BOTH),
    Leg::new("client leg", Subject::ProxiedClient, BOTH),
];

/// Why a scenario cannot pass, if it is among these.
pub(crate) fn reason_in(impossible: &[Impossible], scenario: &Scenario) -> Option<&'static str> {
    let mut impossible = impossible.iter();
    let found = impossible.find(|it| {
        let excused = |complaint: &String| {
            let mut checks = it.checks.iter();
            it.checks.is_empty() || checks.any(|check| complaint.starts_with(check))
        };
        scenario.name.starts_with(it.scenarios) && scenario.complaints.iter().all(excused)
    });
    found.map(|it| it.reason)
}

// === impl Leg ===

impl Leg {
    const fn new(title: &'static str, subject: Subject, revisions: &'static [Revision]) -> Self {
        Self {
            title,
            subject,
            revisions,
            impossible: &[],
        }
    }

    const fn except(self, impossible: &'static [Impossible]) -> Self {
        Self { impossible, ..self }
    }

    /// Sets up what stands in between and lets the suite judge it, revision by revision.
    pub(crate) async fn run(&'static self, suite: &Suite) -> anyhow::Result<LegResult> {
        let place = Place::of(self.subject).await?;
        let mut outcomes = Vec::new();
        for &revision in self.revisions {
            let outcome = match &place {
                Place::Server { url, .. } => suite.server(url, revision).await?,
                Place::Client { command } => suite.client(command, revision).await?,
            };
            outcomes.push((revision, outcome));
        }
        place.check_alive().await?;
        Ok(LegResult {
            leg: self,
            outcomes,
        })
    }

    /// Why a scenario cannot pass here, if it cannot.
    pub(crate) fn reason(&self, scenario: &Scenario) -> Option<&'static str> {
        reason_in(self.impossible, scenario)
    }

    /// How many scenarios count, as the frozen lists of the suite have them.
    pub(crate) fn scored(&self, revision: Revision) -> usize {
        match (self.subject, revision) {
            (Subject::Client | Subject::ProxiedClient, Revision::Legacy) => 4,
            (Subject::Client | Subject::ProxiedClient, Revision::Modern) => 7,
            (_, Revision::Legacy) => 30,
            (_, Revision::Modern) => 37,
        }
    }
}

// === impl LegResult ===

impl LegResult {
    /// Whether all that counts was run, and everything passed where it could.
    pub(crate) fn passed(&self) -> bool {
        self.outcomes.iter().all(|(revision, outcome)| {
            let mut scenarios = outcome.scenarios.iter();
            outcome.scored().count() == self.leg.scored(*revision)
                && scenarios.all(|scenario| scenario.passed || self.leg.reason(scenario).is_some())
        })
    }
}
