//! What an agent declares about a call: first as it said it, then as something that holds.

mod parse;

use serde::{Deserialize, Serialize};

use crate::{Code, DataSensitivity, IntentMode, OperationType, Refusal, ToolVariant};

/// What the agent literally said, right or wrong.
///
/// Kept apart from [`IntentDeclaration`] so that a refused call can be recorded with the words it
/// was refused for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredIntent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sensitivity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An intent that is complete and matches the variant it came with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentDeclaration {
    pub operation_type: OperationType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sensitivity: Option<DataSensitivity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl DeclaredIntent {
    /// The intent of a caller that declares by its choice of lane alone, such as a command of the
    /// CLI.
    pub fn for_variant(variant: ToolVariant) -> Self {
        let operation_type = Some(variant.operation_type().as_str().to_owned());
        Self {
            operation_type,
            ..Self::default()
        }
    }
}

impl IntentDeclaration {
    /// The longest reason, in characters.
    pub const MAX_REASON_LENGTH: usize = 1000;

    /// Checks what was declared against the variant it was declared on. Nothing declared at all is
    /// `None`.
    pub fn check(
        declared: Option<&DeclaredIntent>,
        variant: ToolVariant,
        mode: IntentMode,
    ) -> Result<Self, Refusal> {
        let nothing = DeclaredIntent::default();
        let declared = match (declared, mode) {
            (Some(declared), _) => declared,
            (None, IntentMode::Inferred) => &nothing,
            (None, IntentMode::TwoKey) => {
                let message = format!("intent parameter is required for {variant}");
                return Err(Refusal::new(Code::MissingIntent, message));
            }
        };
        let operation_type = operation_type(declared, variant, mode)?;
        let data_sensitivity = data_sensitivity(declared)?;
        let reason = reason(declared)?;
        if operation_type != variant.operation_type() {
            let message =
                format!("Intent mismatch: tool is {variant} but intent declares {operation_type}");
            return Err(Refusal::new(Code::IntentMismatch, message)
                .with("declared_operation_type", operation_type.as_str())
                .with("expected_operation_type", variant.operation_type().as_str()));
        }
        Ok(Self {
            operation_type,
            data_sensitivity,
            reason,
        })
    }
}

fn operation_type(
    declared: &DeclaredIntent,
    variant: ToolVariant,
    mode: IntentMode,
) -> Result<OperationType, Refusal> {
    match (&declared.operation_type, mode) {
        (Some(text), _) => text.parse().map_err(|_| {
            let text = excerpt(text);
            let message =
                format!("Invalid intent.operation_type '{text}': must be {OPERATION_TYPES}");
            Refusal::new(Code::InvalidOperationType, message)
        }),
        (None, IntentMode::Inferred) => Ok(variant.operation_type()),
        (None, IntentMode::TwoKey) => {
            let refusal = Refusal::new(
                Code::MissingOperationType,
                "intent.operation_type is required",
            );
            Err(refusal.with("expected_operation_type", variant.operation_type().as_str()))
        }
    }
}

fn data_sensitivity(declared: &DeclaredIntent) -> Result<Option<DataSensitivity>, Refusal> {
    let Some(text) = &declared.data_sensitivity else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        let text = excerpt(text);
        let message =
            format!("Invalid intent.data_sensitivity '{text}': must be {DATA_SENSITIVITIES}");
        Refusal::new(Code::InvalidSensitivity, message)
    })
}

fn reason(declared: &DeclaredIntent) -> Result<Option<String>, Refusal> {
    let Some(reason) = &declared.reason else {
        return Ok(None);
    };
    let max = IntentDeclaration::MAX_REASON_LENGTH;
    // Characters never outnumber bytes, so the usual short reason is not counted.
    if reason.len() > max && reason.chars().count() > max {
        let message = format!("intent.reason exceeds maximum length of {max} characters");
        return Err(Refusal::new(Code::ReasonTooLong, message)
            .with("length", reason.chars().count())
            .with("max_length", max));
    }
    Ok(Some(reason.clone()))
}

const OPERATION_TYPES: &str = "read, write, or destructive";
const DATA_SENSITIVITIES: &str = "public, internal, private, or unknown";

/// Enough of an agent's text to recognise it by; the text itself can be megabytes.
fn excerpt(text: &str) -> String {
    const LENGTH: usize = 64;
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(declared: &DeclaredIntent) -> Result<IntentDeclaration, Refusal> {
        IntentDeclaration::check(Some(declared), ToolVariant::Read, IntentMode::TwoKey)
    }

    fn read() -> DeclaredIntent {
        DeclaredIntent::for_variant(ToolVariant::Read)
    }

    #[test]
    fn the_reason_is_counted_in_characters() {
        let with_reason = |length| DeclaredIntent {
            reason: Some("é".repeat(length)),
            ..read()
        };
        assert!(check(&with_reason(1000)).is_ok());
        let refusal = check(&with_reason(1001)).unwrap_err();
        assert_eq!(refusal.code, Code::ReasonTooLong);
        assert_eq!(refusal.details["length"], 1001);
    }

    #[test]
    fn a_bad_field_is_refused_before_a_mismatch() {
        let declared = DeclaredIntent {
            operation_type: Some("write".into()),
            data_sensitivity: Some("secret".into()),
            reason: None,
        };
        assert_eq!(check(&declared).unwrap_err().code, Code::InvalidSensitivity);
    }

    #[test]
    fn a_megabyte_of_nonsense_is_not_repeated() {
        let operation_type = Some("é".repeat(1 << 20));
        let refusal = check(&DeclaredIntent {
            operation_type,
            ..read()
        })
        .unwrap_err();
        assert_eq!(refusal.code, Code::InvalidOperationType);
        assert!(refusal.message.chars().count() < 200);
    }

    #[test]
    fn only_what_was_declared_is_stored() {
        let json = serde_json::to_string(&check(&read()).unwrap()).unwrap();
        assert_eq!(json, r#"{"operation_type":"read"}"#);
        assert_eq!(serde_json::to_string(&read()).unwrap(), json);
    }

    #[test]
    fn words_in_messages_are_all_the_words_there_are() {
        for known in OperationType::ALL {
            assert!(OPERATION_TYPES.contains(known.as_str()));
        }
        for known in DataSensitivity::ALL {
            assert!(DATA_SENSITIVITIES.contains(known.as_str()));
        }
    }
}
