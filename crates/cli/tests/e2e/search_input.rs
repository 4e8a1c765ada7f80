//! What a search makes of queries and limits that make no sense, through every endpoint, and what it
//! says of how it found something.

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::{Output, Session, TestDaemon, Tool, http_client};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use url::form_urlencoded;

use crate::support::Front;

/// Queries that name nothing: each is answered with no tool and a hint, and is no error.
const ABOUT_NOTHING: [&str; 4] = [
    "the of and",
    "👩‍💻🔥🧨",
    "\u{1b}[31m\u{7}\u{7f}",
    "quantum chromodynamics",
];

async fn front() -> Front {
    let front = Front::of([
        Tool::read_only("list_issues"),
        Tool::destructive("purge_log"),
    ])
    .await;
    front.session("list_issues").await;
    front
}

/// The status and the answer of the REST search.
async fn search(daemon: &TestDaemon, parameters: &[(&str, &str)]) -> (StatusCode, Value) {
    let key = daemon.home.path().join(".mcpproxy/api_key");
    let key = std::fs::read_to_string(key).unwrap();
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    let url = daemon.url(&format!("/api/v1/tools/search?{query}"));
    let answer = http_client()
        .get(url)
        .bearer_auth(key.trim())
        .send()
        .await
        .unwrap();
    let status = answer.status();
    let body = answer.text().await.unwrap();
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

/// The status line for a URL of 100 kB, which clients refuse to send.
async fn status_of_long_url(daemon: &TestDaemon) -> String {
    let mut stream = TcpStream::connect(daemon.address()).await.unwrap();
    let (host, query) = (daemon.address(), "x".repeat(100_000));
    let request = format!("GET /api/v1/tools/search?q={query} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    // The daemon may have answered and hung up before it has read all.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.unwrap();
    line
}

async fn cli(front: &Front, arguments: &[&str]) -> Output {
    let command = ["tools", "search", "-o", "json"];
    let home = &front.daemon.home;
    home.cli(command.iter().chain(arguments)).await
}

async fn refused(session: &Session, arguments: &str) -> String {
    let result = session.call_raw("retrieve_tools", arguments).await;
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["isError"], true, "{arguments}: {result}");
    assert_eq!(result["structuredContent"]["code"], "INVALID_ARGS");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

fn assert_nothing_found(found: &Value, query: &str) {
    assert_eq!(found["tools"], json!([]), "{query:?}: {found}");
    assert_eq!(found["total"], 0, "{query:?}");
    let hint = found["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("No tool matches"), "{query:?}: {found}");
}

#[tokio::test]
async fn a_query_about_nothing_is_answered_with_a_hint_through_every_endpoint() {
    let front = front().await;
    let session = front.daemon.session().await;
    for query in ABOUT_NOTHING {
        assert_nothing_found(&session.retrieve(&json!({"query": query})).await, query);
        let (status, answer) = search(&front.daemon, &[("q", query)]).await;
        assert_eq!(status, 200, "{query:?}");
        assert_nothing_found(&answer["data"], query);
        let output = cli(&front, &[query]).await;
        output.succeeded();
        assert_nothing_found(&output.json(), query);
    }
}

#[tokio::test]
async fn an_empty_query_is_refused_through_every_endpoint() {
    let front = front().await;
    let session = front.daemon.session().await;
    for query in ["", " \t\n"] {
        let arguments = json!({"query": query}).to_string();
        let message = refused(&session, &arguments).await;
        assert!(message.contains("query is empty"), "{message}");
        let (status, answer) = search(&front.daemon, &[("q", query)]).await;
        assert_eq!(status, 400, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("query is empty"), "{message}");
        let output = cli(&front, &[query]).await;
        output.ended_with(2);
        assert!(
            output.stderr.contains("query is empty"),
            "{}",
            output.stderr
        );
    }
    let (status, answer) = search(&front.daemon, &[]).await;
    assert_eq!(status, 400, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains('q'));
    cli(&front, &[]).await.ended_with(2);
}

#[tokio::test]
async fn a_limit_out_of_range_is_refused_through_every_endpoint() {
    let front = front().await;
    let session = front.daemon.session().await;
    for limit in ["0", "-1", "51", "1000000000", "1e9", "99999999999999999999"] {
        let arguments = format!(r#"{{"query": "issues", "limit": {limit}}}"#);
        let message = refused(&session, &arguments).await;
        assert!(message.contains("limit"), "{limit}: {message}");
        let (status, answer) = search(&front.daemon, &[("q", "issues"), ("limit", limit)]).await;
        assert_eq!(status, 400, "{limit}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("limit"), "{limit}: {message}");
        let output = cli(&front, &["issues", "--limit", limit]).await;
        output.ended_with(2);
        assert!(output.stderr.contains("--limit"), "{}", output.stderr);
    }
    let most = session
        .names(&json!({"query": "issues", "limit": 50}))
        .await;
    assert_eq!(most, ["up:list_issues"]);
}

#[tokio::test]
async fn of_a_query_of_100_kilobytes_the_beginning_counts() {
    let front = front().await;
    let session = front.daemon.session().await;
    let long = format!("list issues {}", "é ".repeat(100_000 / 3));
    let found = session.retrieve(&json!({"query": long})).await;
    assert_eq!(found["tools"][0]["name"], "up:list_issues", "{found}");
    assert!(found["hint"].as_str().unwrap().contains("4096 bytes"));
    let output = cli(&front, &[&long]).await;
    output.succeeded();
    assert_eq!(output.json()["tools"][0]["name"], "up:list_issues");
    assert!(output.stderr.contains("4096 bytes"), "{}", output.stderr);
    // A URL cannot be that long, which HTTP has a status for.
    let status = status_of_long_url(&front.daemon).await;
    assert!(status.starts_with("HTTP/1.1 414 "), "{status}");
    let (status, answer) = search(&front.daemon, &[("q", &long[..5_000])]).await;
    assert_eq!(status, 200);
    assert_eq!(answer["data"]["tools"][0]["name"], "up:list_issues");
    assert!(front.daemon.is_up().await);
}

#[tokio::test]
async fn people_can_ask_why_and_agents_cannot() {
    let front = front().await;
    let parameters = [("q", "show the isues"), ("explain", "true")];
    let (_, answer) = search(&front.daemon, &parameters).await;
    let best = &answer["data"]["tools"][0];
    assert_eq!(best["name"], "up:list_issues", "{answer}");
    let explanation = &best["explanation"];
    let matches = explanation["matches"].as_array().unwrap();
    let kinds: Vec<_> = matches
        .iter()
        .map(|matched| {
            (
                matched["word"].as_str().unwrap(),
                matched["kind"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [("show", "synonym"), ("isues", "typo")],
        "{explanation}"
    );
    assert_eq!(matches[1]["fields"][0], "name", "{explanation}");
    let number = |value: &Value| value.as_f64().unwrap();
    let fusion = &explanation["fusion"];
    let fused = number(&fusion["words_weight"]) * number(&explanation["words"])
        + number(&fusion["meaning_weight"]) * number(&explanation["meaning"]);
    let score = fused * number(&fusion["action_factor"]);
    assert!((score - number(&best["score"])).abs() < 0.001, "{best}");

    let (_, answer) = search(&front.daemon, &parameters[..1]).await;
    assert!(answer["data"]["tools"][0].get("explanation").is_none());
    let (status, answer) = search(&front.daemon, &[("q", "x"), ("explain", "maybe")]).await;
    assert_eq!(status, 400, "{answer}");

    let session = front.daemon.session().await;
    let message = refused(&session, r#"{"query": "issues", "explain": true}"#).await;
    assert!(message.contains("explain"), "{message}");
}

#[tokio::test]
async fn the_command_line_shows_why_in_a_table() {
    let front = front().await;
    let search = ["tools", "search", "--explain"];
    let output = front
        .daemon
        .home
        .cli(search.iter().chain(&["purge", "the", "isues"]))
        .await;
    output.succeeded();
    let line = |tool: &str| {
        let mut lines = output.stdout.lines();
        lines.find(|line| line.contains(tool)).unwrap_or_default()
    };
    assert!(
        line("up:purge_log").contains("purge (name"),
        "{}",
        output.stdout
    );
    assert!(
        line("up:list_issues").contains("isues → issu typo (name"),
        "{}",
        output.stdout
    );
    assert!(
        line("up:list_issues").contains("another action"),
        "{}",
        output.stdout
    );
    let output = front
        .daemon
        .home
        .cli(search.iter().chain(&["purge_log"]))
        .await;
    assert!(output.stdout.contains("named"), "{}", output.stdout);
    let output = front
        .daemon
        .home
        .cli(search.iter().chain(&["quantum"]))
        .await;
    output.succeeded();
    assert_eq!(output.stdout, "");
}
