//! Wrong values are answered with the right ones, over REST and on the command line, and never
//! silently ignored.

use serde_json::Value;

use crate::support::Proxy;

/// A filter, a value it does not take, and what the answer must name.
const WRONG: [(&str, &str, &[&str]); 12] = [
    (
        "type",
        "call",
        &[
            "tool_call",
            "policy_decision",
            "quarantine_change",
            "server_change",
            "config_change",
            "system",
        ],
    ),
    (
        "status",
        "failed",
        &[
            "pending",
            "success",
            "error",
            "blocked",
            "cancelled",
            "interrupted",
        ],
    ),
    ("intent_type", "delete", &["read", "write", "destructive"]),
    ("intent_type", "READ", &["read", "write", "destructive"]),
    (
        "sensitivity",
        "secret",
        &["public", "internal", "private", "unknown"],
    ),
    ("source", "web", &["mcp", "cli", "api"]),
    ("start_time", "yesterday", &["2026-01-31T12:00:00Z"]),
    (
        "end_time",
        "2026-13-01T00:00:00Z",
        &["2026-01-31T12:00:00Z"],
    ),
    ("limit", "0", &["1", "100"]),
    ("limit", "101", &["1", "100"]),
    ("offset", "minus", &["offset"]),
    ("cursor", "made-up", &["cursor"]),
];

/// Values that no filter of text takes.
const TEXTS: [&str; 6] = ["server", "tool", "session_id", "request_id", "client", "q"];

#[track_caller]
fn assert_error(path: &str, answer: &(u16, Value), status: u16, words: &[&str]) {
    let (actual, body) = answer;
    assert_eq!(*actual, status, "{path}: {body}");
    assert_eq!(body["success"], false, "{path}: {body}");
    assert!(body["request_id"].is_string(), "{path}: {body}");
    let error = body["error"].to_string();
    for word in words {
        assert!(error.contains(word), "{path}: {word} is not in {error}");
    }
}

/// Of two values one would be ignored, and nobody would know which.
#[tokio::test]
async fn a_parameter_given_twice_is_400() {
    let proxy = Proxy::start().await;
    let head = "0".repeat(64);
    for (path, name) in [
        ("/activity?type=tool_call&type=system", "type"),
        ("/activity?limit=1&server=up&limit=1", "limit"),
        ("/activity/summary?period=1h&period=24h", "period"),
        ("/activity/usage?period=1h&period=1h", "period"),
        ("/activity/export?status=error&status=success", "status"),
        ("/activity/export?format=csv&format=json", "format"),
        (&format!("/activity/verify?head={head}&head={head}"), "head"),
        ("/events?server=up&server=down", "server"),
    ] {
        let words = [&format!("{name} is given more than once"), "INVALID_FILTER"];
        assert_error(path, &proxy.rest(path).await, 400, &words);
    }
}

#[tokio::test]
async fn an_unknown_parameter_of_an_export_is_answered_with_all_that_there_are() {
    let proxy = Proxy::start().await;
    let path = "/activity/export?foo=1";
    let words = ["'foo'", "server", "format", "include_bodies", "limit"];
    assert_error(path, &proxy.rest(path).await, 400, &words);
}

#[tokio::test]
async fn a_wrong_filter_value_is_400_with_the_allowed_ones() {
    let proxy = Proxy::start().await;
    for (name, value, words) in WRONG {
        let path = format!("/activity?{name}={value}");
        let answer = proxy.rest(&path).await;
        assert_error(&path, &answer, 400, words);
        assert_error(&path, &answer, 400, &[name]);
    }
    for name in TEXTS {
        let path = format!("/activity?{name}=");
        assert_error(&path, &proxy.rest(&path).await, 400, &[name]);
    }
    let path = "/activity?stat=error";
    assert_error(
        path,
        &proxy.rest(path).await,
        400,
        &["stat", "status", "intent_type"],
    );
    let path = "/activity?start_time=2026-02-01T00:00:00Z&end_time=2026-01-01T00:00:00Z";
    assert_error(
        path,
        &proxy.rest(path).await,
        400,
        &["start_time", "end_time"],
    );
}

#[tokio::test]
async fn the_other_routes_are_as_strict() {
    let proxy = Proxy::start().await;
    let hash = "ab".repeat(31);
    let cases: [(&str, &[&str]); 10] = [
        ("/activity/export?limit=0", &["limit", "from 1"]),
        ("/activity/summary?period=1y", &["1h", "24h", "7d", "30d"]),
        (
            "/activity/summary?group_by=colour",
            &["server", "tool", "status", "intent_type", "client", "hour"],
        ),
        (
            "/activity/summary?server=up",
            &["server", "period", "group_by"],
        ),
        ("/activity/usage?period=0", &["1h", "24h", "7d", "30d"]),
        ("/activity/export?format=xml", &["json", "jsonl", "csv"]),
        ("/activity/export?include_bodies=maybe", &["true", "false"]),
        ("/activity/export?status=failed", &["interrupted"]),
        (&format!("/activity/verify?head={hash}"), &["64"]),
        ("/activity/verify?limit=3", &["head"]),
    ];
    for (path, words) in cases {
        assert_error(path, &proxy.rest(path).await, 400, words);
    }
    let path = "/events?intent_type=delete";
    assert_error(path, &proxy.rest(path).await, 400, &["destructive"]);
}

#[tokio::test]
async fn an_id_that_is_not_there_is_told_from_one_that_cannot_be() {
    let proxy = Proxy::start().await;
    let home = &proxy.daemon.home;
    let unknown = "01M7GHBHDX81ER1ETMD9HPHM5B";
    let path = format!("/activity/{unknown}");
    assert_error(&path, &proxy.rest(&path).await, 404, &[unknown]);
    let output = home.cli(["activity", "show", unknown]).await;
    output.ended_with(6);
    assert!(output.stderr.contains(unknown), "{}", output.stderr);
    for malformed in [
        "1",
        "nonsense",
        "01M7GHBHDX81ER1ETMD9HPHM5",
        "UUUUUUUUUUUUUUUUUUUUUUUUUU",
    ] {
        let path = format!("/activity/{malformed}");
        assert_error(&path, &proxy.rest(&path).await, 400, &[malformed, "26"]);
        let output = home.cli(["activity", "show", malformed]).await;
        output.ended_with(2);
        assert!(output.stderr.contains(malformed), "{}", output.stderr);
    }
    for malformed in ["../verify", "a/b", "a b", "é"] {
        let output = home.cli(["activity", "show", malformed]).await;
        output.ended_with(2);
    }
}

#[tokio::test]
async fn cursor_and_offset_exclude_each_other() {
    let proxy = Proxy::start().await;
    proxy.calls(1).await;
    let page = proxy.data("/activity?limit=1").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let path = format!("/activity?cursor={cursor}&offset=1");
    assert_error(&path, &proxy.rest(&path).await, 400, &["cursor", "offset"]);
    let list = ["activity", "list", "--cursor", cursor, "--offset", "1"];
    let output = proxy.daemon.home.cli(list).await;
    output.ended_with(2);
    assert!(output.stderr.contains("offset"), "{}", output.stderr);
}

#[tokio::test]
async fn on_the_command_line_a_wrong_value_is_bad_usage() {
    let proxy = Proxy::start().await;
    let home = &proxy.daemon.home;
    for (name, value, words) in WRONG {
        let option = format!("--{}={value}", name.replace('_', "-"));
        let output = home.cli(["activity", "list", &option]).await;
        output.ended_with(2);
        assert_eq!(output.stdout, "", "{option}");
        for word in words {
            assert!(output.stderr.contains(word), "{option}: {}", output.stderr);
        }
    }
    let cases: [(&[&str], &str); 15] = [
        (&["list", "--limit", "bogus"], "from 1 to 100"),
        (&["list", "--limit", "-1"], "from 1 to 100"),
        (&["list", "--offset", "bogus"], "from 0 to 10000000"),
        (&["export", "--limit", "0"], "from 1 up"),
        (&["export", "-o", "yaml"], "json, jsonl or csv"),
        (&["export", "-o", "table"], "json, jsonl or csv"),
        (&["export", "-o", "json", "--format", "csv"], "contradict"),
        (&["export", "-o", "json", "--format", "jsonl"], "contradict"),
        (&["show", ""], "an id is needed"),
        (&["list", "--colour", "red"], "--colour"),
        (&["summary", "--period", "1y"], "24h"),
        (&["summary", "--by", "colour"], "client"),
        (&["export", "--format", "xml"], "jsonl"),
        (&["export", "--status", "failed"], "interrupted"),
        (&["verify", "--head", "abc"], "64"),
    ];
    for (arguments, word) in cases {
        let output = home.cli(["activity"].iter().chain(arguments)).await;
        output.ended_with(2);
        assert_eq!(output.stdout, "", "{arguments:?}");
        assert!(
            output.stderr.contains(word),
            "{arguments:?}: {}",
            output.stderr
        );
    }
}

#[tokio::test]
async fn an_export_that_cannot_be_written_ends_with_1_and_says_why() {
    let proxy = Proxy::start().await;
    let home = &proxy.daemon.home;
    for place in ["no/such/folder/calls.json", "."] {
        let output = home.cli(["activity", "export", "--output", place]).await;
        output.ended_with(1);
        assert!(output.stderr.contains(place), "{}", output.stderr);
        assert!(output.stderr.contains("--output"), "{}", output.stderr);
        assert_eq!(output.stdout, "");
    }
    let output = home
        .cli(["activity", "export", "--output", "/dev/full"])
        .await;
    output.ended_with(1);
    assert!(output.stderr.contains("/dev/full"), "{}", output.stderr);
}

/// Names of tools may have colons, so this cannot be a mistake for certain.
#[tokio::test]
async fn a_tool_with_its_server_is_answered_with_the_right_spelling() {
    let proxy = Proxy::start().await;
    proxy.calls(1).await;
    for format in ["table", "json"] {
        let list = ["activity", "list", "--tool", "up:look", "-o", format];
        let output = proxy.daemon.home.cli(list).await;
        let hint = "--server up --tool look";
        assert!(
            output.succeeded().stderr.contains(hint),
            "{}",
            output.stderr
        );
    }
    let list = ["activity", "list", "--server", "up", "--tool", "look"];
    let output = proxy.daemon.home.cli(list).await;
    assert!(!output.succeeded().stderr.contains("hint"));
    assert!(output.stdout.contains("look"), "{}", output.stdout);
}
