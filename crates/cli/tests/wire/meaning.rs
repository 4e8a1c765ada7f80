//! A call means the same to mcpproxy and to any upstream, or it is refused.

use serde_json::{Value, json};
use testkit::{Refusal, Script, Session, Tool};

use crate::support::{Front, MODERN, Pipe, Way, home, post_modern};

const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

/// An endpoint, with the start of a call of the harmless tool on it and the harmful tool's name.
const ENDPOINTS: [(&str, &str, &str); 3] = [
    (
        "/mcp",
        r#""name":"call_tool_read","arguments":{"name":"up:look","intent":{"operation_type":"read"}}"#,
        "call_tool_destructive",
    ),
    ("/mcp/server/up", r#""name":"look","arguments":{}"#, "wipe"),
    (
        "/mcp/direct",
        r#""name":"up__look","arguments":{}"#,
        "up__wipe",
    ),
];

fn tools() -> Script {
    Script::new([Tool::read_only("look"), Tool::destructive("wipe")])
}

/// What a modern client says of itself with every request.
fn modern_meta() -> String {
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}}"#
    )
}

/// A call with more members in `params` and in `_meta`.
fn call(way: &Way, members: &str, meta: &str) -> String {
    let mut own = if way.is_modern() {
        modern_meta()
    } else {
        r#""k":1"#.to_owned()
    };
    if !meta.is_empty() {
        own = format!("{own},{meta}");
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{members},"_meta":{{{own}}}}}}}"#
    )
}

/// The messages that one parser reads as a call of the harmless tool and another as something
/// else, with the code that they are refused with.
fn attacks(way: &Way, harmless: &str, harmful: &str) -> Vec<(String, i64)> {
    let plain = call(way, harmless, "");
    let with = |member: String| {
        (
            call(way, &format!("{harmless},{member}"), ""),
            INVALID_PARAMS,
        )
    };
    let with_meta = |meta: &str| (call(way, harmless, meta), INVALID_PARAMS);
    let in_envelope = |member: &str| {
        let message = plain.replacen(r#""id":1"#, &format!(r#""id":1,{member}"#), 1);
        (message, INVALID_REQUEST)
    };
    let other = format!(r#"{{"name":"{harmful}","arguments":{{}}}}"#);
    let mut attacks = vec![
        with(format!(r#""Name":"{harmful}""#)),
        with(format!(r#""NAME":"{harmful}""#)),
        with(format!(r#""name":"{harmful}""#)),
        with(format!(r#""n\u0061me":"{harmful}""#)),
        with(format!(r#""n\u0041me":"{harmful}""#)),
        with(r#""Arguments":{"all":true}"#.to_owned()),
        with(r#""argument\u017f":{"all":true}"#.to_owned()),
        with(r#""arguments":{"all":true}"#.to_owned()),
        with(r#""meta":{"progressToken":1}"#.to_owned()),
        with(r#""tas\u212a":{"ttl":1}"#.to_owned()),
        with_meta(r#""progressToken":1,"progressToken":2"#),
        with_meta(r#""progressToken":1,"ProgressToken":2"#),
        with_meta(r#""progressToken":1,"progress_token":2"#),
        with_meta(r#""IO.modelcontextprotocol/logLevel":"debug""#),
        in_envelope(r#""Method":"tools/call""#),
        in_envelope(r#""method":"ping""#),
        in_envelope(&format!(r#""params":{other}"#)),
        in_envelope(&format!(r#""Params":{other}"#)),
        in_envelope(r#""jsonrpc":"2.0""#),
        in_envelope(r#""Id":2"#),
        (
            plain.replacen("tools/call", r"tools/call\u0000", 1),
            INVALID_REQUEST,
        ),
        (
            plain.replacen("tools/call", "Tools/Call", 1),
            INVALID_REQUEST,
        ),
        (
            plain.replacen("tools/call", r"tool\u017f/call", 1),
            INVALID_REQUEST,
        ),
        // Without an id it is a notification: not answered, and once neither checked nor recorded.
        (plain.replacen(r#""id":1,"#, "", 1), INVALID_REQUEST),
    ];
    if !way.is_modern() {
        let listed = format!(r#"["{harmful}",{{}}]"#);
        attacks.push((
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{listed}}}"#),
            INVALID_PARAMS,
        ));
        attacks.push((format!("[{}]", attacks[0].0), INVALID_PARAMS));
    }
    attacks
}

async fn assert_all_refused(way: &mut Way, harmless: &str, harmful: &str) {
    for (message, code) in attacks(way, harmless, harmful) {
        let answer = way.send(&message).await;
        assert_eq!(answer["error"]["code"], code, "{message} gave {answer}");
    }
    // Whereas what can be read in one way only is carried out.
    let answer = way.send(&call(way, harmless, "")).await;
    let result = &answer["result"];
    assert!(result.is_object() && result["isError"] != true, "{answer}");
}

#[tokio::test]
async fn a_call_that_could_be_read_in_two_ways_is_refused_on_every_endpoint_and_not_sent() {
    let front = Front::with(json!({}), &tools()).await;
    let mut allowed = 0;
    for (endpoint, harmless, harmful) in ENDPOINTS {
        let url = front.daemon.url(endpoint);
        let ways = [Way::Legacy(Session::open(&url).await), Way::Modern { url }];
        for mut way in ways {
            assert_all_refused(&mut way, harmless, harmful).await;
            allowed += 1;
            let calls = front.record.calls();
            assert_eq!(calls.len(), allowed, "{endpoint}: {calls:?}");
            assert!(
                calls.iter().all(|params| params["name"] == "look"),
                "{calls:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_call_that_could_be_read_in_two_ways_is_refused_on_a_pipe() {
    let home = home();
    let upstream = home.upstream("up", &tools());
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    let mut pipe = Pipe::open(&home).await;
    let (_, harmless, harmful) = ENDPOINTS[0];
    let search = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"retrieve_tools","arguments":{"query":"look"}}}"#;
    testkit::wait_until("the tool is found", testkit::DEADLINE, async || {
        pipe.write(search).await;
        pipe.next().await.to_string().contains("up:look")
    })
    .await;
    let mut way = Way::Stdio(Box::new(pipe));
    assert_all_refused(&mut way, harmless, harmful).await;
    assert_eq!(upstream.record().calls().len(), 1);
}

#[tokio::test]
async fn arguments_with_a_member_given_twice_are_refused_everywhere() {
    let front = Front::with(json!({}), &tools()).await;
    let twice = r#"{"a":[{"x":1,"\u0078":2}]}"#;
    let quoted = serde_json::to_string(twice).unwrap();
    let intent = r#""intent":{"operation_type":"read"}"#;
    let table = [
        (
            "/mcp",
            "call_tool_read",
            format!(r#"{{"name":"up:look",{intent},"args":{twice}}}"#),
        ),
        (
            "/mcp",
            "call_tool_read",
            format!(r#"{{"name":"up:look",{intent},"args_json":{quoted}}}"#),
        ),
        ("/mcp/server/up", "look", twice.to_owned()),
        ("/mcp/direct", "up__look", twice.to_owned()),
    ];
    for (endpoint, name, arguments) in table {
        let url = front.daemon.url(endpoint);
        let members = format!(r#""name":"{name}","arguments":{arguments}"#);
        for mut way in [
            Way::Legacy(Session::open(&url).await),
            Way::Modern { url: url.clone() },
        ] {
            let answer = way.send(&call(&way, &members, "")).await;
            let refusal = Refusal::of(&answer["result"].to_string());
            assert_eq!(refusal.code, "INVALID_ARGS", "{endpoint}: {answer}");
            assert!(refusal.message.contains("`x` is given twice"), "{answer}");
        }
    }
    assert_eq!(front.record.calls(), Vec::<Value>::new());
}

#[tokio::test]
async fn refused_modern_requests_have_the_status_of_a_bad_request_and_their_id() {
    let front = Front::with(json!({}), &tools()).await;
    let url = front.daemon.url("/mcp/server/up");
    let way = Way::Modern { url: url.clone() };
    let message = call(&way, r#""name":"look","Name":"wipe""#, "");
    let (status, body) = post_modern(&url, &message).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &answer["id"]), (400, &json!(1)));
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(
        text.contains("`Name`") && text.contains("use `name`"),
        "{text}"
    );
}

#[tokio::test]
async fn the_tokens_that_upstreams_report_progress_under_cannot_be_guessed() {
    let front = Front::with(json!({}), &tools()).await;
    for (endpoint, harmless, _) in ENDPOINTS {
        let mut way = Way::Legacy(Session::open(&front.daemon.url(endpoint)).await);
        for token in [r#""progressToken":1"#, r#""progressToken":"mine""#] {
            way.send(&call(&way, harmless, token)).await;
        }
    }
    let calls = front.record.calls();
    let mut tokens: Vec<u64> = calls
        .iter()
        .map(|params| params["_meta"]["progressToken"].as_u64().unwrap())
        .collect();
    assert_eq!(tokens.len(), 2 * ENDPOINTS.len());
    tokens.sort_unstable();
    // Random ones this near each other or this small do not occur in the lifetime of this test.
    assert!(tokens[0] > 1_000, "{tokens:?}");
    assert!(
        tokens.windows(2).all(|pair| pair[1] - pair[0] > 1_000),
        "{tokens:?}"
    );
}
