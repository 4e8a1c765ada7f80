//! How calls are decided: the validation matrix, the exact messages, the laws, and the functional
//! requirements one by one.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; a failed parse is a failed test"
)]

mod matrix;
mod messages;
mod properties;
mod requirements;

use policy::{
    Annotations, Call, Code, Decision, DeclaredIntent, Hold, PinnedTiers, Rules, Tier, ToolId,
    ToolVariant, decide,
};
use serde_json::json;

/// A call that can be varied one thing at a time, starting from one that is allowed.
#[derive(Debug, Clone)]
struct Scenario {
    variant: ToolVariant,
    tool: ToolId,
    intent: Option<DeclaredIntent>,
    annotations: Option<Annotations>,
    override_tier: Option<Tier>,
    audited_tier: Option<Tier>,
    distrusted: bool,
    pinned: Option<PinnedTiers>,
    hold: Option<Hold>,
    rules: Rules,
}

impl Scenario {
    /// A call with a matching intent on a tool without hints, under the default rules.
    fn on(variant: ToolVariant) -> Self {
        Self {
            variant,
            tool: "github:delete_repo".parse().unwrap(),
            intent: Some(DeclaredIntent::for_variant(variant)),
            annotations: None,
            override_tier: None,
            audited_tier: None,
            distrusted: false,
            pinned: None,
            hold: None,
            rules: Rules::default(),
        }
    }

    fn declaring(mut self, operation_type: &str) -> Self {
        let operation_type = Some(operation_type.to_owned());
        self.intent = Some(DeclaredIntent {
            operation_type,
            ..DeclaredIntent::default()
        });
        self
    }

    fn marked_destructive(mut self) -> Self {
        self.annotations = Some(Annotations::from_value(json!({"destructiveHint": true})));
        self
    }

    fn decide(&self) -> Decision {
        let call = Call {
            variant: self.variant,
            tool: &self.tool,
            intent: self.intent.as_ref(),
            annotations: self.annotations.as_ref(),
            override_tier: self.override_tier,
            audited_tier: self.audited_tier,
            distrusted: self.distrusted,
            pinned: self.pinned,
            hold: self.hold,
        };
        decide(&call, &self.rules)
    }

    fn code(&self) -> Option<Code> {
        self.decide().refusal().map(|refusal| refusal.code)
    }

    fn message(&self) -> String {
        self.decide()
            .refusal()
            .map(ToString::to_string)
            .unwrap_or_default()
    }
}
