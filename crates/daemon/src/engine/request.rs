//! A call as an endpoint hands it to the engine: read once, checked, and kept as the bytes it came in.

use mcp::{Json, RawValue, check_object, check_valid_object};
use policy::{Code, DeclaredIntent, Refusal, ToolId, ToolVariant};

/// A call of a tool, whichever endpoint it came through.
#[derive(Debug)]
pub enum CallRequest<'a> {
    /// An agent chose the lane.
    Lane(LaneCall<'a>),
    /// The endpoint has no lanes, so the tool's tier decides.
    Direct(DirectCall<'a>),
    /// The request is not acceptable. The engine still gets it, because it records refused calls
    /// like any other.
    Refused(RefusedCall<'a>),
}

/// What the client asked for, as far as it could be read. It is recorded whatever becomes of the call.
#[derive(Debug)]
pub struct Asked<'a> {
    /// What the client called the tool, right or wrong.
    pub name: String,
    /// The tool's arguments, an object; none is sent where none was given.
    pub arguments: Option<Json<'a>>,
    /// What the agent declared, right or wrong; none if nothing.
    pub intent: Option<DeclaredIntent>,
    /// The size of the arguments as they arrived.
    pub bytes: usize,
}

#[derive(Debug)]
pub struct LaneCall<'a> {
    pub asked: Asked<'a>,
    pub variant: ToolVariant,
    pub tool: ToolId,
    /// `_meta` of the client's request.
    pub meta: Option<Json<'a>>,
}

#[derive(Debug)]
pub struct DirectCall<'a> {
    pub asked: Asked<'a>,
    pub tool: ToolId,
    /// What the upstream gets.
    pub params: Box<RawValue>,
}

#[derive(Debug)]
pub struct RefusedCall<'a> {
    pub asked: Asked<'a>,
    pub variant: Option<ToolVariant>,
    pub refusal: Refusal,
}

/// The arguments of `call_tool_*` as they arrive; `null` stands for none.
#[derive(Debug, Default)]
struct CallArguments<'a> {
    name: Option<Json<'a>>,
    args_json: Option<Json<'a>>,
    args: Option<Json<'a>>,
    intent: Option<Json<'a>>,
    intent_operation_type: Option<Json<'a>>,
    intent_data_sensitivity: Option<Json<'a>>,
    intent_reason: Option<Json<'a>>,
}

// === impl CallRequest ===

impl<'a> CallRequest<'a> {
    /// Reads the arguments of a `call_tool_*` call.
    pub fn parse(
        variant: ToolVariant,
        arguments: Option<&'a Json<'_>>,
        meta: Option<&'a Json<'_>>,
    ) -> Self {
        let (asked, fault) = Asked::of_call_tool(variant.as_str(), arguments);
        match asked.tool(fault) {
            Err(refusal) => Self::refused(asked, Some(variant), refusal),
            Ok(tool) => Self::Lane(LaneCall {
                asked,
                variant,
                tool,
                meta: meta.map(Json::borrowed),
            }),
        }
    }

    /// A call through an endpoint without lanes.
    pub(crate) fn direct(
        name: String,
        arguments: Option<&'a RawValue>,
        params: Box<RawValue>,
    ) -> Self {
        let asked = Asked::of_tool(name, arguments.map(Json::from));
        let checked = asked
            .arguments
            .as_ref()
            .map(|object| explained("arguments", check_valid_object(object)));
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
    pub(crate) fn unknown(name: String, arguments: Option<&'a Json<'_>>, refusal: Refusal) -> Self {
        let asked = Asked::of_tool(name, arguments.map(Json::borrowed));
        Self::refused(asked, None, refusal)
    }

    /// A call of `call_tool`, which had no lanes and took otherwise what the variants take.
    pub(crate) fn without_lane(arguments: Option<&'a Json<'_>>, refusal: Refusal) -> Self {
        let (asked, _) = Asked::of_call_tool("call_tool", arguments);
        Self::refused(asked, None, refusal)
    }

    fn refused(asked: Asked<'a>, variant: Option<ToolVariant>, refusal: Refusal) -> Self {
        Self::Refused(RefusedCall {
            asked,
            variant,
            refusal,
        })
    }

    pub fn asked(&self) -> &Asked<'a> {
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

impl<'a> Asked<'a> {
    /// What the arguments of `call_tool_*` ask for, and the first thing that is wrong with them.
    fn of_call_tool(tool: &str, arguments: Option<&'a Json<'_>>) -> (Self, Option<Refusal>) {
        let (given, unreadable) = match CallArguments::read(arguments) {
            Ok(given) => (given, None),
            Err(problem) => {
                let message = format!("the arguments of {tool} are not valid: {problem}");
                (CallArguments::default(), Some(invalid(message)))
            }
        };
        let (intent, bad_intent) = split(given.declared_intent());
        let name = given.name.as_ref().and_then(Json::as_str);
        let name = name.unwrap_or_default().into_owned();
        let (arguments_of_tool, bad_arguments) = split(given.tool_arguments());
        let asked = Self {
            name,
            arguments: arguments_of_tool,
            intent,
            bytes: arguments.map_or("{}".len(), |json| json.get().len()),
        };
        (asked, unreadable.or(bad_intent).or(bad_arguments))
    }

    /// What a call of a tool by its own name asks for.
    fn of_tool(name: String, arguments: Option<Json<'a>>) -> Self {
        let arguments = arguments.filter(|json| !json.is_null());
        Self {
            name,
            bytes: arguments.as_ref().map_or(0, |json| json.get().len()),
            arguments,
            intent: None,
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

impl<'a> CallArguments<'a> {
    const NAMES: [&'static str; 7] = [
        "name",
        "args_json",
        "args",
        "intent",
        "intent_operation_type",
        "intent_data_sensitivity",
        "intent_reason",
    ];

    /// Finds the arguments, or says which of them are not acceptable.
    fn read(arguments: Option<&'a Json<'_>>) -> Result<Self, String> {
        let mut given = Self::default();
        let Some(arguments) = arguments.filter(|json| !json.is_null()) else {
            return Ok(given);
        };
        let members = arguments.members().ok_or("they must be an object")?;
        for (name, value) in members {
            let argument = given.argument(&name).ok_or_else(|| {
                let known = Self::NAMES.join("`, `");
                format!("unknown field `{name}`, expected one of `{known}`")
            })?;
            if argument.replace(value).is_some() {
                return Err(format!("duplicate field `{name}`"));
            }
        }
        for name in Self::NAMES {
            // Always one of them.
            if let Some(argument) = given.argument(name) {
                argument.take_if(|value| value.is_null());
            }
        }
        match &given.name {
            Some(name) if name.as_str().is_none() => Err("`name` must be a string".to_owned()),
            _ => Ok(given),
        }
    }

    fn argument(&mut self, name: &str) -> Option<&mut Option<Json<'a>>> {
        Some(match name {
            "name" => &mut self.name,
            "args_json" => &mut self.args_json,
            "args" => &mut self.args,
            "intent" => &mut self.intent,
            "intent_operation_type" => &mut self.intent_operation_type,
            "intent_data_sensitivity" => &mut self.intent_data_sensitivity,
            "intent_reason" => &mut self.intent_reason,
            _ => return None,
        })
    }

    fn declared_intent(&self) -> Result<Option<DeclaredIntent>, Refusal> {
        fn raw<'a>(json: Option<&'a Json<'_>>) -> Option<&'a RawValue> {
            serde_json::from_str(json?.get()).ok()
        }
        DeclaredIntent::from_parts(
            raw(self.intent.as_ref()),
            raw(self.intent_operation_type.as_ref()),
            raw(self.intent_data_sensitivity.as_ref()),
            raw(self.intent_reason.as_ref()),
        )
    }

    fn tool_arguments(self) -> Result<Option<Json<'a>>, Refusal> {
        match (self.args_json, self.args) {
            (Some(_), Some(_)) => Err(invalid("give either args or args_json, not both")),
            (None, None) => Ok(None),
            (None, Some(object)) => {
                explained("args", check_valid_object(&object))?;
                Ok(Some(object))
            }
            (Some(string), None) => {
                let text = string.as_str().ok_or_else(|| {
                    invalid(
                        "args_json must be a string holding a JSON object; pass an object as args",
                    )
                })?;
                // Models send an empty string where they mean no arguments.
                if text.trim().is_empty() {
                    return Ok(None);
                }
                explained("args_json", check_object(&text))?;
                let json = Json::parse(text.into_owned())
                    .map_err(|error| invalid(format!("args_json is not valid JSON: {error}")))?;
                Ok(Some(json))
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

    fn json(text: &str) -> Json<'static> {
        Json::parse(text.to_owned()).unwrap()
    }

    fn parse<'a>(arguments: &'a Json<'_>) -> Result<LaneCall<'a>, Refusal> {
        match CallRequest::parse(ToolVariant::Read, Some(arguments), None) {
            CallRequest::Lane(call) => Ok(call),
            CallRequest::Refused(call) => Err(call.refusal),
            CallRequest::Direct(call) => panic!("a lane was chosen: {call:?}"),
        }
    }

    fn refused(text: &str) -> (Code, String) {
        let refusal = parse(&json(text)).unwrap_err();
        (refusal.code, refusal.message)
    }

    #[test]
    fn both_forms_of_arguments_keep_their_bytes() {
        let object = json(r#"{"name":"a:b","args":{ "z":1.0, "y":2 }}"#);
        let object = parse(&object).unwrap();
        assert_eq!(
            object.asked.arguments.unwrap().get(),
            r#"{ "z":1.0, "y":2 }"#
        );
        let string = json(r#"{"name":"a:b","args_json":"{ \"z\":1.0 }"}"#);
        let string = parse(&string).unwrap();
        assert_eq!(string.asked.arguments.unwrap().get(), r#"{ "z":1.0 }"#);
    }

    #[test]
    fn no_arguments_are_no_arguments() {
        for text in [
            r#"{"name":"a:b"}"#,
            r#"{"name":"a:b","args":null}"#,
            r#"{"name":"a:b","args_json":""}"#,
        ] {
            assert!(
                parse(&json(text)).unwrap().asked.arguments.is_none(),
                "{text}"
            );
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
