//! F1, F1b, F20 and F23: messages that mean one thing to us and another to an upstream.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{Case, Report, case, shown_by};
use super::machine::Usage;
use super::proxy::Lane;
use super::setup::Setup;
use super::upstreams::tools;
use super::wire::Agent;
use crate::{Fault, Outcome, Script, Tool, conformance::Eras, http_client};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "F1",
            "members twice or in another case, on every endpoint and era",
            ambiguous,
        ),
        case(
            "F1b",
            "tools/list without an end, with cursors of 1 B and 1 MB",
            endless_pages,
        )
        .alone(),
        shown_by(
            "F5",
            "a dead or frozen upstream stays ready",
            &["R3", "R13", "R33"],
        ),
        shown_by("F11", "a write sent twice after 404", &["R19"]),
        shown_by("F12", "a queue without a bound", &["R38"]),
        shown_by("F13", "an endless line", &["R6"]),
        shown_by("F14", "a crash loop", &["R2"]),
        shown_by("F15", "blocks that are not cut", &["R7"]),
        shown_by("F16", "retention that believes the clock", &["R25"]),
        shown_by(
            "F17",
            "reads without a record while the disk is full",
            &["R23"],
        ),
        shown_by(
            "F18",
            "resource takeover, hidden characters in names",
            &["T3"],
        ),
        shown_by("F19", "hints that lie", &["T22"]),
        case("F20", "8 parked calls, then a ninth client", parked_calls),
        shown_by("F21", "keys guessed; a key of one character", &["T19"]),
        shown_by("F22", "symlinks, owners, modes", &["T18"]),
        case(
            "F23",
            "progress tokens that can be guessed",
            progress_tokens,
        ),
        shown_by(
            "F24",
            "exit codes, exit code of a child, stale tools, retry rates",
            &["R1", "R5", "R15", "R30", "R35", "R36"],
        ),
        shown_by("F27", "children that leave their group", &["R33"]),
        shown_by("F28", "a clock beyond the year 9999", &["R25"]),
    ]
}

/// How `look`, which is harmless, and `wipe`, which is not, are called on an endpoint.
fn names(endpoint: &str) -> (&'static str, &'static str, &'static str) {
    match endpoint.rsplit(' ').next() {
        Some("/mcp") => (
            "call_tool_read",
            "call_tool_destructive",
            r#"{"name":"up:look","args":{},"intent":{"operation_type":"read"}}"#,
        ),
        Some("/mcp/direct") => ("up__look", "up__wipe", "{}"),
        _ => ("look", "wipe", "{}"),
    }
}

/// Messages that two parsers read differently.
fn ambiguous_messages(look: &str, wipe: &str, arguments: &str) -> Vec<String> {
    let call = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#)
    };
    let params = [
        format!(r#"{{"name":"{look}","Name":"{wipe}","arguments":{arguments},META}}"#),
        format!(r#"{{"Name":"{wipe}","name":"{look}","arguments":{arguments},META}}"#),
        format!(r#"{{"name":"{look}","NAME":"{wipe}","arguments":{arguments},META}}"#),
        format!(r#"{{"name":"{look}","name":"{wipe}","arguments":{arguments},META}}"#),
        format!(r#"{{"name":"{look}","n\u0061me":"{wipe}","arguments":{arguments},META}}"#),
        format!(r#"{{"name":"{look}","\u004eame":"{wipe}","arguments":{arguments},META}}"#),
        format!(r#"{{"name":"{look}","arguments":{arguments},"Arguments":{{"all":true}},META}}"#),
        format!(
            r#"{{"name":"{look}","arguments":{arguments},"argument\u017f":{{"all":true}},META}}"#
        ),
        format!(
            "{{\"name\":\"{look}\",\"arguments\":{arguments},\"argument\u{17f}\":{{\"all\":true}},META}}"
        ),
        format!(r#"{{"name":"{look}","arguments":{arguments},"arguments":{{"all":true}},META}}"#),
        format!(
            r#"{{"name":"{look}","arguments":{arguments},META,"_Meta":{{"progressToken":1}}}}"#
        ),
        format!(
            r#"{{"name":"{look}","arguments":{arguments},META,"_meta":{{"progressToken":1}}}}"#
        ),
        format!(
            r#"{{"name":"{look}","arguments":{arguments},"_meta":{{"progressToken":1,"progressToken":2}}}}"#
        ),
        format!(
            r#"{{"name":"{look}","arguments":{arguments},"_meta":{{"progressToken":1,"ProgressToken":2}}}}"#
        ),
        format!(
            "{{\"name\":\"{look}\",\"arguments\":{arguments},\"_meta\":{{\"progressToken\":1,\"progressTo\u{212a}en\":2}}}}"
        ),
        format!(r#"["{look}",{arguments}]"#),
        format!(r#"{{"name":"{look}","arguments":{{"a":1,"a":2}},META}}"#),
        format!(r#"{{"name":"{look}","arguments":{{"a":{{"b":1,"\u0062":2}}}},META}}"#),
        format!(r#"{{"name":"{look}","arguments":[],META}}"#),
        format!(r#"{{"name":["{look}"],"arguments":{arguments},META}}"#),
    ];
    let mut messages: Vec<_> = params.iter().map(|params| call(params)).collect();
    let good = format!(r#"{{"name":"{look}","arguments":{arguments},META}}"#);
    let bad = format!(r#"{{"name":"{wipe}","arguments":{arguments},META}}"#);
    messages.extend([
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{good},"Params":{bad}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{good},"params":{bad}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","param\u017f":{bad},"params":{good}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","Method":"tools/call","params":{good}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/call","params":{good}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"ID":8,"method":"tools/call","params":{good}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"id":8,"method":"tools/call","params":{good}}}"#),
    ]);
    messages
}

async fn ambiguous() -> Report {
    let mut setup = Setup::new();
    let upstream = setup.stdio("up", &Script::new(tools(&Outcome::Echo)), json!({}));
    setup.set(json!({"tool_overrides": {"up:wipe": "destructive"}}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let mut taken = Vec::new();
    let mut tried = 0;
    for (name, agent) in Agent::everywhere(&proxy.daemon).await {
        let (look, wipe, arguments) = names(&name);
        let value: Value = serde_json::from_str(arguments).expect("arguments");
        let sent = upstream.record().calls().len();
        let control = agent.call(look, &value).await;
        assert!(
            !control.refused(),
            "{name}: a plain call is refused: {}",
            control.message
        );
        // What a tool calls its own arguments is its own business.
        let mixed = json!({"a": 1, "A": 2, "name": "x", "Name": "y"});
        let own = if name.ends_with("/mcp") {
            json!({"name": "up:look", "args": mixed, "intent": {"operation_type": "read"}})
        } else {
            mixed
        };
        assert!(
            !agent.call(look, &own).await.refused(),
            "{name}: arguments in two cases are refused"
        );
        assert_eq!(upstream.record().calls().len(), sent + 2);
        for message in ambiguous_messages(look, wipe, arguments) {
            let before = upstream.record().calls().len();
            let reply = agent.post("tools/call", look, &message).await;
            let sent = upstream.record().calls().len() - before;
            if sent > 0 || !reply.refused() {
                taken.push(format!("{name}: {message:.200}"));
            }
            tried += 1;
        }
    }
    assert!(
        taken.is_empty(),
        "{} of {tried} were taken:\n{}",
        taken.len(),
        taken.join("\n")
    );
    proxy.note(format!("{tried} messages refused"));
    proxy.finish().await
}

async fn endless_pages() -> Report {
    let mut setup = Setup::new();
    let small = setup.stdio("small", &Fault::EndlessPages.script(), json!({}));
    let large = setup.stdio("large", &Fault::EndlessLargePages.script(), json!({}));
    setup.set(
        json!({"limits": {"listing_pages": 50, "listing_bytes": 8 << 20, "listing_time": "5s"}}),
    );
    let mut proxy = setup.start().await;
    let (mut peak, began) = (0.0_f64, Instant::now());
    proxy
        .until("both listings are given up", 20, async || {
            peak = peak.max(Usage::of(proxy.daemon.pid()).rss_mib - proxy.before.rss_mib);
            let mut given_up = true;
            for name in ["small", "large"] {
                let server = proxy.server(name).await;
                given_up &= !server["last_error"].is_null();
            }
            given_up && began.elapsed() > Duration::from_secs(2)
        })
        .await;
    let pages = [&small, &large].map(|upstream| {
        let record = upstream.record();
        record.received("tools/list").len() / record.pids().len().max(1)
    });
    assert!(
        pages[0] <= 60 && pages[1] <= 12,
        "{pages:?} pages for each start"
    );
    assert!(peak < 64.0, "RSS +{peak:.0} MiB");
    proxy.note(format!("{pages:?} pages, RSS +{peak:.0}"));
    proxy.finish().await
}

async fn parked_calls() -> Report {
    let mut setup = Setup::new();
    let mut entry = setup.home.conformance_upstream(Eras::Legacy);
    // A process that all share can ask nobody in particular.
    entry["sharing"] = "auto".into();
    setup.server("up", entry);
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let ask = async || {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "test_elicitation", "arguments": {"message": "?"}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}});
        let request = http_client()
            .post(proxy.daemon.url("/mcp/server/up"))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "test_elicitation")
            .json(&body);
        let answer =
            super::proxy::within(Duration::from_secs(15), "an answer", request.send()).await;
        answer.expect("an answer").text().await.expect("a text")
    };
    for number in 0..8 {
        let answer = ask().await;
        assert!(
            answer.contains("input_required"),
            "call {number}: {answer:.300}"
        );
    }
    let began = Instant::now();
    let answer = ask().await;
    let served = answer.contains("input_required");
    proxy.note(format!(
        "ninth: {} after {:.1} s",
        if served { "served" } else { "refused in words" },
        began.elapsed().as_secs_f64()
    ));
    // Parked calls are open on purpose; the stop ends them.
    proxy.daemon.api("/activity?status=pending").await;
    finish_with_parked(proxy).await
}

/// The invariants, with calls that wait for their clients until the daemon stops.
async fn finish_with_parked(proxy: super::proxy::Proxy) -> Report {
    let home = proxy.stopped().await;
    let open = home
        .cli(["activity", "list", "--status", "pending", "-o", "json"])
        .await
        .json();
    assert_eq!(open["total"], 0, "{open}");
    Setup::in_home(home).start().await.finish().await
}

async fn progress_tokens() -> Report {
    let mut setup = Setup::new();
    let tool = Tool::read_only("look").progress(2);
    let upstream = setup.stdio("up", &Script::new([tool]), json!({}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    for number in 0..8 {
        let (name, arguments) = Lane::Read.call("up:look", &json!({}));
        let params =
            json!({"name": name, "arguments": arguments, "_meta": {"progressToken": number}});
        let answer = proxy.agent.request("tools/call", &params.to_string()).await;
        let tokens: Vec<_> = answer
            .notifications
            .iter()
            .map(|it| it["params"]["progressToken"].clone())
            .collect();
        assert!(tokens.iter().all(|token| *token == number), "{tokens:?}");
    }
    let tokens: Vec<String> = upstream
        .record()
        .calls()
        .iter()
        .map(|call| call["_meta"]["progressToken"].to_string())
        .collect();
    let mut distinct = tokens.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 8, "{tokens:?}");
    // Of 53 random bits, the odds of fewer than 10 digits are one in a million.
    assert!(
        tokens.iter().all(|token| token.len() >= 10),
        "they can be guessed: {tokens:?}"
    );
    let shortest = tokens.iter().map(String::len).min().unwrap_or(0);
    proxy.note(format!("at least {shortest} characters"));
    proxy.finish().await
}
