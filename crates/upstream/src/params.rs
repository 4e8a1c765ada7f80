//! The params of `tools/call`, put together without touching what the client wrote.

use mcp::{Members, RawValue};
use policy::ToolName;
use serde::Serialize;
use serde_json::value::to_raw_value;

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a ToolName,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", skip_serializing_if = "Members::is_empty")]
    meta: Members<'a>,
}

pub(crate) fn call_params(
    tool: &ToolName,
    arguments: Option<&RawValue>,
    meta: Option<&RawValue>,
) -> Result<Box<RawValue>, serde_json::Error> {
    let meta = meta.map(Members::parse).transpose()?.unwrap_or_default();
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
    fn arguments_and_meta_keep_their_bytes() {
        let tool: ToolName = "echo".parse().unwrap();
        let arguments = raw(r#"{ "b": 1.0, "a": 10000000000000000000000 }"#);
        let meta = raw(r#"{"traceparent":"00-1"}"#);
        let params = call_params(&tool, Some(&arguments), Some(&meta)).unwrap();
        assert_eq!(
            params.get(),
            r#"{"name":"echo","arguments":{ "b": 1.0, "a": 10000000000000000000000 },"_meta":{"traceparent":"00-1"}}"#
        );
    }

    #[test]
    fn nothing_is_added_where_nothing_was_given() {
        let tool: ToolName = "echo".parse().unwrap();
        let params = call_params(&tool, None, Some(&raw("{}"))).unwrap();
        assert_eq!(params.get(), r#"{"name":"echo"}"#);
    }

    #[test]
    fn meta_that_is_not_an_object_is_an_error() {
        let tool: ToolName = "echo".parse().unwrap();
        assert!(call_params(&tool, None, Some(&raw("[1]"))).is_err());
    }
}
