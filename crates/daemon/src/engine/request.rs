//! A call as an endpoint hands it to the engine: read once, checked, and kept as the bytes it came in.

use std::borrow::Cow;

use mcp::{RawValue, check_object, check_raw_object};
use policy::{Code, DeclaredIntent, Refusal, ToolId, ToolVariant};
use serde::Deserialize;

/// A call of a tool, whichever endpoint it came through.
#[derive(Debug)]
pub enum CallRequest {
    /// An agent chose the lane.
    Lane(LaneCall),
    /// The endpoint has no lanes, so the tool's tier decides.
    Direct(DirectCall),
    /// The request is not acceptable. The engine still gets it, because it records refused calls
    /// like any other.
    Refused(RefusedCall),
}

/// What the client asked for, as far as it could be read. It is recorded whatever becomes of the call.
#[derive(Debug)]
pub struct Asked {
    /// What the client called the tool, right or wrong.
    pub name: String,
    /// The tool's arguments, an object; none is sent where none was given.
    pub arguments: Option<Box<RawValue>>,
    /// What the agent declared, right or wrong; none if nothing.
    pub intent: Option<DeclaredIntent>,
    /// The size of the arguments as they arrived.
    pub bytes: usize,
}

#[derive(Debug)]
pub struct LaneCall {
    pub asked: Asked,
    pub variant: ToolVariant,
    pub tool: ToolId,
    /// `_meta` of the client's request.
    pub meta: Option<Box<RawValue>>,
}

#[derive(Debug)]
pub struct DirectCall {
    pub asked: Asked,
    pub tool: ToolId,
    /// What the upstream gets.
    pub params: Box<RawValue>,
}

#[derive(Debug)]
pub struct RefusedCall {
    pub asked: Asked,
    pub variant: Option<ToolVariant>,
    pub refusal: Refusal,
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
    pub fn parse(
        variant: ToolVariant,
        arguments: Option<&RawValue>,
        meta: Option<&RawValue>,
    ) -> Self {
        let (asked, fault) = Asked::of_call_tool(variant.as_str(), arguments);
        match asked.tool(fault) {
            Err(refusal) => Self::refused(asked, Some(variant), refusal),
            Ok(tool) => Self::Lane(LaneCall {
                asked,
                variant,
                tool,
                meta: meta.map(ToOwned::to_owned),
            }),
        }
    }

    /// A call through an endpoint without lanes.
    pub(crate) fn direct(
        name: String,
        arguments: Option<&RawValue>,
        params: Box<RawValue>,
    ) -> Self {
        let asked = Asked::of_tool(name, arguments);
        let checked = asked
            .arguments
            .as_ref()
            .map(|object| explained("arguments", check_raw_object(object)));
        match asked.tool(checked.and_then(Result::err)) {
            Err(refusal) => Self::refused(asked, None, refusal),
            Ok(tool) => Self::Direct(DirectCall {
                asked,
                tool,
                params,
            }),
        }
    }

    /// A call that the endpoint refuses by its name.
    pub(crate) fn unknown(name: String, arguments: Option<&RawValue>, refusal: Refusal) -> Self {
        Self::refused(Asked::of_tool(name, arguments), None, refusal)
    }

    /// A call of `call_tool`, which had no lanes and took otherwise what the variants take.
    pub(crate) fn without_lane(arguments: Option<&RawValue>, refusal: Refusal) -> Self {
        let (asked, _) = Asked::of_call_tool("call_tool", arguments);
        Self::refused(asked, None, refusal)
    }

    fn refused(asked: Asked, variant: Option<ToolVariant>, refusal: Refusal) -> Self {
        Self::Refused(RefusedCall {
            asked,
            variant,
            refusal,
        })
    }

    pub fn asked(&self) -> &Asked {
        match self {
            Self::Lane(call) => &call.asked,
            Self::Direct(call) => &call.asked,
            Self::Refused(call) => &call.asked,
        }
    }

    /// The lane that the client chose.
    pub(super) fn variant(&self) -> Option<ToolVariant> {
        match self {
            Self::Lane(call) => Some(call.variant),
            Self::Direct(_) => None,
            Self::Refused(call) => call.variant,
        }
    }
}

// === impl Asked ===

impl Asked {
    /// What the arguments of `call_tool_*` ask for, and the first thing that is wrong with them.
    fn of_call_tool(tool: &str, arguments: Option<&RawValue>) -> (Self, Option<Refusal>) {
        let text = arguments.map_or("{}", RawValue::get);
        let (given, unreadable) = match serde_json::from_str::<CallArguments<'_>>(text) {
            Ok(given) => (given, None),
            Err(error) => {
                let message = format!("the arguments of {tool} are not valid: {error}");
                (CallArguments::default(), Some(invalid(message)))
            }
        };
        let (intent, bad_intent) = split(given.declared_intent());
        let (arguments, bad_arguments) = split(given.tool_arguments());
        let asked = Self {
            name: given.name.unwrap_or_default().into_owned(),
            arguments,
            intent,
            bytes: text.len(),
        };
        (asked, unreadable.or(bad_intent).or(bad_arguments))
    }

    /// What a call of a tool by its own name asks for.
    fn of_tool(name: String, arguments: Option<&RawValue>) -> Self {
        let arguments = arguments.filter(|raw| raw.get() != "null");
        Self {
            name,
            arguments: arguments.map(ToOwned::to_owned),
            intent: None,
            bytes: arguments.map_or(0, |raw| raw.get().len()),
        }
    }

    /// The tool that is meant, if nothing is wrong with the arguments.
    fn tool(&self, fault: Option<Refusal>) -> Result<ToolId, Refusal> {
        match fault {
            Some(fault) => Err(fault),
            None => self.name.parse().map_err(Refusal::from),
        }
    }
}

/// The value, and what is wrong with it.
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
                explained("args", check_raw_object(object))?;
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
                explained("args_json", check_object(&text))?;
                let raw = RawValue::from_string(text)
                    .map_err(|error| invalid(format!("args_json is not valid JSON: {error}")))?;
                Ok(Some(raw))
            }
        }
    }
}

fn explained(parameter: &str, checked: Result<(), serde_json::Error>) -> Result<(), Refusal> {
    checked.map_err(|error| {
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

    fn parse(text: &str) -> Result<LaneCall, Refusal> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        match CallRequest::parse(ToolVariant::Read, Some(&raw), None) {
            CallRequest::Lane(call) => Ok(call),
            CallRequest::Refused(call) => Err(call.refusal),
            CallRequest::Direct(call) => panic!("a lane was chosen: {call:?}"),
        }
    }

    fn refused(text: &str) -> (Code, String) {
        let refusal = parse(text).unwrap_err();
        (refusal.code, refusal.message)
    }

    #[test]
    fn both_forms_of_arguments_keep_their_bytes() {
        let object = parse(r#"{"name":"a:b","args":{ "z":1.0, "y":2 }}"#).unwrap();
        assert_eq!(
            object.asked.arguments.unwrap().get(),
            r#"{ "z":1.0, "y":2 }"#
        );
        let string = parse(r#"{"name":"a:b","args_json":"{ \"z\":1.0 }"}"#).unwrap();
        assert_eq!(string.asked.arguments.unwrap().get(), r#"{ "z":1.0 }"#);
    }

    #[test]
    fn no_arguments_are_no_arguments() {
        for text in [
            r#"{"name":"a:b"}"#,
            r#"{"name":"a:b","args":null}"#,
            r#"{"name":"a:b","args_json":""}"#,
        ] {
            assert!(parse(text).unwrap().asked.arguments.is_none(), "{text}");
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
