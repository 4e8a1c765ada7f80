//! `tool_overrides`: the operator's tiers, as written and ready for lookup.

use policy::{OverrideError, Overrides, Tier};

/// The patterns in the order of the file, and what they compile to.
#[derive(Debug, Clone, Default)]
pub struct ToolOverrides {
    written: Vec<(String, Tier)>,
    compiled: Overrides,
}

impl ToolOverrides {
    pub fn compile(written: Vec<(String, Tier)>) -> Result<Self, OverrideError> {
        let compiled = Overrides::compile(written.iter().map(|(pattern, tier)| (pattern, *tier)))?;
        Ok(Self { written, compiled })
    }

    /// For looking up tools.
    pub fn compiled(&self) -> &Overrides {
        &self.compiled
    }

    /// The patterns and tiers in the order of the file.
    pub fn written(&self) -> &[(String, Tier)] {
        &self.written
    }
}

// What is compiled follows from what is written.
impl PartialEq for ToolOverrides {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for ToolOverrides {}
