//! Which capability a client must have declared to be asked something.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::{ErrorObject, codes};

/// A capability, down to the part of it that a question needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capability {
    name: &'static str,
    part: Option<&'static str>,
}

/// Whether a client that declared these capabilities can be asked this. Of a method that belongs to
/// no capability only the client itself can tell.
pub fn may_be_asked(capabilities: &RawValue, method: &str, params: Option<&RawValue>) -> bool {
    Capability::needed_for(method, params).is_none_or(|needed| needed.is_declared_in(capabilities))
}

impl Capability {
    /// What a question takes; `None` for those that this era cannot put at all.
    pub(super) fn needed_for(method: &str, params: Option<&RawValue>) -> Option<Self> {
        let params: Map<String, Value> = params
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let (name, part) = match method {
            "roots/list" => ("roots", None),
            "sampling/createMessage" => {
                let tools = params.contains_key("tools");
                ("sampling", tools.then_some("tools"))
            }
            "elicitation/create" => {
                let url = params.get("mode").is_some_and(|mode| mode == "url");
                ("elicitation", Some(if url { "url" } else { "form" }))
            }
            _ => return None,
        };
        Some(Self { name, part })
    }

    pub(super) fn is_declared_in(self, capabilities: &RawValue) -> bool {
        let declared: Value = serde_json::from_str(capabilities.get()).unwrap_or_default();
        let Some(Value::Object(declared)) = declared.get(self.name) else {
            return false;
        };
        match self.part {
            None => true,
            // Clients from before there were other forms of elicitation name none.
            Some("form") => declared.contains_key("form") || !declared.contains_key("url"),
            Some(part) => declared.contains_key(part),
        }
    }

    pub(super) fn missing(self) -> ErrorObject {
        let Self { name, part } = self;
        let wanted = match part {
            Some(part) if part != "form" => json!({ part: {} }),
            _ => json!({}),
        };
        let message = format!("The client has not declared the capability {name}");
        let mut error = ErrorObject::new(codes::MISSING_CLIENT_CAPABILITY, message);
        error.data = to_raw_value(&json!({"requiredCapabilities": {name: wanted}})).ok();
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_question_needs_what_the_client_declared() {
        let table = [
            ("roots/list", "{}", r#"{"roots":{}}"#, true),
            ("roots/list", "{}", "{}", false),
            ("roots/list", "{}", r#"{"roots":null}"#, false),
            ("elicitation/create", "{}", r#"{"elicitation":{}}"#, true),
            (
                "elicitation/create",
                "{}",
                r#"{"elicitation":{"form":{}}}"#,
                true,
            ),
            (
                "elicitation/create",
                "{}",
                r#"{"elicitation":{"url":{}}}"#,
                false,
            ),
            (
                "elicitation/create",
                r#"{"mode":"url"}"#,
                r#"{"elicitation":{}}"#,
                false,
            ),
            (
                "elicitation/create",
                r#"{"mode":"url"}"#,
                r#"{"elicitation":{"url":{}}}"#,
                true,
            ),
            ("sampling/createMessage", "{}", r#"{"sampling":{}}"#, true),
            (
                "sampling/createMessage",
                r#"{"tools":[]}"#,
                r#"{"sampling":{}}"#,
                false,
            ),
            (
                "sampling/createMessage",
                r#"{"tools":[]}"#,
                r#"{"sampling":{"tools":{}}}"#,
                true,
            ),
        ];
        for (method, params, declared, expected) in table {
            let needed = Capability::needed_for(method, Some(&raw(params))).unwrap();
            assert_eq!(
                needed.is_declared_in(&raw(declared)),
                expected,
                "{method} {declared}"
            );
        }
        assert_eq!(Capability::needed_for("ping", None), None);
    }

    #[test]
    fn the_error_names_the_capability_as_a_client_would_declare_it() {
        let sampling = Capability::needed_for("sampling/createMessage", None).unwrap();
        let error = sampling.missing();
        assert_eq!(error.code, -32021);
        assert_eq!(
            error.data.unwrap().get(),
            r#"{"requiredCapabilities":{"sampling":{}}}"#
        );
        let url = raw(r#"{"mode":"url"}"#);
        let url = Capability::needed_for("elicitation/create", Some(&url)).unwrap();
        assert_eq!(
            url.missing().data.unwrap().get(),
            r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#
        );
    }
}
