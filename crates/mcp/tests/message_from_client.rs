//! What is refused in the messages of clients because two parsers could read it in two ways.
#![cfg(test)]

use mcp::{Inbound, Message, RequestId, codes};
use proptest::prelude::*;
use serde_json::Value;

fn parse(text: &str) -> Result<Message, (i64, String, Option<RequestId>)> {
    match Inbound::parse_from_client(text.as_bytes()) {
        Ok(Inbound::One(message)) => Ok(message),
        Ok(Inbound::Batch(_)) => panic!("{text} was read as a batch"),
        Err(error) => {
            let response = error.to_response();
            let error = response.outcome.unwrap_err();
            Err((error.code, error.message, response.id))
        }
    }
}

fn request(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#)
}

fn params_of(text: &str) -> String {
    match parse(text).unwrap() {
        Message::Request(request) => request.params.unwrap().get().to_owned(),
        other => panic!("{text} gave {other:?}"),
    }
}

fn assert_refused(text: &str, code: i64, named: &str) {
    let (got, message, _) = parse(text).expect_err(text);
    assert_eq!(got, code, "{text} gave {message}");
    assert!(message.contains(named), "{text} gave {message}");
}

#[test]
fn a_member_of_the_envelope_is_given_once_and_in_its_own_case() {
    let table = [
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"ping"}"#,
            "`jsonrpc` is given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#,
            "`id` is given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","m\u0065thod":"tools/call"}"#,
            "`method` is given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","Method":"tools/call"}"#,
            "`Method`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","PARAMS":{}}"#,
            "`PARAMS`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","param\u017f":{}}"#,
            "`paramſ`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","x":1,"x":2}"#,
            "`x` is given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"result":{},"Result":{}}"#,
            "`Result`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""},"_error":{}}"#,
            "`_error`",
        ),
    ];
    for (text, named) in table {
        assert_refused(text, codes::INVALID_REQUEST, named);
    }
}

#[test]
fn the_sender_of_a_request_is_told_under_its_id_and_that_of_a_response_is_not() {
    let id = |text: &str| parse(text).unwrap_err().2;
    assert_eq!(id(&request(r#"{"Name":"x"}"#)), Some(RequestId::from(7)));
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":7,"method":"ping","Id":8}"#),
        Some(RequestId::from(7))
    );
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":7,"result":{},"Result":{}}"#),
        None
    );
}

#[test]
fn a_member_of_params_is_given_once_and_in_its_own_case() {
    let table = [
        (
            r#"{"name":"list","Name":"delete","arguments":{}}"#,
            "`Name`",
        ),
        (r#"{"name":"list","n\u0041me":"delete"}"#, "`nAme`"),
        (
            r#"{"name":"list","arguments":{},"Arguments":{}}"#,
            "`Arguments`",
        ),
        (r#"{"name":"list","argument\u017f":{}}"#, "`argumentſ`"),
        (
            r#"{"name":"list","name":"delete"}"#,
            "`name` is given twice",
        ),
        (
            r#"{"name":"list","\u006eame":"delete"}"#,
            "`name` is given twice",
        ),
        (r#"{"name":"list","x":1,"x":2}"#, "`x` is given twice"),
        (r#"{"name":"list","tas\u212a":{}}"#, "use `task`"),
        (r#"{"ur\u0131":"file:///etc"}"#, "`urı`"),
        (r#"{"ur\u0130":"file:///etc"}"#, "use `uri`"),
        (
            r#"{"name":"list","meta":{"progressToken":1}}"#,
            "use `_meta`",
        ),
        (r#"{"name":"list","_Meta":{}}"#, "`_Meta`"),
        (
            r#"{"name":"list","request_state":"x"}"#,
            "use `requestState`",
        ),
        (
            r#"{"ref":{"name":"a","Name":"b"}}"#,
            "in params.ref, member `Name`",
        ),
        (
            r#"{"ref":{"name":"a","name":"b"}}"#,
            "in params.ref, member `name` is given twice",
        ),
    ];
    for (params, named) in table {
        assert_refused(&request(params), codes::INVALID_PARAMS, named);
    }
}

#[test]
fn a_member_of_meta_is_given_once_and_in_its_own_case() {
    let table = [
        (
            r#""progressToken":1,"progressToken":2"#,
            "`progressToken` is given twice",
        ),
        (
            r#""progressToken":1,"progress\u0054oken":2"#,
            "`progressToken` is given twice",
        ),
        (r#""ProgressToken":1"#, "`ProgressToken`"),
        (r#""progress_token":1"#, "`progress_token`"),
        (r#""progre\u017f\u017fTo\u212aen":1"#, "use `progressToken`"),
        (
            r#""io.modelcontextprotocol/protocolversion":"x""#,
            "protocolversion`",
        ),
        (
            r#""IO.modelcontextprotocol/later":"x""#,
            "use `io.modelcontextprotocol/`",
        ),
        (
            r#""io.modelconte\u0058tprotoco\u006c/later":"x""#,
            "use `io.modelcontextprotocol/`",
        ),
        (r#""Traceparent":"x""#, "`Traceparent`"),
        (r#""x":1,"x":1"#, "`x` is given twice"),
        (r#""progressToken":{}"#, "must be a string or a number"),
    ];
    for (meta, named) in table {
        let text = request(&format!(r#"{{"name":"list","_meta":{{{meta}}}}}"#));
        assert_refused(&text, codes::INVALID_PARAMS, named);
    }
}

#[test]
fn params_and_meta_are_objects() {
    for params in ["[]", r#"["list",{}]"#, "1", "1.5", "-1", "true", "\"x\""] {
        assert_refused(
            &request(params),
            codes::INVALID_PARAMS,
            "params must be an object",
        );
    }
    for meta in ["[]", "1", "\"x\"", "false"] {
        let text = request(&format!(r#"{{"name":"x","_meta":{meta}}}"#));
        assert_refused(
            &text,
            codes::INVALID_PARAMS,
            "params._meta must be an object",
        );
    }
    let notified = r#"{"jsonrpc":"2.0","method":"notifications/x","params":[]}"#;
    assert_refused(notified, codes::INVALID_PARAMS, "params must be an object");
    assert!(parse(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#).is_ok());
    assert_eq!(params_of(&request(r#"{"_meta":null,"a":1}"#)), r#"{"a":1}"#);
    let no_token = r#"{"_meta":{"progressToken":null,"a":1}}"#;
    assert_eq!(params_of(&request(no_token)), r#"{"_meta":{"a":1}}"#);
}

#[test]
fn what_passes_keeps_its_values_and_loses_its_escaped_names() {
    let params = r#"{ "n\u0061me" : "a" , "arguments":{ "Name":1.0,"name": 1e2 },"_meta":{ "x":1.0, "tr\u0061ce":[ ] } }"#;
    assert_eq!(
        params_of(&request(params)),
        r#"{"name":"a","arguments":{ "Name":1.0,"name": 1e2 },"_meta":{"x":1.0,"trace":[ ]}}"#
    );
    let plain = r#"{"custom":1,"Custom":2,"_meta":{ "vendor/Key":1,"vendor/key":2 }}"#;
    assert_eq!(params_of(&request(plain)), plain);
}

#[test]
fn a_method_cannot_pass_for_another() {
    let table = [
        ("Tools/Call", "only in case"),
        ("tools/ca\u{17f}l", "visible ASCII"),
        ("tools/call\u{0}", "visible ASCII"),
        ("tools/call ", "visible ASCII"),
        ("\u{feff}tools/call", "visible ASCII"),
        ("tools/_call", "only in case"),
        ("", "1 to 128"),
        ("notifications/cancelled", "no `id`"),
    ];
    for (method, named) in table {
        let method = serde_json::to_string(method).unwrap();
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":{method},"params":{{}}}}"#);
        assert_refused(&text, codes::INVALID_REQUEST, named);
    }
    for method in ["tools/call", "resources/subscribe", "vendor/run"] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{}}}}"#);
        assert_refused(&text, codes::INVALID_REQUEST, "needs an `id`");
    }
    for method in ["vendor/run", "tools/call", "server/discover"] {
        parse(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#
        ))
        .unwrap();
    }
    parse(r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#).unwrap();
}

#[test]
fn odd_text_is_refused() {
    for text in [
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","\ud800":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\udc00":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\u{0}",
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":1e99999}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#,
    ] {
        assert_refused(text, codes::PARSE_ERROR, "Parse error");
    }
    for id in ["{}", "[1]", "true", "null"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_refused(&text, codes::INVALID_REQUEST, "`id` must be");
    }
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
        "x".repeat(2_000)
    );
    assert_refused(&long, codes::INVALID_REQUEST, "`id` is too long");
}

#[test]
fn nesting_is_bounded_in_every_member() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deep = nested(200);
    for params in [
        format!(r#"{{"name":"x","_meta":{{"a":{deep}}}}}"#),
        format!(r#"{{"name":"x","custom":{deep}}}"#),
    ] {
        assert_refused(&request(&params), codes::INVALID_PARAMS, "128 levels");
    }
    let prompt = request(&format!(r#"{{"arguments":{{"a":{deep}}}}}"#));
    let prompt = prompt.replace("tools/call", "prompts/get");
    assert_refused(&prompt, codes::INVALID_PARAMS, "128 levels");
    let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{deep}}}"#);
    assert_refused(&answer, codes::INVALID_REQUEST, "128 levels");
    // Those of a tool are checked by the service, which records what it refuses.
    parse(&request(&format!(r#"{{"arguments":{{"a":{deep}}}}}"#))).unwrap();
}

#[test]
fn one_bad_message_costs_its_batch() {
    let text = format!("[{},{}]", request("{}"), request(r#"{"Name":"x"}"#));
    let error = Inbound::parse_from_client(text.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_response().outcome.unwrap_err().code,
        codes::INVALID_PARAMS
    );
}

/// Reads params as a parser would that ignores case and takes the last of several.
fn loosely(params: &Value, wanted: &str) -> Option<Value> {
    let members = params.as_object()?.iter().rev();
    let mut matching = members.filter(|(name, _)| name.to_lowercase() == wanted.to_lowercase());
    matching.next().map(|(_, value)| value.clone())
}

/// Names that are, resemble or have nothing to do with those of the protocol.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[nN][aA][mM][eE]",
        "[uU][rR][iI]",
        "[aA]rgument[sSſ]",
        "_?[mM]eta",
        "[a-z]{1,3}",
    ]
}

proptest! {
    /// Whatever is accepted means the same to a strict parser and to a loose one.
    #[test]
    fn accepted_params_have_one_meaning(members in prop::collection::vec((name(), 0..3_u8), 0..6)) {
        let text: Vec<_> = members.iter().map(|(name, value)| {
            let value = if name.to_lowercase().contains("meta") { "{}".to_owned() } else { value.to_string() };
            format!("{}:{value}", serde_json::to_string(name).unwrap())
        }).collect();
        let text = request(&format!("{{{}}}", text.join(",")));
        if parse(&text).is_ok() {
            let params: Value = serde_json::from_str(&params_of(&text)).unwrap();
            for wanted in ["name", "uri", "arguments", "_meta"] {
                prop_assert_eq!(params.get(wanted).cloned(), loosely(&params, wanted));
            }
            let named = members.iter().filter(|(name, _)| name == "name").count();
            prop_assert!(named <= 1);
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Inbound::parse_from_client(&bytes);
    }
}
