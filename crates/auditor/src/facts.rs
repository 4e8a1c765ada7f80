//! What the auditor is given about a tool.

use policy::{Annotations, PinnedTiers};
use serde_json::value::RawValue;

/// A tool as its upstream announces it, borrowed from wherever it is kept.
///
/// Names are plain text on purpose: a name that no call could use is exactly what an audit must
/// be able to report.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolFacts<'a> {
    pub server: &'a str,
    pub name: &'a str,
    pub title: Option<&'a str>,
    pub description: &'a str,
    pub input_schema: Option<&'a RawValue>,
    pub output_schema: Option<&'a RawValue>,
    /// None when the definition has no `annotations` member.
    pub annotations: Option<&'a Annotations>,
    /// What the tool was pinned with, where that differs from what it announces.
    pub pinned: Option<PinnedTiers>,
}

impl ToolFacts<'_> {
    /// The tool among all upstreams, as people and reports write it.
    pub fn id(&self) -> String {
        format!("{}:{}", self.server, self.name)
    }

    /// Every title a client might show.
    pub(crate) fn titles(&self) -> impl Iterator<Item = &str> {
        let hinted = self.annotations.and_then(|hints| hints.title.as_deref());
        self.title.into_iter().chain(hinted)
    }
}
