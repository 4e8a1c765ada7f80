//! Calls that wait for their turn, for their client, or for a reader of their progress.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use config::{Limits, Transport};
use futures_util::future::BoxFuture;
use mcp::{Notification, RawValue, Request};
use testkit::{DEADLINE, wait_until};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use upstream::{AskError, CallError, ClientLine, Forward, OnBehalf, Upstream};

use crate::support::{Setup, Shell, call, limits, runs, seconds, within};

fn one_at_a_time(server: &mut config::ServerConfig) {
    server.max_concurrency = NonZeroUsize::MIN;
    server.timeout = Duration::from_secs(4);
}

#[tokio::test]
async fn the_queue_is_bounded_and_a_call_that_was_not_sent_says_so() {
    let shell = Shell {
        call: ":",
        ..Shell::default()
    };
    let short = Limits {
        queued_calls: 1,
        ..limits()
    };
    let setup = Setup::with(shell, short, one_at_a_time).await;
    setup.state("ready").await;
    let upstream = setup.upstream();
    let running = tokio::spawn({
        let upstream = Arc::clone(&upstream);
        async move { call(&upstream, None).await }
    });
    wait_until("the first call is sent", DEADLINE, async || {
        setup.count("tools/call") == 1
    })
    .await;
    let waiting = call(&upstream, None);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    let shed = within(1, call(&upstream, None)).await.unwrap_err();
    let CallError::Busy { retry_after, .. } = &shed else {
        panic!("{shed}");
    };
    assert!(retry_after.as_secs() >= 1);
    assert!(shed.to_string().contains("was not sent"), "{shed}");
    let waited = within(10, waiting).await.unwrap_err();
    assert!(matches!(waited, CallError::NotSent { .. }), "{waited}");
    let sent = within(10, running).await.unwrap().unwrap_err();
    assert!(matches!(sent, CallError::Timeout { .. }), "{sent}");
    assert_eq!(setup.count("tools/call"), 1);
    assert_eq!(
        [&shed, &waited, &sent].map(CallError::may_have_run),
        [false, false, true]
    );
}

/// A client that leaves questions unanswered, unless it is told to.
#[derive(Debug)]
struct Silent;

impl ClientLine for Silent {
    fn ask(&self, _: Request) -> BoxFuture<'_, Result<Box<RawValue>, AskError>> {
        Box::pin(std::future::pending())
    }

    fn tell(&self, _: &Notification) {}
}

async fn call_for(upstream: &Upstream, session: Option<&str>) -> Result<Box<RawValue>, CallError> {
    let client = OnBehalf {
        session: session.map(str::to_owned),
        name: "tester".to_owned(),
        principal: "".into(),
        shares_processes: false,
        capabilities: RawValue::from_string(r#"{"elicitation":{}}"#.to_owned()).unwrap(),
        log_level: None,
        line: Arc::new(Silent),
        session_line: None,
    };
    let params = RawValue::from_string(r#"{"name":"t"}"#.to_owned()).unwrap();
    let forward = Forward {
        method: "tools/call",
        params: Some(params.into()),
        progress: None,
        client: Some(&client),
        sent: None,
        repeatable: false,
    };
    upstream.request(forward).await
}

/// Calls that wait for a person hold neither the slots nor the connections of all others.
#[tokio::test]
async fn forgotten_questions_do_not_block_others() {
    let shell = Shell {
        call: r#"printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}\n'"#,
        ..Shell::default()
    };
    let brief = Limits {
        parked_time: seconds(0.5),
        ..limits()
    };
    let setup = Setup::with(shell, brief, |server| {
        server.max_concurrency = NonZeroUsize::new(2).unwrap();
    })
    .await;
    setup.state("ready").await;
    let (ended, mut ends) = mpsc::channel(16);
    for session in 0..8 {
        let (upstream, ended) = (setup.upstream(), ended.clone());
        tokio::spawn(async move {
            let session = session.to_string();
            let _ = ended.send(call_for(&upstream, Some(&session)).await).await;
        });
    }
    wait_until("eight calls are sent", DEADLINE, async || {
        setup.count("tools/call") == 8
    })
    .await;
    let refused = call_for(&setup.upstream(), Some("ninth"))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("8 clients have a process"),
        "{refused}"
    );
    assert!(!refused.may_have_run());
    let upstream = setup.upstream();
    tokio::spawn(async move {
        loop {
            match call_for(&upstream, Some("ninth")).await {
                Err(CallError::NoConnection { .. }) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                other => return drop(ended.send(other).await),
            }
        }
    });
    // Eight have a process each; the ninth gets the place of the one that waited longest.
    let end = within(30, ends.recv()).await.unwrap().unwrap_err();
    assert!(matches!(end, CallError::Unanswered { .. }), "{end}");
    assert!(
        end.to_string().contains("needed for another client"),
        "{end}"
    );
    wait_until("the ninth call is sent", DEADLINE, async || {
        setup.count("tools/call") == 9
    })
    .await;
    within(8, setup.fleet.shutdown()).await;
}

/// The processes that were started and still run.
fn running(setup: &Setup) -> Vec<u32> {
    let log = setup.log();
    let started = log.lines().filter_map(|line| line.strip_prefix("start "));
    started
        .map(|pid| pid.parse().unwrap())
        .filter(|pid| runs(*pid))
        .collect()
}

#[tokio::test]
async fn the_process_of_a_client_ends_a_minute_after_the_client_left() {
    let setup = Setup::of(Shell::default(), limits()).await;
    setup.state("ready").await;
    let upstream = setup.upstream();
    for session in ["one", "two", "one"] {
        call_for(&upstream, Some(session)).await.unwrap();
    }
    // The main one, and one for each client.
    let pids = running(&setup);
    assert_eq!(pids.len(), 3);
    tokio::time::pause();
    upstream.release("one");
    tokio::time::advance(Duration::from_secs(50)).await;
    assert_eq!(running(&setup), pids, "it is kept for a minute");
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    wait_until("the process has ended", DEADLINE, async || {
        running(&setup) == [pids[0], pids[2]]
    })
    .await;
    within(8, setup.fleet.shutdown()).await;
}

#[tokio::test]
async fn parallel_calls_of_a_client_start_one_process() {
    let setup = Setup::of(Shell::default(), limits()).await;
    setup.state("ready").await;
    let upstream = setup.upstream();
    // A modern client has no session, and is known by its name.
    for session in [Some("one"), None] {
        let calls = (0..5).map(|_| call_for(&upstream, session));
        for outcome in futures_util::future::join_all(calls).await {
            outcome.unwrap();
        }
    }
    assert_eq!(setup.count("start "), 3);
    assert_eq!(setup.count("mcpproxy (for tester)"), 2);
    within(8, setup.fleet.shutdown()).await;
}

#[tokio::test]
async fn one_process_serves_all_clients_of_a_server_that_is_shared() {
    let setup = Setup::with(Shell::default(), limits(), |server| {
        server.sharing = config::Sharing::Shared;
    })
    .await;
    setup.state("ready").await;
    for session in [Some("one"), Some("two"), None] {
        call_for(&setup.upstream(), session).await.unwrap();
    }
    assert_eq!(setup.count("start "), 1);
    within(8, setup.fleet.shutdown()).await;
}

/// Reads one HTTP request and returns its body.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    String::from_utf8(body).ok()
}

/// An HTTP server that writes three reports and the result of a call in one piece.
async fn in_one_piece(mut stream: BufReader<TcpStream>) {
    while let Some(body) = request(&mut stream).await {
        let message: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let id = &message["id"];
        let result = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let answer = match message["method"].as_str() {
            Some("initialize") => result(
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"http","version":"1"}}"#,
            ),
            Some("tools/list") => result(r#"{"tools":[{"name":"t"}]}"#),
            Some("tools/call") => {
                let token = &message["params"]["_meta"]["progressToken"];
                let mut events = String::new();
                for step in 1..=3 {
                    events += &format!(
                        "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{step}}}}}\n\n"
                    );
                }
                events += &format!("data: {}\n\n", result(r#"{"content":[]}"#));
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
                    events.len()
                );
                let _ = stream.write_all((head + &events).as_bytes()).await;
                continue;
            }
            _ => {
                let status = match message["method"].as_str() {
                    Some(method) if method.starts_with("notifications/") => "202 Accepted",
                    Some(_) => "400 Unknown",
                    None => "405 No stream",
                };
                let refusal = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                let _ = stream.write_all(refusal.as_bytes()).await;
                continue;
            }
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let _ = stream.write_all((head + &answer).as_bytes()).await;
    }
}

async fn http_setup() -> Setup {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(in_one_piece(BufReader::new(stream)));
        }
    });
    let transport = Transport::http(&address).unwrap();
    let folder = tempfile::tempdir().unwrap();
    Setup::over(transport, limits(), |_| (), folder).await
}

#[tokio::test]
async fn progress_that_comes_with_the_result_is_passed_on_before_it() {
    let setup = http_setup().await;
    setup.state("ready").await;
    for _ in 0..10 {
        let (sender, mut reports) = mpsc::channel(16);
        within(10, call(&setup.upstream(), Some(sender)))
            .await
            .unwrap();
        let steps: Vec<_> = std::iter::from_fn(|| reports.try_recv().ok()).collect();
        assert_eq!(steps.len(), 3, "{steps:?}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_progress_gets_its_answer_all_the_same() {
    let setup = http_setup().await;
    setup.state("ready").await;
    let (sender, mut reports) = mpsc::channel(1);
    within(10, call(&setup.upstream(), Some(sender)))
        .await
        .unwrap();
    assert!(reports.try_recv().is_ok());
}
