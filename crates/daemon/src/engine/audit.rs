//! The auditor's view of the tools that are connected, or of a list that somebody saved.

use auditor::{Manifest, Operator, Report, ToolFacts, Violation, audit_all, verify};
use catalog::ToolDefinition;
use policy::ServerName;

use super::Engine;
use super::live_catalog::{ToolState, facts};

/// A report, and what a manifest says of the same tools.
#[derive(Debug)]
pub(crate) struct Audited {
    pub report: Report,
    pub violations: Vec<Violation>,
}

impl Engine {
    pub(super) fn known(&self, tool: &ToolDefinition) -> ToolState {
        self.catalog.known(&self.fleet, tool)
    }

    /// Audits the tools of all upstreams, or of one.
    pub(crate) fn audit(
        &self,
        server: Option<&ServerName>,
        manifest: Option<&Manifest>,
    ) -> Audited {
        let catalog = self.catalog();
        let tools: Vec<_> = catalog
            .tools()
            .filter(|entry| server.is_none_or(|server| entry.tool.id.server() == server))
            .map(|entry| ToolFacts {
                pinned: self.known(entry.tool).standing.pinned,
                ..facts(entry.tool)
            })
            .collect();
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
        let config = self.config.load();
        let operator = Operator {
            overrides: Some(config.tool_overrides.compiled()),
            unannotated: config.intent_declaration.unannotated,
            distrust: Some(&config.distrust),
        };
        Audited {
            report: audit_all(tools, operator),
            violations: manifest
                .map(|manifest| verify(manifest, tools))
                .unwrap_or_default(),
        }
    }
}
