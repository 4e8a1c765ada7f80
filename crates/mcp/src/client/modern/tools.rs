//! What the client has learnt of a server's tools while it carried lists of them: which arguments
//! have to be repeated as headers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;

use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Members;
use crate::lock::lock;
use crate::modern::ParameterHeaders;

/// More tools than any real server has that want headers.
const MOST_TOOLS: usize = 10_000;

/// See the module's description.
#[derive(Debug, Default)]
pub struct ToolHeaders(Mutex<HashMap<String, ParameterHeaders>>);

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl ToolHeaders {
    /// Learns from a result of `tools/list`, and takes out of it the tools that no client may call
    /// over HTTP because of the headers they ask for.
    pub fn learn(&self, result: Box<RawValue>) -> Box<RawValue> {
        let Ok(page) = serde_json::from_str::<Page<'_>>(result.get()) else {
            return result;
        };
        let listed = page.tools.len();
        let usable: Vec<_> = page
            .tools
            .into_iter()
            .filter(|tool| self.learn_one(tool))
            .collect();
        if usable.len() == listed {
            return result;
        }
        without(&result, &usable).unwrap_or_else(|| result.clone())
    }

    /// Whether the tool can be used.
    fn learn_one(&self, tool: &RawValue) -> bool {
        // What is wrong with it otherwise is for others to find out.
        let Ok(Tool { name, input_schema }) = serde_json::from_str(tool.get()) else {
            return true;
        };
        let parameters = input_schema.map(ParameterHeaders::of_schema);
        let mut known = lock(&self.0);
        match parameters.unwrap_or_else(|| Ok(ParameterHeaders::default())) {
            Ok(parameters) if parameters.is_empty() => {
                known.remove(&*name);
                true
            }
            Ok(parameters) => {
                if known.len() < MOST_TOOLS || known.contains_key(&*name) {
                    known.insert(name.into_owned(), parameters);
                }
                true
            }
            Err(error) => {
                tracing::warn!(tool = %name, %error, "tool left out");
                known.remove(&*name);
                false
            }
        }
    }

    /// The headers of a call with these params.
    pub fn headers(&self, params: Option<&RawValue>) -> Vec<(HeaderName, HeaderValue)> {
        let known = lock(&self.0);
        if known.is_empty() {
            return Vec::new();
        }
        let call = params.and_then(|raw| serde_json::from_str::<ToolCall<'_>>(raw.get()).ok());
        let headers = call.and_then(|call| Some(known.get(&*call.name)?.derive(call.arguments)));
        headers.unwrap_or_default()
    }
}

fn without(result: &RawValue, usable: &[&RawValue]) -> Option<Box<RawValue>> {
    let mut members = Members::parse(result).ok()?;
    members.set("tools", serde_json::value::to_raw_value(usable).ok()?);
    members.to_raw().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn tool(name: &str, header: &str) -> String {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"type": "object","properties":{{"a":{{"type":"string","x-mcp-header":"{header}"}}}}}}}}"#
        )
    }

    #[test]
    fn a_tool_that_asks_for_impossible_headers_is_taken_out_and_the_rest_kept_as_it_is() {
        let (good, bad) = (tool("good", "A"), tool("bad", "not a token"));
        let tools = ToolHeaders::default();
        let untouched = format!(r#"{{"tools": [ {good} ], "x": 1.0}}"#);
        assert_eq!(tools.learn(raw(&untouched)).get(), untouched);
        let mixed = format!(r#"{{"tools":[{bad}, {good}],"nextCursor":"c"}}"#);
        let expected = format!(r#"{{"tools":[{good}],"nextCursor":"c"}}"#);
        assert_eq!(tools.learn(raw(&mixed)).get(), expected);
    }

    #[test]
    fn headers_are_those_of_the_newest_list() {
        let tools = ToolHeaders::default();
        let call = raw(r#"{"name":"t","arguments":{"a":"x"}}"#);
        let names = |tools: &ToolHeaders| -> Vec<String> {
            let headers = tools.headers(Some(&call));
            headers.iter().map(|(name, _)| name.to_string()).collect()
        };
        assert!(names(&tools).is_empty());
        for header in ["One", "Two"] {
            tools.learn(raw(&format!(r#"{{"tools":[{}]}}"#, tool("t", header))));
            assert_eq!(
                names(&tools),
                [format!("mcp-param-{}", header.to_lowercase())]
            );
        }
        tools.learn(raw(r#"{"tools":[{"name":"t","inputSchema":{}}]}"#));
        assert!(names(&tools).is_empty());
    }
}
