//! What common clients do with a tool, going by the hints its server put on it.

use policy::Annotations;
use serde::Serialize;
use utoipa::ToSchema;

/// What a client does when an agent wants to call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Behaviour {
    /// The call runs without a question.
    AutoApproved,
    /// A person is asked each time.
    Asks,
    /// Whether the call runs depends on settings that the tool's hints do not decide.
    MayBeDenied,
    /// Nobody is there to be asked, so the call does not run.
    Denied,
}

/// What Claude Code does in each of its modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
pub struct ClaudeCode {
    pub default: Behaviour,
    pub accept_edits: Behaviour,
    /// Automated sessions without a person.
    pub headless: Behaviour,
}

/// The clients of which it is known what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Clients {
    pub claude_code: ClaudeCode,
}

impl Behaviour {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AutoApproved => "auto_approved",
            Self::Asks => "asks",
            Self::MayBeDenied => "may_be_denied",
            Self::Denied => "denied",
        }
    }
}

impl Clients {
    pub fn with_hints(annotations: Option<&Annotations>) -> Self {
        Self {
            claude_code: ClaudeCode::with_hints(annotations),
        }
    }
}

impl ClaudeCode {
    /// Read-only tools run in every mode, tools declared not destructive where edits are accepted,
    /// destructive ones never unasked; a tool that says neither is treated with caution.
    pub fn with_hints(annotations: Option<&Annotations>) -> Self {
        use Behaviour::{Asks, AutoApproved, Denied, MayBeDenied};
        let hints = annotations.map(|hints| (hints.destructive_hint, hints.read_only_hint));
        let (default, accept_edits, headless) = match hints {
            Some((Some(true), _)) => (Asks, Asks, Denied),
            Some((_, Some(true))) => (AutoApproved, AutoApproved, AutoApproved),
            Some((Some(false), _)) => (Asks, AutoApproved, MayBeDenied),
            Some((None, _)) | None => (Asks, Asks, MayBeDenied),
        };
        Self {
            default,
            accept_edits,
            headless,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(hints: serde_json::Value) -> [&'static str; 3] {
        let found = ClaudeCode::with_hints(Some(&Annotations::from_value(hints)));
        [found.default, found.accept_edits, found.headless].map(Behaviour::as_str)
    }

    #[test]
    fn hints_decide_what_runs_unasked() {
        let auto = "auto_approved";
        assert_eq!(expect(serde_json::json!({"readOnlyHint": true})), [auto; 3]);
        let write = serde_json::json!({"destructiveHint": false});
        assert_eq!(expect(write), ["asks", auto, "may_be_denied"]);
        let destructive = serde_json::json!({"readOnlyHint": true, "destructiveHint": true});
        assert_eq!(expect(destructive), ["asks", "asks", "denied"]);
        assert_eq!(
            expect(serde_json::json!({})),
            ["asks", "asks", "may_be_denied"]
        );
    }

    #[test]
    fn scripts_read_it_under_the_clients_name() {
        let json = serde_json::to_value(Clients::with_hints(None)).unwrap();
        assert_eq!(json["claude-code"]["headless"], "may_be_denied");
    }
}
