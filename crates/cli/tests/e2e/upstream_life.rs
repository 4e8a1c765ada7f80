//! How upstreams come, go and come back, and what clients notice of it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{
    DEADLINE, HttpUpstream, Outcome, Script, Session, TestDaemon, Tool, Wire, wait_for, wait_until,
};

use crate::support::{Front, call, home, read, text_of, wait_until_callable};

async fn refusal_message(session: &Session, code: &str, tool: &str) -> String {
    let what = format!("{tool} is refused with {code}");
    wait_for(&what, DEADLINE, async || {
        let result = session.call("call_tool_read", &call(tool, "read")).await;
        let value: Value = serde_json::from_str(&result).unwrap();
        let refusal = &value["structuredContent"];
        let message = refusal["message"].as_str().unwrap_or_default();
        // Until the first attempt is over, the state is only that it is connecting.
        let over = !message.contains("connecting");
        (refusal["code"] == code && over).then(|| message.to_owned())
    })
    .await
}

#[tokio::test]
async fn a_crash_is_told_and_healed() {
    let script = [
        Tool::read_only("fine"),
        Tool::read_only("crash").outcome(Outcome::Crash),
    ];
    let front = Front::of(script).await;
    let session = front.session("crash").await;
    let refusal = session
        .refusal("call_tool_read", &call("up:crash", "read"))
        .await;
    assert!(
        ["UPSTREAM_ERROR", "SERVER_UNAVAILABLE"].contains(&refusal.code.as_str()),
        "{refusal:?}"
    );
    wait_until_callable(&session, "up:fine").await;
    let pids = front.record.pids();
    assert_eq!(pids.len(), 2, "{pids:?}");
}

#[tokio::test]
async fn tools_stay_searchable_and_are_marked_stale_while_a_server_is_gone() {
    let home = home();
    let mut upstream = home.upstream(
        "up",
        &Script::new([
            Tool::read_only("keeps"),
            Tool::read_only("quit").outcome(Outcome::Exit(1)),
        ]),
    );
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    let session = daemon.session_with(&["up:keeps"]).await;
    let found = session.retrieve(&json!({"query": "keeps"})).await;
    assert_eq!(found["tools"][0]["stale"], Value::Null, "{found}");
    // From now on it does not start any more.
    let mut broken = Script::new([]);
    broken.start.exit_code = Some(3);
    upstream = daemon.home.upstream("up", &broken);
    session
        .call("call_tool_read", &call("up:quit", "read"))
        .await;
    wait_until("the tool is marked stale", DEADLINE, async || {
        let found = session.retrieve(&json!({"query": "keeps"})).await;
        found["tools"][0]["name"] == "up:keeps" && found["tools"][0]["stale"] == true
    })
    .await;
    let message = refusal_message(&session, "SERVER_UNAVAILABLE", "up:keeps").await;
    assert!(message.contains("up"), "{message}");
    assert!(!upstream.record().pids().is_empty());
}

#[tokio::test]
async fn failures_that_stay_say_what_to_do() {
    let home = home();
    let refusing = |status| {
        let mut script = Script::new([]);
        script.http.initialize_status = Some(status);
        script
    };
    let unauthorized = HttpUpstream::start(home.path(), "unauthorized", refusing(401)).await;
    let forbidden = HttpUpstream::start(home.path(), "forbidden", refusing(403)).await;
    let missing = HttpUpstream::start(home.path(), "missing", refusing(404)).await;
    let gone = HttpUpstream::start(home.path(), "gone", refusing(410)).await;
    let servers = json!({
        "absent": {"command": "no-such-program-anywhere"},
        "unauthorized": unauthorized.config(),
        "forbidden": forbidden.config(),
        "missing": missing.config(),
        "gone": gone.config(),
    });
    let daemon = TestDaemon::with_servers(home, servers).await;
    let session = daemon.session().await;
    let advice = [
        ("absent", "no-such-program-anywhere"),
        ("unauthorized", "Authorization"),
        ("forbidden", "does not accept the login"),
        ("missing", "url"),
        ("gone", "url"),
    ];
    for (server, word) in advice {
        let tool = format!("{server}:any");
        let message = refusal_message(&session, "SERVER_UNAVAILABLE", &tool).await;
        assert!(message.contains(word), "{server}: {message}");
    }
    // It has given up, and does not try again by itself.
    let servers = daemon.api("/servers").await;
    for server in servers["servers"].as_array().unwrap() {
        assert_eq!(server["state"], "failed", "{server}");
        assert_eq!(server["retry_in_ms"], Value::Null, "{server}");
    }
    assert_eq!(unauthorized.record().received("initialize").len(), 1);
}

#[tokio::test]
async fn slow_upstreams_delay_neither_readiness_nor_others() {
    let home = home();
    let mut slow = Script::new([Tool::read_only("late")]);
    slow.start.delay_ms = 8_000;
    let slow = home.upstream("slow", &slow);
    let quick = home.upstream("quick", &Script::new([Tool::read_only("now")]));
    let servers = json!({"slow": slow.config(), "quick": quick.config()});
    let daemon = TestDaemon::with_servers(home, servers).await;
    let session = daemon.session_with(&["quick:now"]).await;
    text_of(&read(&session, "quick:now").await);
    let slow = daemon.api("/servers/slow").await;
    assert_ne!(slow["state"], "ready", "{slow}");
    daemon.wait_for_tool(&session, "slow:late").await;
}

#[tokio::test]
async fn a_changed_list_is_found_at_once() {
    for over_http in [false, true] {
        let swap = Outcome::ReplaceTools(vec![Tool::read_only("fresh_paint")]);
        let script = Script::new([Tool::read_only("swap").outcome(swap)]);
        let home = home();
        let stdio = home.upstream("up", &script);
        let http = HttpUpstream::start(home.path(), "http", script).await;
        let entry = if over_http {
            http.config()
        } else {
            stdio.config()
        };
        let daemon = TestDaemon::with_servers(home, json!({ "up": entry })).await;
        let session = daemon.session_with(&["up:swap"]).await;
        text_of(&read(&session, "up:swap").await);
        daemon.wait_for_tool(&session, "up:fresh_paint").await;
        assert_eq!(session.names(&json!({"query": "swap"})).await, [""; 0]);
    }
}

#[tokio::test]
async fn all_pages_of_a_list_are_read() {
    let mut script = Script::new((0..23).map(|n| Tool::read_only(&format!("page_tool_{n}"))));
    script.page_size = Some(5);
    let front = Front::with(json!({}), &script).await;
    let session = front.session("page_tool_22").await;
    let found = session
        .retrieve(&json!({"query": "page tool", "limit": 50}))
        .await;
    assert_eq!(found["total"], 23);
    assert_eq!(front.record.received("tools/list").len(), 5);
}

#[tokio::test]
async fn a_lost_session_is_opened_again() {
    let home = home();
    let mut script = Script::new([Tool::read_only("counted")]).wire(Wire::EventStream);
    script.http.calls_per_session = Some(2);
    let http = HttpUpstream::start(home.path(), "http", script).await;
    let daemon = TestDaemon::with_servers(home, json!({"http": http.config()})).await;
    let session = daemon.session_with(&["http:counted"]).await;
    for _ in 0..6 {
        wait_until_callable(&session, "http:counted").await;
    }
    assert!(http.record().received("initialize").len() >= 3);
}

#[tokio::test]
async fn progress_reaches_the_client_and_nobody_else() {
    let front = Front::of([Tool::read_only("long").progress(3)]).await;
    let session = front.session("long").await;
    let params = json!({
        "name": "call_tool_read",
        "arguments": call("up:long", "read"),
        "_meta": {"progressToken": "my token"},
    });
    let answer = session.request("tools/call", &params.to_string()).await;
    let tokens: Vec<_> = answer
        .notifications
        .iter()
        .map(|progress| {
            assert_eq!(progress["method"], "notifications/progress");
            let params = &progress["params"];
            (params["progressToken"].clone(), params["progress"].clone())
        })
        .collect();
    let expected: Vec<_> = (1..=3)
        .map(|step| (json!("my token"), json!(step)))
        .collect();
    assert_eq!(tokens, expected);
    answer.result.unwrap();
    // Without a token there is no progress, neither here nor there.
    let plain = json!({"name": "call_tool_read", "arguments": call("up:long", "read")});
    let answer = session.request("tools/call", &plain.to_string()).await;
    assert_eq!(answer.notifications, [Value::Null; 0]);
}

#[tokio::test]
async fn cancelling_a_call_cancels_it_upstream() {
    let front = Front::of([Tool::read_only("hang").outcome(Outcome::Hang)]).await;
    let session = front.session("hang").await;
    let params = json!({"name": "call_tool_read", "arguments": call("up:hang", "read")});
    let request = json!({"jsonrpc": "2.0", "id": 4711, "method": "tools/call", "params": params});
    let request = request.to_string();
    let cancel = async {
        wait_until("the call arrived", DEADLINE, async || {
            !front.record.calls().is_empty()
        })
        .await;
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/cancelled",
            "params":{"requestId":4711,"reason":"changed my mind"}}"#;
        assert_eq!(session.post(notification).await.status, 202);
        wait_until("the upstream is told", DEADLINE, async || {
            !front.record.received("notifications/cancelled").is_empty()
        })
        .await;
    };
    tokio::select! {
        () = cancel => (),
        // A cancelled request may be answered or not; both end the wait.
        reply = session.post(&request) => assert!(reply.status < 500, "{}", reply.body),
    }
    let calls = front.record.received("tools/call");
    let cancelled = wait_for("the upstream is told", DEADLINE, async || {
        front
            .record
            .received("notifications/cancelled")
            .first()
            .cloned()
    })
    .await;
    assert_eq!(cancelled["params"]["requestId"], calls[0]["id"]);
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_a_timeout() {
    let home = home();
    let script = Script::new([
        Tool::read_only("hang").outcome(Outcome::Hang),
        Tool::read_only("ok"),
    ]);
    let upstream = home.upstream("up", &script);
    let entry = upstream.config_with(&json!({"timeout": "1s"}));
    let daemon = TestDaemon::with_servers(home, json!({ "up": entry })).await;
    let session = daemon.session_with(&["up:hang"]).await;
    let start = Instant::now();
    let refusal = session
        .refusal("call_tool_read", &call("up:hang", "read"))
        .await;
    assert_eq!(refusal.code, "TIMEOUT");
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    text_of(&read(&session, "up:ok").await);
    let cancelled = async || {
        !upstream
            .record()
            .received("notifications/cancelled")
            .is_empty()
    };
    wait_until("the upstream is told to stop", DEADLINE, cancelled).await;
}

#[tokio::test]
async fn only_so_many_calls_are_under_way_at_once() {
    let home = home();
    let upstream = home.upstream("up", &Script::new([Tool::read_only("slow").after_ms(400)]));
    let entry = upstream.config_with(&json!({"max_concurrency": 1}));
    let daemon = TestDaemon::with_servers(home, json!({ "up": entry })).await;
    let session = daemon.session_with(&["up:slow"]).await;
    let start = Instant::now();
    let (first, second) = tokio::join!(read(&session, "up:slow"), read(&session, "up:slow"));
    text_of(&first);
    text_of(&second);
    assert!(
        start.elapsed() >= Duration::from_millis(800),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_slow_call_does_not_hold_up_others() {
    let front = Front::of([
        Tool::read_only("slow").after_ms(8_000),
        Tool::read_only("quick"),
    ])
    .await;
    let session = front.session("quick").await;
    tokio::select! {
        biased;
        _ = read(&session, "up:slow") => panic!("the slow call came first"),
        result = read(&session, "up:quick") => { text_of(&result); }
    }
}

#[tokio::test]
async fn a_disabled_server_is_not_started() {
    let home = home();
    let upstream = home.upstream("up", &Script::new([Tool::read_only("any")]));
    let entry = upstream.config_with(&json!({"enabled": false}));
    let daemon = TestDaemon::with_servers(home, json!({ "up": entry })).await;
    let session = daemon.session().await;
    let refusal = session
        .refusal("call_tool_read", &call("up:any", "read"))
        .await;
    assert_eq!(refusal.code, "SERVER_UNAVAILABLE");
    assert!(upstream.record().pids().is_empty());
}
