//! What only the modern era allows, in a form that legacy clients can read. Their SDKs check results: one
//! tool whose output is no object would cost them the whole list, and such a result the whole call.

use memchr::memmem;
use serde_json::value::{RawValue, to_raw_value};

use super::session_id::unguessable;
use crate::{Json, Members};

/// Gives a result its legacy form; `None` if it has that already, as nearly every result has.
type Projection = fn(&RawValue) -> Option<Box<RawValue>>;

/// What the results of a method need for a legacy client.
pub(super) fn of_results(method: &str) -> Option<Projection> {
    match method {
        "tools/list" => Some(tools),
        "tools/call" => Some(called),
        _ => None,
    }
}

/// The params of a question in a form of the legacy era, which wants an id of an address to be visited.
pub(super) fn question(method: &str, params: Option<Box<RawValue>>) -> Option<Box<RawValue>> {
    let params = params?;
    let projected = (method == "elicitation/create").then(|| elicitation(&params));
    Some(projected.flatten().unwrap_or(params))
}

/// A list in which some tool's `outputSchema` is not that of an object, without that schema.
fn tools(list: &RawValue) -> Option<Box<RawValue>> {
    memmem::find(list.get().as_bytes(), b"outputSchema")?;
    let mut members = Members::parse(list).ok()?;
    let tools: Vec<&RawValue> = serde_json::from_str(members.get("tools")?.get()).ok()?;
    let mut changed = false;
    let tools: Vec<_> = tools
        .into_iter()
        .map(|tool| match without_odd_schema(tool) {
            Some(projected) => {
                changed = true;
                projected
            }
            None => tool.to_owned(),
        })
        .collect();
    if !changed {
        return None;
    }
    let tools = to_raw_value(&tools).ok()?;
    members.set("tools", tools);
    members.to_raw().ok()
}

fn without_odd_schema(tool: &RawValue) -> Option<Box<RawValue>> {
    let mut members = Members::parse(tool).ok()?;
    let schema = Members::parse(members.get("outputSchema")?);
    let is_object = |schema: Members<'_>| {
        let kind = schema.get("type").map(RawValue::get);
        kind == Some(r#""object""#)
    };
    if schema.is_ok_and(is_object) {
        return None;
    }
    members.remove("outputSchema");
    members.to_raw().ok()
}

/// A result whose `structuredContent` is not an object, without it; its content says the same as text.
fn called(result: &RawValue) -> Option<Box<RawValue>> {
    const NAME: &str = "structuredContent";
    memmem::find(result.get().as_bytes(), NAME.as_bytes())?;
    let json = Json::from(result);
    let (_, value) = json.members()?.find(|(name, _)| name == NAME)?;
    if value.get().starts_with('{') {
        return None;
    }
    let mut members = Members::parse(result).ok()?;
    members.remove(NAME);
    members.to_raw().ok()
}

fn elicitation(params: &RawValue) -> Option<Box<RawValue>> {
    let mut members = Members::parse(params).ok()?;
    let is_address = members.get("mode").map(RawValue::get) == Some(r#""url""#);
    if !is_address || members.get("elicitationId").is_some() {
        return None;
    }
    let id = to_raw_value(&unguessable().ok()?).ok()?;
    members.set("elicitationId", id);
    members.to_raw().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn projected(method: &str, text: &str) -> String {
        let projected = of_results(method).unwrap()(&raw(text));
        projected.map_or_else(|| text.to_owned(), |projected| projected.get().to_owned())
    }

    #[test]
    fn a_tool_whose_output_is_no_object_loses_that_schema_and_nothing_else() {
        let list = |odd: &str| {
            format!(
                r#"{{"tools":[{{"name":"a","outputSchema":{{"type":"object"}} }},{{"name":"b"{odd}, "x":1.0}}],"nextCursor":"n"}}"#
            )
        };
        for odd in [
            r#","outputSchema":{"type":"array","items":{}}"#,
            r#","outputSchema":{"anyOf":[]}"#,
            r#","outputSchema":true"#,
        ] {
            let shown = projected("tools/list", &list(odd));
            let (shown, expected): (serde_json::Value, serde_json::Value) = (
                serde_json::from_str(&shown).unwrap(),
                serde_json::from_str(&list("")).unwrap(),
            );
            assert_eq!(shown, expected, "{odd}");
            assert!(shown.to_string().contains("1.0"));
        }
        assert_eq!(projected("tools/list", &list("")), list(""));
    }

    #[test]
    fn structured_content_that_is_no_object_is_left_out() {
        let text =
            r#"{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1],"isError":false}"#;
        assert_eq!(
            projected("tools/call", text),
            r#"{"content":[{"type":"text","text":"[1]"}],"isError":false}"#
        );
        for same in [
            r#"{"content":[], "structuredContent" : {"a":1.0} }"#,
            r#"{"content":[{"type":"text","text":"structuredContent"}]}"#,
        ] {
            assert_eq!(projected("tools/call", same), same);
        }
    }

    #[test]
    fn an_address_to_be_visited_gets_an_id() {
        let asked = |text: &str| {
            let params = question("elicitation/create", Some(raw(text))).unwrap();
            serde_json::from_str::<serde_json::Value>(params.get()).unwrap()
        };
        let with_id = asked(r#"{"mode":"url","url":"https://example.com","message":"m"}"#);
        assert!(with_id["elicitationId"].is_string(), "{with_id}");
        assert!(asked(r#"{"mode":"form","message":"m"}"#)["elicitationId"].is_null());
        let own = asked(r#"{"mode":"url","elicitationId":"theirs"}"#);
        assert_eq!(own["elicitationId"], "theirs");
    }
}
