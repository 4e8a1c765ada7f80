//! Tier inference, findings, manifests and reports: what a tool does, judged by what it says.
//!
//! Nothing here does I/O: tools come in as [`ToolFacts`], answers go out as values and text.

mod clients;
mod escape;
mod facts;
mod findings;
mod hash;
mod infer;
mod lexicon;
mod manifest;
mod pattern;
pub mod render;
mod report;
mod schema;
mod text;

pub use clients::{Behaviour, ClaudeCode, Clients};
pub use facts::ToolFacts;
pub use findings::{FailOn, Finding, FindingCode, Severity, UnknownFailOn};
pub use infer::{Audit, audit_tier};
pub use manifest::{Manifest, ManifestError, Violation, ViolationCode, verify};
pub use report::{Operator, Report, SeverityCounts, Summary, TierCounts, ToolReport, audit_all};
