//! The arguments of `call_tool_*`: read once, checked, and kept as the bytes they are.

use std::borrow::Cow;

use mcp::{RawValue, check_object};
use policy::{Code, DeclaredIntent, Refusal, ToolId, ToolVariant};
use serde::Deserialize;

/// A call as the one call path takes it, whatever endpoint it came through. It exists even where the
/// arguments are not acceptable, because a refused call is recorded like any other.
#[derive(Debug)]
pub struct CallRequest {
    /// The lane that the agent chose. Where an endpoint has no lanes, the tool's tier decides.
    pub variant: Option<ToolVariant>,
    /// What the agent called the tool, right or wrong.
    pub name: String,
    /// The tool's arguments, an object; none is sent where none was given.
    pub arguments: Option<Box<RawValue>>,
    /// What the agent declared, right or wrong; none if nothing.
    pub intent: Option<DeclaredIntent>,
    /// `_meta` of the client's request.
    pub meta: Option<Box<RawValue>>,
    /// What is sent to the upstream, where it was written for it and not put together here.
    pub params: Option<Box<RawValue>>,
    /// The size of the arguments as they arrived.
    pub bytes: usize,
    /// The first thing that is wrong with the arguments.
    pub(super) fault: Option<Refusal>,
}

/// The arguments of `call_tool_*` as they arrive.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallArguments<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    args_json: Option<&'a RawValue>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    intent: Option<&'a RawValue>,
    #[serde(borrow)]
    intent_operation_type: Option<&'a RawValue>,
    #[serde(borrow)]
    intent_data_sensitivity: Option<&'a RawValue>,
    #[serde(borrow)]
    intent_reason: Option<&'a RawValue>,
}

// === impl CallRequest ===

impl CallRequest {
    /// Reads the arguments of a `call_tool_*` call.
    pub fn parse(variant: ToolVariant, arguments: Option<&RawValue>) -> Self {
        let text = arguments.map_or("{}", RawValue::get);
        let (given, unreadable) = match serde_json::from_str::<CallArguments<'_>>(text) {
            Ok(given) => (given, None),
            Err(error) => {
                let message = format!("the arguments of {variant} are not valid: {error}");
                (CallArguments::default(), Some(invalid(message)))
            }
        };
        let (intent, bad_intent) = split(given.declared_intent());
        let (arguments, bad_arguments) = split(given.tool_arguments());
        Self {
            variant: Some(variant),
            name: given.name.unwrap_or_default().into_owned(),
            arguments,
            intent,
            meta: None,
            params: None,
            bytes: text.len(),
            fault: unreadable.or(bad_intent).or(bad_arguments),
        }
    }

    /// A call of a tool by its own name, through an endpoint without lanes. `params` are what the
    /// upstream gets, and `arguments` the part of them that is checked and recorded.
    pub(crate) fn by_tier(
        name: String,
        arguments: Option<&RawValue>,
        params: Box<RawValue>,
    ) -> Self {
        let arguments = arguments.filter(|raw| raw.get() != "null");
        let checked = arguments.map(|object| check("arguments", object.get()));
        Self {
            variant: None,
            name,
            arguments: arguments.map(ToOwned::to_owned),
            intent: None,
            meta: None,
            bytes: arguments.map_or(0, |raw| raw.get().len()),
            params: Some(params),
            fault: checked.and_then(Result::err),
        }
    }

    /// A call of a tool that the endpoint does not have, for the log.
    pub(crate) fn unknown(name: String, arguments: Option<&RawValue>) -> Self {
        let arguments = arguments.filter(|raw| raw.get() != "null");
        Self {
            variant: None,
            name,
            arguments: arguments.map(ToOwned::to_owned),
            intent: None,
            meta: None,
            params: None,
            bytes: arguments.map_or(0, |raw| raw.get().len()),
            fault: None,
        }
    }

    /// A call of `call_tool`, which had no lanes and took otherwise what the variants take.
    pub(crate) fn without_lane(arguments: Option<&RawValue>) -> Self {
        Self {
            variant: None,
            ..Self::parse(ToolVariant::Read, arguments)
        }
    }

    /// The tool that is meant, if the request is acceptable as far as it can be told without
    /// looking at the tool.
    pub(super) fn tool(&self) -> Result<ToolId, Refusal> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => self.name.parse().map_err(Refusal::from),
        }
    }
}

/// What there is, and what is wrong.
fn split<T>(outcome: Result<Option<T>, Refusal>) -> (Option<T>, Option<Refusal>) {
    match outcome {
        Ok(value) => (value, None),
        Err(refusal) => (None, Some(refusal)),
    }
}

// === impl CallArguments ===

impl CallArguments<'_> {
    fn declared_intent(&self) -> Result<Option<DeclaredIntent>, Refusal> {
        DeclaredIntent::from_parts(
            self.intent,
            self.intent_operation_type,
            self.intent_data_sensitivity,
            self.intent_reason,
        )
    }

    fn tool_arguments(&self) -> Result<Option<Box<RawValue>>, Refusal> {
        match (self.args_json, self.args) {
            (Some(_), Some(_)) => Err(invalid("give either args or args_json, not both")),
            (None, None) => Ok(None),
            (None, Some(object)) => {
                check("args", object.get())?;
                Ok(Some(object.to_owned()))
            }
            (Some(string), None) => {
                let text: String = serde_json::from_str(string.get()).map_err(|_| {
                    invalid(
                        "args_json must be a string holding a JSON object; pass an object as args",
                    )
                })?;
                // Models send an empty string where they mean no arguments.
                if text.trim().is_empty() {
                    return Ok(None);
                }
                check("args_json", &text)?;
                let raw = RawValue::from_string(text)
                    .map_err(|error| invalid(format!("args_json is not valid JSON: {error}")))?;
                Ok(Some(raw))
            }
        }
    }
}

fn check(parameter: &str, text: &str) -> Result<(), Refusal> {
    check_object(text).map_err(|error| {
        let problem = match error.classify() {
            serde_json::error::Category::Data => "is not acceptable",
            _ => "is not valid JSON",
        };
        invalid(format!(
            "{parameter} {problem}: {error}; it must be one JSON object"
        ))
        .with("parameter", parameter)
    })
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::InvalidArgs, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<CallRequest, Refusal> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        let request = CallRequest::parse(ToolVariant::Read, Some(&raw));
        request.tool().map(|_| request)
    }

    fn refused(text: &str) -> (Code, String) {
        let refusal = parse(text).unwrap_err();
        (refusal.code, refusal.message)
    }

    #[test]
    fn both_forms_of_arguments_keep_their_bytes() {
        let object = parse(r#"{"name":"a:b","args":{ "z":1.0, "y":2 }}"#).unwrap();
        assert_eq!(object.arguments.unwrap().get(), r#"{ "z":1.0, "y":2 }"#);
        let string = parse(r#"{"name":"a:b","args_json":"{ \"z\":1.0 }"}"#).unwrap();
        assert_eq!(string.arguments.unwrap().get(), r#"{ "z":1.0 }"#);
    }

    #[test]
    fn no_arguments_are_no_arguments() {
        for text in [
            r#"{"name":"a:b"}"#,
            r#"{"name":"a:b","args":null}"#,
            r#"{"name":"a:b","args_json":""}"#,
        ] {
            assert!(parse(text).unwrap().arguments.is_none(), "{text}");
        }
    }

    #[test]
    fn bad_arguments_say_what_is_wrong() {
        let cases = [
            (r#"{"name":"a:b","args":{},"args_json":"{}"}"#, "not both"),
            (r#"{"name":"a:b","args":[1]}"#, "args is not acceptable"),
            (r#"{"name":"a:b","args":"{}"}"#, "must be one JSON object"),
            (r#"{"name":"a:b","args_json":{}}"#, "pass an object as args"),
            (
                r#"{"name":"a:b","args_json":"{oops"}"#,
                "args_json is not valid JSON",
            ),
            (
                r#"{"name":"a:b","args":{"x":1,"x":2}}"#,
                "member `x` is given twice",
            ),
            (
                r#"{"name":"a:b","arguments":{}}"#,
                "unknown field `arguments`",
            ),
            (r#"{"name":"a:b","name":"c:d"}"#, "duplicate field `name`"),
        ];
        for (text, expected) in cases {
            let (code, message) = refused(text);
            assert_eq!(code, Code::InvalidArgs, "{text}");
            assert!(message.contains(expected), "{text} gave {message}");
        }
    }

    #[test]
    fn a_name_that_is_no_tool_id_is_refused_as_one() {
        assert_eq!(refused(r#"{"name":"list_repos"}"#).0, Code::InvalidToolName);
        assert_eq!(refused("{}").0, Code::InvalidToolName);
    }
}
