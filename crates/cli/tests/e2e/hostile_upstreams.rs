//! Upstreams that break the rules, by mistake or on purpose.

use serde_json::{Value, json};
use testkit::{DEADLINE, Outcome, Script, StdioUpstream, TestDaemon, Tool, wait_until};

use crate::support::{Front, call, home, read, text_of};

/// The entry for an upstream that runs a line of shell before it starts.
fn after_shell(line: &str, upstream: &StdioUpstream) -> Value {
    let config = upstream.config();
    let script = format!("{line}; exec \"$0\" \"$@\"");
    let mut arguments = vec![json!("-c"), json!(script), config["command"].clone()];
    arguments.extend(config["args"].as_array().unwrap().iter().cloned());
    json!({"command": "sh", "args": arguments})
}

#[tokio::test]
async fn bytes_that_are_no_text_are_skipped() {
    let home = home();
    let upstream = home.upstream("up", &Script::new([Tool::read_only("look")]));
    let entry = after_shell(r"printf '\377\376 binary\r\n\000\n'", &upstream);
    let daemon = TestDaemon::with_servers(home, json!({ "up": entry })).await;
    let session = daemon.session_with(&["up:look"]).await;
    text_of(&read(&session, "up:look").await);
}

#[tokio::test]
async fn the_environment_of_the_daemon_is_none_of_their_business() {
    let home = home();
    let upstream = home.upstream("up", &Script::new([Tool::read_only("look")]));
    home.write_config(&json!({"mcpServers": {"up": after_shell("env > env.txt", &upstream)}}));
    let environment = [
        ("MCPPROXY_API_KEY", "k".repeat(40)),
        ("AWS_SECRET", "s3cret".to_owned()),
    ];
    let environment: Vec<_> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let call = ["call", "tool-read", "up:look"];
    home.cli_with(call, testkit::Stdin::Empty, &environment)
        .await
        .succeeded();
    let seen = std::fs::read_to_string(home.path().join("env.txt")).unwrap();
    assert!(seen.contains("PATH=") && seen.contains("HOME="), "{seen}");
    assert!(
        !seen.contains("MCPPROXY_API_KEY") && !seen.contains("s3cret"),
        "{seen}"
    );
}

#[tokio::test]
async fn requests_of_an_upstream_are_answered() {
    let mut tool = Tool::read_only("asks");
    tool.behaviour.before = vec![
        r#"{"jsonrpc":"2.0","id":"are you there","method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":77,"method":"sampling/createMessage","params":{}}"#.to_owned(),
    ];
    let front = Front::of([tool]).await;
    let session = front.session("asks").await;
    text_of(&read(&session, "up:asks").await);
    wait_until("both requests are answered", DEADLINE, async || {
        let answers = front.record.answers();
        answers
            .iter()
            .any(|answer| answer["id"] == "are you there" && answer["result"] == json!({}))
            && answers
                .iter()
                .any(|answer| answer["id"] == 77 && answer["error"].is_object())
    })
    .await;
}

#[tokio::test]
async fn answers_to_questions_nobody_asked_are_ignored() {
    let mut tool = Tool::read_only("confused").returns(r#"{"content":[],"right":true}"#);
    let lie = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"wrong":true}}"#;
    let ids = ["99999", "\"0\"", "null", "-1", "1.5", "{}"];
    tool.behaviour.before = ids.map(|id| lie.replace("ID", id)).to_vec();
    tool.behaviour.after = tool.behaviour.before.clone();
    let front = Front::of([tool]).await;
    let session = front.session("confused").await;
    for _ in 0..3 {
        assert_eq!(
            read(&session, "up:confused").await,
            r#"{"content":[],"right":true}"#
        );
    }
}

#[tokio::test]
async fn a_flood_of_changes_is_read_once_or_twice() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let mut tool = Tool::read_only("shouts");
    tool.behaviour.before = vec![changed.to_owned(); 2_000];
    let front = Front::of([tool]).await;
    let session = front.session("shouts").await;
    text_of(&read(&session, "up:shouts").await);
    wait_until("the list was read again", DEADLINE, async || {
        front.record.received("tools/list").len() > 1
    })
    .await;
    text_of(&read(&session, "up:shouts").await);
    let lists = front.record.received("tools/list").len();
    assert!(lists < 20, "{lists} times");
}

#[tokio::test]
async fn odd_names_of_tools_can_be_called_or_are_left_out() {
    let names = ["with space", "dots.and-dashes", "päper/読む", "a:b:c"];
    let mut tools: Vec<Tool> = names.iter().map(|name| Tool::read_only(name)).collect();
    tools.push(Tool::read_only("line\nbreak"));
    tools.push(Tool::read_only(""));
    tools.push(Tool::defined(&json!({"description": "has no name"})));
    tools.push(Tool::defined(&json!("is no object")));
    tools.push(Tool::read_only("plain"));
    let front = Front::of(tools).await;
    let session = front.session("plain").await;
    for name in names {
        let echoed = text_of(&read(&session, &format!("up:{name}")).await);
        let params: Value = serde_json::from_str(&echoed).unwrap();
        assert_eq!(params["name"], *name);
    }
    let refusal = session
        .refusal("call_tool_read", &call("up:line\nbreak", "read"))
        .await;
    assert!(["INVALID_TOOL_NAME", "UNKNOWN_TOOL"].contains(&refusal.code.as_str()));
}

#[tokio::test]
async fn of_two_tools_with_one_name_there_is_one_for_search_and_calls_alike() {
    let front = Front::of([
        Tool::read_only("twice"),
        Tool::destructive("twice"),
        Tool::read_only("other"),
    ])
    .await;
    let session = front.session("other").await;
    let found = session.retrieve(&json!({"query": "twice"})).await;
    let tools = found["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "{found}");
    let lane = tools[0]["call_with"].as_str().unwrap();
    let operation_type = lane.strip_prefix("call_tool_").unwrap();
    text_of(&session.call(lane, &call("up:twice", operation_type)).await);
}

#[tokio::test]
async fn an_upstream_that_ends_at_once_is_told_with_its_last_words() {
    let home = home();
    let entry = json!({"command": "sh", "args": ["-c", "echo out of coffee >&2; exit 3"]});
    let daemon = TestDaemon::with_servers(home, json!({ "up": entry })).await;
    wait_until("the failure is told", DEADLINE, async || {
        let servers = daemon.api("/servers").await;
        let server = &servers["servers"][0];
        let error = server["last_error"].as_str().unwrap_or_default();
        server["state"] == "waiting" && error.contains('3') && error.contains("out of coffee")
    })
    .await;
}

#[tokio::test]
async fn results_that_are_no_results_get_an_answer_all_the_same() {
    let tools = ["null", "5", "[]", "\"text\""]
        .iter()
        .enumerate()
        .map(|(number, result)| Tool::read_only(&format!("odd_{number}")).returns(*result));
    let front = Front::of(tools).await;
    let session = front.session("odd_3").await;
    for number in 0..4 {
        let name = format!("up:odd_{number}");
        let arguments = json!({"name": "call_tool_read", "arguments": call(&name, "read")});
        // Passed on as it is or told as an error; either way the client gets an answer.
        let answer = session.request("tools/call", &arguments.to_string()).await;
        assert!(answer.result.is_ok(), "{name}: {answer:?}");
    }
}

#[tokio::test]
async fn the_upstream_that_crashes_on_every_call_never_takes_the_daemon_down() {
    let front = Front::of([Tool::read_only("crash").outcome(Outcome::Crash)]).await;
    let session = front.session("crash").await;
    for _ in 0..5 {
        let refusal = session
            .refusal("call_tool_read", &call("up:crash", "read"))
            .await;
        assert!(["UPSTREAM_ERROR", "SERVER_UNAVAILABLE"].contains(&refusal.code.as_str()));
    }
    assert!(front.daemon.is_up().await);
}
