//! Reads a declared intent from every form in which agents send one.
//!
//! Some models nest objects well, some only fill in flat strings, and some put the object into a
//! string. All are accepted, also mixed, as long as they do not contradict each other.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{DATA_SENSITIVITIES, DeclaredIntent, OPERATION_TYPES, excerpt};
use crate::{Code, Refusal};

/// The members of the nested form, not yet looked at.
#[derive(Deserialize)]
struct Nested<'a> {
    #[serde(borrow)]
    operation_type: Option<&'a RawValue>,
    #[serde(borrow)]
    data_sensitivity: Option<&'a RawValue>,
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
}

#[derive(Clone, Copy)]
enum Field {
    OperationType,
    DataSensitivity,
    Reason,
}

impl DeclaredIntent {
    /// Puts together an intent from the nested `intent` and the flat `intent_operation_type`,
    /// `intent_data_sensitivity` and `intent_reason`. `None` when nothing was declared at all.
    ///
    /// An empty string or null is how some models leave a field out, and counts as that.
    pub fn from_parts(
        intent: Option<&RawValue>,
        operation_type: Option<&RawValue>,
        data_sensitivity: Option<&RawValue>,
        reason: Option<&RawValue>,
    ) -> Result<Option<Self>, Refusal> {
        let object = match intent {
            Some(intent) => object_text(intent)?,
            None => None,
        };
        let nested = object.as_deref().map(parse_object).transpose()?;
        let is_nested = nested.is_some();
        let nested = nested.unwrap_or(Nested {
            operation_type: None,
            data_sensitivity: None,
            reason: None,
        });
        let declared = Self {
            operation_type: Field::OperationType.merge(nested.operation_type, operation_type)?,
            data_sensitivity: Field::DataSensitivity
                .merge(nested.data_sensitivity, data_sensitivity)?,
            reason: Field::Reason.merge(nested.reason, reason)?,
        };
        Ok((is_nested || declared != Self::default()).then_some(declared))
    }
}

/// The text of the intent's object, taken out of a string if it came in one.
fn object_text(intent: &RawValue) -> Result<Option<Cow<'_, str>>, Refusal> {
    let text = intent.get();
    if text.starts_with('"') {
        let inner: String = serde_json::from_str(text).map_err(|_| malformed(text))?;
        return Ok((!inner.trim().is_empty()).then_some(Cow::Owned(inner)));
    }
    Ok((text != "null").then_some(Cow::Borrowed(text)))
}

fn parse_object(text: &str) -> Result<Nested<'_>, Refusal> {
    // Serde would also take the members from an array by position.
    if !text.trim_start().starts_with('{') {
        return Err(malformed(text));
    }
    serde_json::from_str(text).map_err(|error| malformed(text).with("problem", error.to_string()))
}

fn malformed(text: &str) -> Refusal {
    let message = "intent must be an object, or a JSON string of one, with operation_type, data_sensitivity \
         and reason given at most once each";
    Refusal::new(Code::InvalidArgs, message).with("intent", excerpt(text))
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::OperationType => "operation_type",
            Self::DataSensitivity => "data_sensitivity",
            Self::Reason => "reason",
        }
    }

    fn merge(
        self,
        nested: Option<&RawValue>,
        flat: Option<&RawValue>,
    ) -> Result<Option<String>, Refusal> {
        match (self.text(nested)?, self.text(flat)?) {
            (Some(nested), Some(flat)) if nested != flat => Err(self.contradiction(&nested, &flat)),
            (nested, flat) => Ok(nested.or(flat)),
        }
    }

    fn text(self, raw: Option<&RawValue>) -> Result<Option<String>, Refusal> {
        let Some(raw) = raw else { return Ok(None) };
        let text: Option<String> =
            serde_json::from_str(raw.get()).map_err(|_| self.not_a_string(raw))?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    fn contradiction(self, nested: &str, flat: &str) -> Refusal {
        let name = self.name();
        let (nested, flat) = (excerpt(nested), excerpt(flat));
        let message = format!(
            "intent.{name} is '{nested}' but intent_{name} is '{flat}': give only one of them"
        );
        Refusal::new(Code::InvalidArgs, message).with("field", name)
    }

    fn not_a_string(self, raw: &RawValue) -> Refusal {
        let given = excerpt(raw.get());
        let (code, message) = match self {
            Self::OperationType => (
                Code::InvalidOperationType,
                format!(
                    "Invalid intent.operation_type {given}: must be a string, {OPERATION_TYPES}"
                ),
            ),
            Self::DataSensitivity => (
                Code::InvalidSensitivity,
                format!(
                    "Invalid intent.data_sensitivity {given}: must be a string, {DATA_SENSITIVITIES}"
                ),
            ),
            Self::Reason => (
                Code::InvalidArgs,
                format!("Invalid intent.reason {given}: must be a string"),
            ),
        };
        Refusal::new(code, message).with("field", self.name())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    /// Parses the way a caller does: by the names of the members of the tool's arguments.
    fn parse(arguments: &Value) -> Result<Option<DeclaredIntent>, Refusal> {
        let part = |name: &str| arguments.get(name).map(raw);
        DeclaredIntent::from_parts(
            part("intent").as_deref(),
            part("intent_operation_type").as_deref(),
            part("intent_data_sensitivity").as_deref(),
            part("intent_reason").as_deref(),
        )
    }

    fn code(arguments: &Value) -> Code {
        parse(arguments).unwrap_err().code
    }

    fn write() -> DeclaredIntent {
        DeclaredIntent {
            operation_type: Some("write".into()),
            ..DeclaredIntent::default()
        }
    }

    #[test]
    fn nothing_declared_in_any_way_is_none() {
        for arguments in [
            json!({}),
            json!({"intent": null}),
            json!({"intent": " "}),
            json!({"intent_operation_type": "", "intent_reason": null}),
        ] {
            assert_eq!(parse(&arguments), Ok(None), "{arguments}");
        }
    }

    #[test]
    fn an_empty_intent_is_declared_but_says_nothing() {
        for arguments in [json!({"intent": {}}), json!({"intent": "{}"})] {
            assert_eq!(
                parse(&arguments),
                Ok(Some(DeclaredIntent::default())),
                "{arguments}"
            );
        }
    }

    #[test]
    fn empty_optional_fields_are_left_out() {
        let arguments = json!({"intent_operation_type": "write", "intent_reason": ""});
        assert_eq!(parse(&arguments), Ok(Some(write())));
        let arguments = json!({"intent": {"operation_type": "write", "reason": "", "extra": 1}});
        assert_eq!(parse(&arguments), Ok(Some(write())));
    }

    #[test]
    fn forms_may_be_mixed_when_they_agree() {
        let arguments = json!({
            "intent": {"operation_type": "write"},
            "intent_operation_type": "write",
            "intent_reason": "why not",
        });
        let expected = DeclaredIntent {
            reason: Some("why not".into()),
            ..write()
        };
        assert_eq!(parse(&arguments), Ok(Some(expected)));
    }

    #[test]
    fn a_contradiction_is_refused() {
        let arguments =
            json!({"intent": "{\"operation_type\":\"read\"}", "intent_operation_type": "write"});
        let refusal = parse(&arguments).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidArgs);
        assert_eq!(
            refusal.message,
            "intent.operation_type is 'read' but intent_operation_type is 'write': give only one \
             of them"
        );
    }

    #[test]
    fn a_member_twice_in_one_object_is_refused() {
        let intent = r#"{"operation_type":"read","operation_type":"write"}"#;
        let refusal = parse(&json!({ "intent": intent })).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidArgs);
        assert!(
            refusal.details["problem"]
                .as_str()
                .unwrap()
                .contains("duplicate field")
        );
    }

    #[test]
    fn an_intent_that_is_no_object_is_refused() {
        for intent in [
            json!(5),
            json!(true),
            json!(["read"]),
            json!("read"),
            json!("[\"read\"]"),
        ] {
            let refusal = parse(&json!({ "intent": intent })).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidArgs, "{intent}");
            assert!(
                refusal
                    .message
                    .starts_with("intent must be an object, or a JSON string")
            );
        }
    }

    #[test]
    fn a_field_that_is_no_string_has_the_code_of_the_field() {
        assert_eq!(
            code(&json!({"intent": {"operation_type": 1}})),
            Code::InvalidOperationType
        );
        assert_eq!(
            code(&json!({"intent_operation_type": ["read"]})),
            Code::InvalidOperationType
        );
        assert_eq!(
            code(&json!({"intent_data_sensitivity": {}})),
            Code::InvalidSensitivity
        );
        assert_eq!(code(&json!({"intent_reason": false})), Code::InvalidArgs);
    }

    #[test]
    fn deep_nesting_in_a_string_is_an_error_and_no_crash() {
        let deep = format!(r#"{{"x":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(
            parse(&json!({ "intent": deep })),
            Ok(Some(DeclaredIntent::default()))
        );
        let deep = deep.replace("\"x\"", "\"reason\"");
        assert_eq!(code(&json!({ "intent": deep })), Code::InvalidArgs);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn all_forms_mean_the_same(
            operation_type in proptest::option::of("\\PC{1,12}"),
            data_sensitivity in proptest::option::of("\\PC{1,12}"),
            reason in proptest::option::of("(?s).{1,40}"),
        ) {
            let expected = DeclaredIntent { operation_type, data_sensitivity, reason };
            prop_assume!(expected != DeclaredIntent::default());
            let nested = serde_json::to_value(&expected).unwrap();
            let flat = json!({
                "intent_operation_type": expected.operation_type,
                "intent_data_sensitivity": expected.data_sensitivity,
                "intent_reason": expected.reason,
            });
            for arguments in [
                json!({ "intent": nested }),
                json!({ "intent": nested.to_string() }),
                flat,
            ] {
                prop_assert_eq!(parse(&arguments), Ok(Some(expected.clone())));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(?s).{0,60}") {
            let _ = parse(&json!({ "intent": text, "intent_reason": text }));
        }
    }
}
