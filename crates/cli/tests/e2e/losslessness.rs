//! Whatever an upstream answers reaches the client byte for byte.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use testkit::{HttpUpstream, Script, TestDaemon, Tool, Wire};

use crate::support::{call, home, read};

/// How many random results each kind of upstream answers.
const CASES: usize = 24;

/// Numbers that a parser with 64 bits, or one that normalises, would change.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("1.0".to_owned()),
        Just("1".to_owned()),
        Just("-0".to_owned()),
        Just("1E400".to_owned()),
        Just("0.1000".to_owned()),
        Just("2.5e+03".to_owned()),
        "[1-9][0-9]{20,40}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#""\u0041\/""#.to_owned()),
        Just(r#""\ud83d\ude00""#.to_owned()),
        Just(r#""\u0000\u2028""#.to_owned()),
        Just("\"\u{2028}😀\"".to_owned()),
        // No quotes, escapes or control characters: the text stands in JSON as it is.
        "[ a-z<>&éß漢]{0,12}".prop_map(|text| format!("\"{text}\"")),
    ]
}

/// Names that mean something in other results, in no particular order.
fn member_name() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("tools"),
        Just("messages"),
        Just("resultType"),
        Just("zeta"),
        Just("alpha"),
        Just("x-\\u0075nknown"),
        Just("type"),
        Just("nextCursor"),
    ]
}

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(""), Just(" "), Just("\t"), Just("   ")]
}

/// The text of any JSON value, spaced and spelled in ways no serializer of ours would choose.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        number(),
        text(),
        Just("null".to_owned()),
        Just("true".to_owned())
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let array = proptest::collection::vec(inner.clone(), 0..4);
        let object = proptest::collection::vec((member_name(), inner), 0..4);
        prop_oneof![
            (array, space()).prop_map(|(items, space)| {
                format!("[{space}{}{space}]", items.join(&format!("{space},")))
            }),
            (object, space()).prop_map(|(members, space)| object_text(&members, space)),
        ]
    })
}

fn object_text(members: &[(&str, String)], space: &str) -> String {
    let mut seen = Vec::new();
    let members = members.iter().filter(|(name, _)| {
        let new = !seen.contains(name);
        seen.push(name);
        new
    });
    let members = members.map(|(name, value)| format!("{space}\"{name}\"{space}:{space}{value}"));
    format!("{{{}{space}}}", members.collect::<Vec<_>>().join(","))
}

/// A result of `tools/call` with content of a type nobody knows.
fn result() -> impl Strategy<Value = String> {
    let members = proptest::collection::vec((member_name(), value()), 0..6);
    (members, value(), space()).prop_map(|(mut members, payload, space)| {
        let content = format!(r#"[{space}{{"type":"hologram","payload":{payload}}}]"#);
        members.push(("content", content));
        object_text(&members, space)
    })
}

fn random_results() -> Vec<String> {
    let mut runner = TestRunner::default();
    let results = (0..CASES).map(|_| result().new_tree(&mut runner).unwrap().current());
    results.collect()
}

fn tools(results: &[String]) -> Vec<Tool> {
    let numbered = results.iter().enumerate();
    numbered
        .map(|(number, result)| Tool::read_only(&format!("tool_{number}")).returns(result))
        .collect()
}

async fn assert_unchanged(daemon: &TestDaemon, server: &str, results: &[String]) {
    let last = format!("{server}:tool_{}", results.len() - 1);
    let session = daemon.session_with(&[&last]).await;
    for (number, expected) in results.iter().enumerate() {
        let received = read(&session, &format!("{server}:tool_{number}")).await;
        assert_eq!(&received, expected, "{server}");
    }
}

#[tokio::test]
async fn random_results_of_every_kind_of_upstream_arrive_unchanged() {
    let home = home();
    let (stdio, json_wire, events) = (random_results(), random_results(), random_results());
    let upstream = home.upstream("stdio", &Script::new(tools(&stdio)));
    let script = Script::new(tools(&json_wire));
    let http = HttpUpstream::start(home.path(), "http", script).await;
    let script = Script::new(tools(&events)).wire(Wire::EventStream);
    let sse = HttpUpstream::start(home.path(), "sse", script).await;
    let servers =
        json!({"stdio": upstream.config(), "http": http.config(), "events": sse.config()});
    let daemon = TestDaemon::with_servers(home, servers).await;
    assert_unchanged(&daemon, "stdio", &stdio).await;
    assert_unchanged(&daemon, "http", &json_wire).await;
    assert_unchanged(&daemon, "events", &events).await;
}

#[tokio::test]
async fn the_known_traps_arrive_unchanged() {
    let traps = [
        r#"{"tools":[{"name":"not a list"}],"content":[]}"#,
        r#"{"messages":[],"content":[{"type":"text","text":"x","annotations":{"priority":1.0}}]}"#,
        r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1.0,"m":1,"big":900719925474099312345}}"#,
        r#"{"isError":false,"content":[],"_meta":{"z":1,"a":2}}"#,
        r#"{"content":[{"type":"text","text":"\u00e9 \"quoted\" \\ /"}]}"#,
        r#"{ "content" : [ ] , "unknown" : { } }"#,
        r#"{"content":[],"twice":1,"twice":2}"#,
        r#"{"resultType":"complete","content":[]}"#,
    ]
    .map(str::to_owned);
    let home = home();
    let upstream = home.upstream("stdio", &Script::new(tools(&traps)));
    let script = Script::new(tools(&traps)).wire(Wire::EventStream);
    let sse = HttpUpstream::start(home.path(), "sse", script).await;
    let servers = json!({"stdio": upstream.config(), "events": sse.config()});
    let daemon = TestDaemon::with_servers(home, servers).await;
    assert_unchanged(&daemon, "stdio", &traps).await;
    assert_unchanged(&daemon, "events", &traps).await;
}

#[tokio::test]
async fn a_result_with_line_breaks_keeps_its_meaning() {
    // A line break between tokens cannot survive every framing, but the value must.
    let result = "{\n  \"content\": [\n    {\"type\": \"text\", \"text\": \"a\\nb\"}\n  ]\n}";
    let home = home();
    let tool = Tool::read_only("pretty").returns(result);
    let http = HttpUpstream::start(home.path(), "http", Script::new([tool])).await;
    let daemon = TestDaemon::with_servers(home, json!({"http": http.config()})).await;
    let session = daemon.session_with(&["http:pretty"]).await;
    let received: Value = serde_json::from_str(&read(&session, "http:pretty").await).unwrap();
    assert_eq!(received, serde_json::from_str::<Value>(result).unwrap());
}

#[tokio::test]
async fn arguments_reach_the_upstream_unchanged() {
    let front = crate::support::Front::of([Tool::read_only("echo")]).await;
    let session = front.session("echo").await;
    let odd = r#"{"z":1.0,"a":12345678901234567890123,"\u0041":[ 1 , 2e0 ]}"#;
    let forms = [
        format!(r#""args":{odd}"#),
        format!(r#""args_json":{}"#, json!(odd)),
    ];
    for form in forms {
        let intent = r#""intent":{"operation_type":"read"}"#;
        let arguments = format!(r#"{{"name":"up:echo",{form},{intent}}}"#);
        let result = session.call_raw("call_tool_read", &arguments).await;
        // The upstream answers with the params it was called with, as text.
        let echoed = crate::support::text_of(&result);
        assert!(echoed.contains(odd), "{echoed} from {form}");
    }
    let arguments = call("up:echo", "read");
    session.call("call_tool_read", &arguments).await;
    assert_eq!(front.record.calls().len(), 3);
}
