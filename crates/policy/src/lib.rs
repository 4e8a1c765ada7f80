//! Intent, annotations, tiers, and the pure function that decides about a call.
//!
//! Nothing here does I/O. Live calls, simulations over recorded calls and explanations for
//! people all go through [`decide()`], so they cannot disagree.

mod annotations;
mod code;
mod decide;
mod effective;
mod explain;
mod hold;
mod intent;
mod invisible;
mod name;
mod operation;
mod overrides;
mod pinned;
mod rules;
mod server_globs;
mod tier;
mod trust;

pub use annotations::Annotations;
pub use code::{Code, Refusal};
pub use decide::{Call, Decision, Outcome, decide};
pub use effective::{EffectiveTier, Provenance, TierFacts};
pub use explain::{LaneConflict, Warning};
pub use hold::Hold;
pub use intent::{DeclaredIntent, IntentDeclaration};
pub use invisible::is_invisible;
pub use name::{ServerName, ServerNameError, ToolId, ToolIdError, ToolName, ToolNameError};
pub use operation::{
    DataSensitivity, OperationType, ToolVariant, UnknownDataSensitivity, UnknownOperationType,
};
pub use overrides::{OverrideError, Overrides, PatternError};
pub use pinned::PinnedTiers;
pub use rules::{IntentMode, Rules, Unannotated};
pub use server_globs::{ServerGlobError, ServerGlobs};
pub use tier::{Tier, UnknownTier};
pub use trust::Trust;
