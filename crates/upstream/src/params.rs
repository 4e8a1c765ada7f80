//! The params of `tools/call`, put together without touching what the client wrote.

use mcp::{Members, ProgressToken, RawValue};
use policy::ToolName;
use serde::Serialize;
use serde_json::value::to_raw_value;

const PROGRESS_TOKEN: &str = "progressToken";

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a ToolName,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", skip_serializing_if = "Members::is_empty")]
    meta: Members<'a>,
}

/// `meta` goes along except for its progress token: that one is the client's, and two clients may
/// have chosen the same.
pub(crate) fn call_params(
    tool: &ToolName,
    arguments: Option<&RawValue>,
    meta: Option<&RawValue>,
    token: Option<&ProgressToken>,
) -> Result<Box<RawValue>, serde_json::Error> {
    let mut meta = meta.map(Members::parse).transpose()?.unwrap_or_default();
    match token {
        Some(token) => meta.set(PROGRESS_TOKEN, to_raw_value(token)?),
        None => meta.remove(PROGRESS_TOKEN),
    }
    to_raw_value(&CallParams {
        name: tool,
        arguments,
        meta,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn arguments_and_meta_pass_and_the_token_is_replaced() {
        let tool: ToolName = "echo".parse().unwrap();
        let arguments = raw(r#"{ "b": 1.0, "a": 10000000000000000000000 }"#);
        let meta = raw(r#"{"progressToken":"theirs","traceparent":"00-1"}"#);
        let token = ProgressToken::from(7);
        let params = call_params(&tool, Some(&arguments), Some(&meta), Some(&token)).unwrap();
        assert_eq!(
            params.get(),
            r#"{"name":"echo","arguments":{ "b": 1.0, "a": 10000000000000000000000 },"_meta":{"progressToken":7,"traceparent":"00-1"}}"#
        );
    }

    #[test]
    fn nothing_is_added_where_nothing_was_given() {
        let tool: ToolName = "echo".parse().unwrap();
        let meta = raw(r#"{"progressToken":3}"#);
        let params = call_params(&tool, None, Some(&meta), None).unwrap();
        assert_eq!(params.get(), r#"{"name":"echo"}"#);
    }

    #[test]
    fn meta_that_is_not_an_object_is_an_error() {
        let tool: ToolName = "echo".parse().unwrap();
        assert!(call_params(&tool, None, Some(&raw("[1]")), None).is_err());
    }
}
