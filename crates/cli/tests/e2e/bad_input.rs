//! Whatever arrives, there is a clear error or it is skipped, and everything else goes on.

use serde_json::{Value, json};
use testkit::{Outcome, Refusal, Script, Session, TestDaemon, Tool};

use crate::support::{Front, call, home, read, text_of, wait_until_callable};

const DEPTH: usize = 100_000;

/// Two upstreams: whatever is done to `up`, `other` has to go on as before.
async fn two(script: &Script) -> (TestDaemon, Session) {
    let home = home();
    let up = home.upstream("up", script);
    let other = home.upstream("other", &Script::new([Tool::read_only("steady")]));
    let servers = json!({"up": up.config(), "other": other.config()});
    let daemon = TestDaemon::with_servers(home, servers).await;
    let session = daemon.session_with(&["other:steady"]).await;
    (daemon, session)
}

async fn assert_untouched(daemon: &TestDaemon, session: &Session) {
    assert!(daemon.is_up().await);
    text_of(&read(session, "other:steady").await);
}

#[tokio::test]
async fn unknown_names_get_a_suggestion() {
    let front = Front::of([Tool::read_only("list_issues")]).await;
    let session = front.session("list_issues").await;
    let cases = [
        ("up:list_isues", "UNKNOWN_TOOL", "up:list_issues"),
        ("upp:list_issues", "UNKNOWN_SERVER", "up"),
        ("nowhere:nothing", "UNKNOWN_SERVER", "nowhere"),
        ("list_issues", "INVALID_TOOL_NAME", "server:tool"),
        ("", "INVALID_TOOL_NAME", "server:tool"),
    ];
    for (name, code, word) in cases {
        let refusal = session.refusal("call_tool_read", &call(name, "read")).await;
        assert_eq!(refusal.code, code, "{name}");
        assert!(
            refusal.message.contains(word),
            "{name}: {}",
            refusal.message
        );
    }
    assert!(front.record.calls().is_empty());
}

#[tokio::test]
async fn arguments_that_are_not_one_object_are_refused() {
    let front = Front::of([Tool::read_only("any")]).await;
    let session = front.session("any").await;
    let cases = [
        (r#""args_json":"{not json""#, "args_json"),
        (r#""args_json":"[1]""#, "object"),
        (r#""args_json":"{} {}""#, "args_json"),
        (r#""args_json":{}"#, "args_json"),
        (r#""args":[1]"#, "object"),
        (r#""args":"text""#, "object"),
        (r#""args":{},"args_json":"{}""#, "both"),
        (r#""args":{"a":1,"a":2}"#, "twice"),
        (r#""args":{"deep":[{"a":1,"\u0061":2}]}"#, "twice"),
        (r#""args_json":"{\"a\":1,\"a\":1}""#, "twice"),
        (r#""argz":{}"#, "argz"),
    ];
    for (members, word) in cases {
        let intent = r#""intent":{"operation_type":"read"}"#;
        let arguments = format!(r#"{{"name":"up:any",{intent},{members}}}"#);
        let refusal = Refusal::of(&session.call_raw("call_tool_read", &arguments).await);
        assert_eq!(refusal.code, "INVALID_ARGS", "{members}");
        assert!(
            refusal.message.contains(word),
            "{members}: {}",
            refusal.message
        );
    }
    assert!(front.record.calls().is_empty());
}

#[tokio::test]
async fn nesting_without_end_is_an_error_and_no_crash() {
    let (daemon, session) = two(&Script::new([Tool::read_only("any")])).await;
    daemon.wait_for_tool(&session, "up:any").await;
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(DEPTH), "]".repeat(DEPTH));
    let intent = r#""intent":{"operation_type":"read"}"#;
    for members in [
        format!(r#""args":{deep}"#),
        format!(r#""args_json":{}"#, json!(deep)),
    ] {
        let arguments = format!(r#"{{"name":"up:any",{intent},{members}}}"#);
        let refusal = Refusal::of(&session.call_raw("call_tool_read", &arguments).await);
        assert_eq!(refusal.code, "INVALID_ARGS");
        assert!(refusal.message.len() < 500, "{}", refusal.message);
    }
    // The same in the place of a whole request, of its params and of a batch.
    let bodies = [
        "[".repeat(DEPTH),
        "{\"a\":".repeat(DEPTH),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{deep}}}"#),
    ];
    for body in bodies {
        let status = session.post(&body).await.status;
        assert!((200..500).contains(&status), "{status}");
    }
    assert_untouched(&daemon, &session).await;
}

#[tokio::test]
async fn a_deep_result_passes_through_or_is_kept_for_read_cache() {
    let result = format!(
        r#"{{"content":[],"x":{}{}}}"#,
        "[".repeat(DEPTH),
        "]".repeat(DEPTH)
    );
    let (daemon, session) = two(&Script::new([Tool::read_only("deep").returns(&result)])).await;
    daemon.wait_for_tool(&session, "up:deep").await;
    // Reading it back would overflow our own parser, so the bytes are looked for as they are.
    let body = session.post(&request("up:deep")).await.body;
    assert!(
        body.contains(&result) || body.contains("Read it with read_cache"),
        "{body:.400}"
    );
    assert_untouched(&daemon, &session).await;
}

fn request(tool: &str) -> String {
    let params = json!({"name": "call_tool_read", "arguments": call(tool, "read")});
    json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test]
async fn bodies_that_are_no_requests_get_a_client_error() {
    let (daemon, session) = two(&Script::new([])).await;
    for body in [
        "",
        "{",
        "null",
        "42",
        "\"text\"",
        r#"{"jsonrpc":"2.0"}"#,
        "\u{feff}{}",
    ] {
        let reply = session.post(body).await;
        assert!(
            (400..500).contains(&reply.status),
            "{body:?}: {} {}",
            reply.status,
            reply.body
        );
    }
    let answer = session.request("no/such/method", "{}").await;
    assert_eq!(answer.result.unwrap_err()["code"], -32601);
    assert_untouched(&daemon, &session).await;
}

#[tokio::test]
async fn a_line_of_64_mebibytes_harms_only_its_own_call() {
    let huge = Tool::read_only("huge").outcome(Outcome::Huge { mebibytes: 64 });
    let (daemon, session) = two(&Script::new([huge, Tool::read_only("small")])).await;
    daemon.wait_for_tool(&session, "up:huge").await;
    let reply = session.post(&request("up:huge")).await;
    assert!(reply.body.len() < 1 << 20, "{} bytes", reply.body.len());
    let answer = reply.answer_to(77).result.unwrap();
    let value: Value = serde_json::from_str(&answer).unwrap();
    assert!(
        value["isError"] == true || answer.contains("read_cache"),
        "neither refused nor cut: {}",
        &answer[..500.min(answer.len())]
    );
    assert_untouched(&daemon, &session).await;
    wait_until_callable(&session, "up:small").await;
}

#[tokio::test]
async fn banners_and_chatter_on_stdout_are_skipped() {
    let mut tool = Tool::read_only("chatty").returns(r#"{"content":[],"n":1.0}"#);
    tool.behaviour.before = vec!["about to answer".to_owned(), "{\"half\":".to_owned()];
    tool.behaviour.after = vec!["[]".to_owned(), "\u{1b}[31mdone".to_owned()];
    let mut script = Script::new([tool]);
    script.start.banner = vec!["Welcome to the server!".to_owned(), String::new()];
    script.start.stderr_mebibytes = 4;
    let (daemon, session) = two(&script).await;
    daemon.wait_for_tool(&session, "up:chatty").await;
    for _ in 0..3 {
        assert_eq!(
            read(&session, "up:chatty").await,
            r#"{"content":[],"n":1.0}"#
        );
    }
    assert_untouched(&daemon, &session).await;
}

#[tokio::test]
async fn an_error_of_the_upstream_is_told_as_one() {
    let error = Outcome::Error {
        code: -32050,
        message: "out of paper".to_owned(),
    };
    let front = Front::of([Tool::read_only("fails").outcome(error)]).await;
    let session = front.session("fails").await;
    let refusal = session
        .refusal("call_tool_read", &call("up:fails", "read"))
        .await;
    assert_eq!(refusal.code, "UPSTREAM_ERROR");
    assert!(
        refusal.message.contains("out of paper"),
        "{}",
        refusal.message
    );
}

#[tokio::test]
async fn a_tool_that_fails_is_not_a_refusal() {
    let result = r#"{"isError":true,"content":[{"type":"text","text":"no such file"}]}"#;
    let front = Front::of([Tool::read_only("fails").returns(result)]).await;
    let session = front.session("fails").await;
    assert_eq!(read(&session, "up:fails").await, result);
}

#[tokio::test]
async fn definitions_that_make_no_sense_do_not_hide_the_others() {
    let script = Script::new([
        Tool::defined(&json!({"name": "no_schema"})),
        Tool::annotated(
            "odd_hints",
            &json!({"readOnlyHint": "yes", "destructiveHint": 1}),
        ),
        Tool::annotated("no_object", &json!("read only")),
        Tool::read_only("sound"),
    ]);
    let (daemon, session) = two(&script).await;
    for tool in ["up:sound", "up:odd_hints", "up:no_schema", "up:no_object"] {
        daemon.wait_for_tool(&session, tool).await;
    }
    text_of(&read(&session, "up:sound").await);
    assert_untouched(&daemon, &session).await;
}
