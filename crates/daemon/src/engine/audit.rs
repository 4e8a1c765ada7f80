//! The auditor's report on the tools in force, or on a list that the operator saved.

use auditor::{Manifest, Operator, Report, ToolFacts, Violation, audit_all, verify};
use catalog::ToolDefinition;
use policy::ServerName;

use super::in_force::InForce;
use super::tools::facts;

/// A report, and what a manifest says of the same tools.
#[derive(Debug)]
pub(crate) struct Audited {
    pub report: Report,
    pub violations: Vec<Violation>,
}

impl InForce {
    /// Audits the tools of all upstreams, or of one.
    pub(crate) fn audit(
        &self,
        server: Option<&ServerName>,
        manifest: Option<&Manifest>,
    ) -> Audited {
        let tools = self.tools().map(|(state, _)| ToolFacts {
            pinned: state.pinned,
            ..facts(state.definition())
        });
        let is_wanted =
            |tool: &ToolFacts<'_>| server.is_none_or(|name| tool.server == name.as_str());
        let tools: Vec<_> = tools.filter(is_wanted).collect();
        self.audit_facts(&tools, manifest)
    }

    /// Audits definitions that are not those of an upstream.
    pub(crate) fn audit_definitions(
        &self,
        tools: &[ToolDefinition],
        manifest: Option<&Manifest>,
    ) -> Audited {
        let tools: Vec<_> = tools.iter().map(facts).collect();
        self.audit_facts(&tools, manifest)
    }

    fn audit_facts(&self, tools: &[ToolFacts<'_>], manifest: Option<&Manifest>) -> Audited {
        let operator = Operator {
            overrides: Some(self.config.tool_overrides.compiled()),
            unannotated: self.config.intent_declaration.unannotated,
            distrust: Some(&self.config.distrust),
        };
        Audited {
            report: audit_all(tools, operator),
            violations: manifest
                .map(|manifest| verify(manifest, tools))
                .unwrap_or_default(),
        }
    }
}
