//! A declared intent, in every form in which agents send one.

use policy::{DeclaredIntent, IntentDeclaration, IntentMode, Refusal, ToolVariant};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

const VARIANTS: [ToolVariant; 3] = [
    ToolVariant::Read,
    ToolVariant::Write,
    ToolVariant::Destructive,
];

/// The members of a call's arguments that declare something.
#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    intent: Option<&'a RawValue>,
    #[serde(borrow)]
    intent_operation_type: Option<&'a RawValue>,
    #[serde(borrow)]
    intent_data_sensitivity: Option<&'a RawValue>,
    #[serde(borrow)]
    intent_reason: Option<&'a RawValue>,
}

pub(crate) fn check(input: &[u8]) {
    let Ok(arguments) = serde_json::from_slice::<Arguments<'_>>(input) else {
        return;
    };
    let declared = DeclaredIntent::from_parts(
        arguments.intent,
        arguments.intent_operation_type,
        arguments.intent_data_sensitivity,
        arguments.intent_reason,
    );
    let declared = match declared {
        Ok(Some(declared)) => declared,
        Ok(None) => return,
        Err(refusal) => return is_bounded(&refusal),
    };
    forms_agree(&declared);
    for variant in VARIANTS {
        for mode in [IntentMode::TwoKey, IntentMode::Inferred] {
            match IntentDeclaration::check(Some(&declared), variant, mode) {
                Ok(intent) => {
                    assert_eq!(intent.operation_type, variant.operation_type());
                    let said = declared.operation_type.as_deref();
                    assert!(said.is_some() || mode == IntentMode::Inferred);
                }
                Err(refusal) => is_bounded(&refusal),
            }
        }
    }
}

/// Nested, flat, and as a string: all mean the same.
fn forms_agree(declared: &DeclaredIntent) {
    let raw = |text: &Option<String>| text.as_ref().map(|text| to_raw_value(text).expect("JSON"));
    let nested = to_raw_value(declared).expect("JSON");
    let string = to_raw_value(nested.get()).expect("JSON");
    for form in [&nested, &string] {
        let again = DeclaredIntent::from_parts(Some(form), None, None, None);
        assert_eq!(again.as_ref().ok().and_then(Option::as_ref), Some(declared));
    }
    let flat = DeclaredIntent::from_parts(
        None,
        raw(&declared.operation_type).as_deref(),
        raw(&declared.data_sensitivity).as_deref(),
        raw(&declared.reason).as_deref(),
    );
    let flat = flat.expect("flat fields are accepted");
    assert_eq!(flat.unwrap_or_default(), *declared);
}

/// A refusal does not repeat what was sent at any length.
fn is_bounded(refusal: &Refusal) {
    assert!(refusal.message.len() < 2_000, "{}", refusal.message.len());
}
