//! The params of `tools/call`, put together without touching what the client wrote.

use mcp::Json;
use policy::ToolName;

/// Puts the params together; `None` if `_meta` is not an object.
pub(crate) fn call_params(
    tool: &ToolName,
    arguments: Option<&Json<'_>>,
    meta: Option<&Json<'_>>,
) -> Option<Json<'static>> {
    let is_empty = match meta {
        Some(meta) => meta.members()?.next().is_none(),
        None => true,
    };
    Some(Json::object([
        ("name", Some(&Json::string(tool.as_str()))),
        ("arguments", arguments),
        ("_meta", meta.filter(|_| !is_empty)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json<'static> {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn arguments_and_meta_keep_their_bytes() {
        let tool: ToolName = "echo".parse().unwrap();
        let arguments = json(r#"{ "b": 1.0, "a": 10000000000000000000000 }"#);
        let meta = json(r#"{"traceparent":"00-1"}"#);
        let params = call_params(&tool, Some(&arguments), Some(&meta)).unwrap();
        assert_eq!(
            params.get(),
            r#"{"name":"echo","arguments":{ "b": 1.0, "a": 10000000000000000000000 },"_meta":{"traceparent":"00-1"}}"#
        );
    }

    #[test]
    fn nothing_is_added_where_nothing_was_given() {
        let tool: ToolName = "echo".parse().unwrap();
        let params = call_params(&tool, None, Some(&json("{}"))).unwrap();
        assert_eq!(params.get(), r#"{"name":"echo"}"#);
    }

    #[test]
    fn meta_that_is_not_an_object_is_an_error() {
        let tool: ToolName = "echo".parse().unwrap();
        assert!(call_params(&tool, None, Some(&json("[1]"))).is_none());
    }
}
