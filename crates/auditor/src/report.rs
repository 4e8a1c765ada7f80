//! The report of an audit: every tool with its tiers, findings and what clients make of it.

use std::collections::BTreeSet;

use policy::{
    Annotations, EffectiveTier, Overrides, Provenance, ServerGlobs, Tier, TierFacts, ToolId,
    Unannotated,
};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::findings::{FailOn, Finding, NameIndex, Severity, check_hints, check_prose};
use crate::{Clients, ToolFacts, audit_tier};

/// What the operator has set that decides effective tiers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operator<'a> {
    pub overrides: Option<&'a Overrides>,
    pub unannotated: Unannotated,
    /// Servers whose word about their tools is not taken.
    pub distrust: Option<&'a ServerGlobs>,
}

/// The report of an audit, in the shape that scripts rely on.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = AuditReport)]
pub struct Report {
    pub tools: Vec<ToolReport>,
    pub summary: Summary,
}

/// What was found out about one tool.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ToolReport {
    /// `server:tool`, as the server gave it; not safe to print.
    pub name: String,
    pub declared_tier: Option<Tier>,
    pub audited_tier: Tier,
    pub override_tier: Option<Tier>,
    pub effective_tier: Option<Tier>,
    pub provenance: Provenance,
    #[serde(serialize_with = "two_decimals")]
    pub confidence: f32,
    pub reason: String,
    /// The most severe first.
    pub findings: Vec<Finding>,
    pub clients: Clients,
}

/// The report in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = AuditSummary)]
pub struct Summary {
    pub servers: usize,
    pub tools: usize,
    pub declared: TierCounts,
    pub audited: TierCounts,
    pub effective: TierCounts,
    /// Tools whose declared tier is laxer than the audited one.
    pub declared_laxer: usize,
    pub findings: SeverityCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct TierCounts {
    pub read_only: usize,
    pub write: usize,
    pub soft_delete: usize,
    pub destructive: usize,
    /// Tools of which the tier is not known.
    pub unknown: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct SeverityCounts {
    pub error: usize,
    pub warning: usize,
    pub note: usize,
}

/// Audits a list of tools, of one server or of many.
pub fn audit_all(tools: &[ToolFacts<'_>], operator: Operator<'_>) -> Report {
    let names = NameIndex::new(tools);
    let reports: Vec<_> = tools
        .iter()
        .map(|tool| ToolReport::new(tool, &names, operator))
        .collect();
    let servers: BTreeSet<_> = tools.iter().map(|tool| tool.server).collect();
    let summary = Summary::of(&reports, servers.len());
    Report {
        tools: reports,
        summary,
    }
}

impl Operator<'_> {
    fn distrusts(self, server: &str) -> bool {
        let Ok(server) = server.parse() else {
            // A name that no config can hold is on no list either.
            return false;
        };
        self.distrust.is_some_and(|globs| globs.matches(&server))
    }
}

impl Report {
    pub fn worst_severity(&self) -> Option<Severity> {
        let findings = self.tools.iter().flat_map(|tool| &tool.findings);
        findings.map(|finding| finding.severity).max()
    }

    pub fn fails(&self, threshold: FailOn) -> bool {
        self.worst_severity()
            .is_some_and(|worst| threshold.is_failure(worst))
    }
}

impl ToolReport {
    fn new(tool: &ToolFacts<'_>, names: &NameIndex<'_>, operator: Operator<'_>) -> Self {
        let audit = audit_tier(tool);
        let name = tool.id();
        let override_tier = operator.overrides.and_then(|overrides| {
            // A name that cannot be called cannot be overridden either.
            let id: ToolId = name.parse().ok()?;
            overrides.tier_for(&id).map(|(tier, _)| tier)
        });
        let facts = TierFacts {
            override_tier,
            declared: tool.annotations.and_then(Annotations::declared_tier),
            audited: Some(audit.tier),
            distrusted: operator.distrusts(tool.server),
            pinned: tool.pinned,
        };
        let effective = EffectiveTier::resolve(&facts, operator.unannotated);
        let mut findings = Vec::new();
        let any_lane = effective.provenance() == Provenance::Unannotated
            && operator.unannotated == Unannotated::Trust;
        check_hints(tool.annotations, &audit, any_lane, &mut findings);
        names.check(tool, &mut findings);
        check_prose(tool, &mut findings);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Self {
            name,
            declared_tier: facts.declared,
            audited_tier: audit.tier,
            override_tier,
            effective_tier: effective.tier(),
            provenance: effective.provenance(),
            confidence: audit.confidence,
            reason: audit.reason,
            findings,
            clients: Clients::with_hints(tool.annotations),
        }
    }

    /// The server and the tool of the name.
    pub fn parts(&self) -> (&str, &str) {
        self.name.split_once(':').unwrap_or(("", &self.name))
    }
}

impl Summary {
    fn of(tools: &[ToolReport], servers: usize) -> Self {
        let mut summary = Self {
            servers,
            tools: tools.len(),
            ..Self::default()
        };
        for tool in tools {
            summary.declared.add(tool.declared_tier);
            summary.audited.add(Some(tool.audited_tier));
            summary.effective.add(tool.effective_tier);
            let laxer = tool
                .declared_tier
                .is_some_and(|declared| declared.variant() < tool.audited_tier.variant());
            summary.declared_laxer += usize::from(laxer);
            for finding in &tool.findings {
                summary.findings.add(finding.severity);
            }
        }
        summary
    }
}

impl TierCounts {
    fn add(&mut self, tier: Option<Tier>) {
        *match tier {
            Some(Tier::ReadOnly) => &mut self.read_only,
            Some(Tier::Write) => &mut self.write,
            Some(Tier::SoftDelete) => &mut self.soft_delete,
            Some(Tier::Destructive) => &mut self.destructive,
            None => &mut self.unknown,
        } += 1;
    }
}

impl SeverityCounts {
    fn add(&mut self, severity: Severity) {
        *match severity {
            Severity::Error => &mut self.error,
            Severity::Warning => &mut self.warning,
            Severity::Note => &mut self.note,
        } += 1;
    }
}

/// A confidence is no more exact than that, and `0.949999988` is no help to anybody.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn two_decimals<S: Serializer>(confidence: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((f64::from(*confidence) * 100.0).round() / 100.0)
}
