//! The server over a pair of pipes, one line at a time.

use std::sync::Arc;
use std::time::Duration;

use mcp::server::{LineOptions, LinesError, serve_lines};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf,
    duplex, split,
};
use tokio::task::JoinHandle;

use crate::script::Script;
use crate::wire::{call, hello, notification, request, soon};

pub(crate) struct Pipe {
    pub(crate) script: Arc<Script>,
    served: JoinHandle<Result<(), LinesError>>,
    lines: BufReader<ReadHalf<DuplexStream>>,
    input: WriteHalf<DuplexStream>,
}

impl Pipe {
    pub(crate) fn open(options: LineOptions) -> Self {
        let script = Script::new();
        let (ours, theirs) = duplex(64 * 1024);
        let (reader, writer) = split(theirs);
        let served = tokio::spawn(serve_lines(Arc::clone(&script), reader, writer, options));
        let (lines, input) = split(ours);
        Self {
            script,
            served,
            lines: BufReader::new(lines),
            input,
        }
    }

    async fn initialized(version: &str) -> Self {
        let mut pipe = Self::open(LineOptions::default());
        pipe.hello(version).await;
        pipe
    }

    pub(crate) async fn hello(&mut self, version: &str) {
        self.write(&hello(version)).await;
        assert_eq!(self.read().await["result"]["protocolVersion"], version);
    }

    pub(crate) async fn write(&mut self, line: &str) {
        let line = format!("{line}\n");
        soon(self.input.write_all(line.as_bytes())).await.unwrap();
    }

    pub(crate) async fn read(&mut self) -> Value {
        let mut line = String::new();
        soon(self.lines.read_line(&mut line)).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) async fn ask(&mut self, message: Value) -> Value {
        self.write(&message.to_string()).await;
        self.read().await
    }

    /// Closes our end and gives what the server still wrote.
    pub(crate) async fn close(mut self) -> (Arc<Script>, String) {
        soon(self.input.shutdown()).await.unwrap();
        let mut rest = String::new();
        soon(self.lines.read_to_string(&mut rest)).await.unwrap();
        soon(self.served).await.unwrap().unwrap();
        (self.script, rest)
    }
}

#[tokio::test]
async fn only_ping_is_answered_before_initialize() {
    let mut pipe = Pipe::open(LineOptions::default());
    assert_eq!(
        pipe.ask(request(1, "ping", &json!({}))).await["result"],
        json!({})
    );
    let early = pipe.ask(request(2, "tools/list", &json!({}))).await;
    assert_eq!(early["error"]["code"], -32600);
    pipe.write(&notification("notifications/roots/list_changed", &json!({})).to_string())
        .await;
    pipe.hello("2025-06-18").await;
    let list = pipe.ask(request(4, "tools/list", &json!({}))).await;
    assert_eq!(list["result"]["tools"][0]["name"], "echo");
    let again = pipe
        .ask(serde_json::from_str(&hello("2025-06-18")).unwrap())
        .await;
    assert_eq!(again["error"]["code"], -32600);
    let (script, rest) = pipe.close().await;
    assert_eq!(rest, "");
    assert_eq!(script.events.borrow().closed, 1);
    assert!(script.events.borrow().notifications.is_empty());
}

#[tokio::test]
async fn lines_that_cannot_be_read_are_answered_and_passed_over() {
    let mut pipe = Pipe::open(LineOptions {
        line_limit: 500,
        ..LineOptions::default()
    });
    pipe.hello("2025-06-18").await;
    pipe.write("not json").await;
    assert_eq!(pipe.read().await["error"]["code"], -32700);
    pipe.write(r#"{"jsonrpc":"2.0","id":5}"#).await;
    let answer = pipe.read().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(5), &json!(-32600))
    );
    pipe.write(&"x".repeat(600)).await;
    let answer = pipe.read().await;
    assert_eq!(answer["error"]["code"], -32600);
    assert!(answer["error"]["message"].as_str().unwrap().contains("600"));
    pipe.write("").await;
    let fine = pipe.ask(call(1, "echo", &json!({"fine": true}))).await;
    assert_eq!(fine["result"]["fine"], true);
}

#[tokio::test]
async fn calls_run_beside_each_other_and_results_keep_their_bytes() {
    let mut pipe = Pipe::initialized("2025-06-18").await;
    pipe.write(&call(1, "wait", &json!({})).to_string()).await;
    pipe.write(
        r#"{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"echo","arguments":{"z":1.0,"a":1e2}}}"#,
    )
    .await;
    let mut line = String::new();
    soon(pipe.lines.read_line(&mut line)).await.unwrap();
    assert_eq!(
        line,
        "{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"result\":{\"z\":1.0,\"a\":1e2}}\n"
    );
    pipe.script.release();
    assert_eq!(pipe.read().await["id"], 1);
}

#[tokio::test]
async fn progress_comes_before_its_answer() {
    let mut pipe = Pipe::initialized("2025-06-18").await;
    // More than the queue to the client holds.
    pipe.write(&call(1, "progress", &json!({"count": 300})).to_string())
        .await;
    for step in 1..=300 {
        assert_eq!(pipe.read().await["params"]["progress"], step);
    }
    assert_eq!(pipe.read().await["id"], 1);
}

#[tokio::test]
async fn a_cancelled_call_is_told_and_gets_no_answer() {
    let mut pipe = Pipe::initialized("2025-06-18").await;
    // On the next line already, before the call had a chance to run.
    pipe.write(&call(1, "wait", &json!({})).to_string()).await;
    let cancel = notification("notifications/cancelled", &json!({"requestId": 1}));
    pipe.write(&cancel.to_string()).await;
    pipe.script.until(|events| events.cancelled == 1).await;
    assert_eq!(pipe.ask(request(2, "ping", &json!({}))).await["id"], 2);
    let (_, rest) = pipe.close().await;
    // What the call itself sent after that is all there is.
    assert!(!rest.contains("\"id\":1"), "{rest}");
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused() {
    let mut pipe = Pipe::initialized("2025-06-18").await;
    pipe.write(&call(1, "wait", &json!({})).to_string()).await;
    let second = pipe.ask(call(1, "echo", &json!({}))).await;
    assert_eq!(second["error"]["code"], -32600);
    pipe.script.release();
    assert_eq!(
        pipe.read().await["result"]["content"][0]["text"],
        "released"
    );
}

#[tokio::test]
async fn a_question_is_answered_through_the_same_pipe() {
    let mut pipe = Pipe::initialized("2025-06-18").await;
    let question = pipe.ask(call(1, "roots", &json!({}))).await;
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [1.0]}});
    let result = pipe.ask(answer).await;
    assert_eq!(result["result"]["content"][0]["text"], r#"{"roots":[1.0]}"#);
}

#[tokio::test]
async fn a_notification_may_make_the_service_ask() {
    let mut pipe = Pipe::initialized("2025-06-18").await;
    let question = pipe
        .ask(notification("notifications/test/ask", &json!({})))
        .await;
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {}});
    pipe.write(&answer.to_string()).await;
    pipe.script
        .until(|events| events.notifications == ["notifications/test/ask"])
        .await;
}

#[tokio::test]
async fn batches_are_answered_by_a_batch_where_the_version_has_them() {
    let batch = json!([
        call(1, "echo", &json!({"a": 1})),
        notification("notifications/roots/list_changed", &json!({})),
        request(2, "ping", &json!({})),
    ]);
    let mut old = Pipe::initialized("2024-11-05").await;
    let answers = old.ask(batch.clone()).await;
    assert_eq!(answers[0]["result"], json!({"a": 1}));
    assert_eq!(answers[1]["id"], 2);
    let mut new = Pipe::initialized("2025-11-25").await;
    assert_eq!(new.ask(batch).await["error"]["code"], -32600);
}

#[tokio::test]
async fn a_call_too_many_is_refused_and_what_ends_the_others_is_still_read() {
    let mut pipe = Pipe::open(LineOptions {
        max_calls: 2,
        ..LineOptions::default()
    });
    pipe.hello("2025-03-26").await;
    for id in 1..=2 {
        pipe.write(&call(id, "wait", &json!({})).to_string()).await;
    }
    pipe.script.until(|events| events.begun == 2).await;
    let third = pipe.ask(call(3, "wait", &json!({}))).await;
    assert_eq!(
        (&third["id"], &third["error"]["code"]),
        (&json!(3), &json!(-32600))
    );
    let batch = pipe.ask(json!([call(4, "wait", &json!({}))])).await;
    assert_eq!(
        (&batch["id"], &batch["error"]["code"]),
        (&json!(4), &json!(-32600))
    );
    let cancel = notification("notifications/cancelled", &json!({"requestId": 1}));
    pipe.write(&cancel.to_string()).await;
    pipe.script.until(|events| events.cancelled == 1).await;
    pipe.script.release();
    assert_eq!(pipe.read().await["id"], 2);
    let next = pipe.ask(call(5, "echo", &json!({}))).await;
    assert!(next["result"].is_object(), "{next}");
}

#[tokio::test]
async fn what_a_client_says_of_itself_is_bounded() {
    let mut pipe = Pipe::open(LineOptions {
        session_bytes: 1_000,
        ..LineOptions::default()
    });
    let capabilities = json!({"x": "x".repeat(2_000)});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": capabilities}});
    let refused = pipe.ask(hello).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    pipe.hello("2025-06-18").await;
}

#[tokio::test]
async fn calls_may_finish_after_the_client_closed_its_end() {
    let mut pipe = Pipe::initialized("2025-06-18").await;
    pipe.write(&call(1, "wait", &json!({})).to_string()).await;
    pipe.write(&call(2, "roots", &json!({})).to_string()).await;
    pipe.script.until(|events| events.begun == 2).await;
    let script = Arc::clone(&pipe.script);
    let (closed, ()) = tokio::join!(pipe.close(), async {
        // The question can no longer be answered, so its call ends at once.
        script.until(|events| events.finished == 1).await;
        script.release();
    });
    let rest = closed.1;
    assert!(rest.contains(r#""id":1,"result""#), "{rest}");
    assert!(rest.contains(r#""id":2,"result""#), "{rest}");
    assert_eq!(script.events.borrow().cancelled, 0);
}

#[tokio::test]
async fn after_the_grace_calls_are_cancelled() {
    let mut pipe = Pipe::open(LineOptions {
        grace: Duration::from_millis(50),
        ..LineOptions::default()
    });
    pipe.hello("2025-06-18").await;
    pipe.write(&call(1, "wait", &json!({})).to_string()).await;
    pipe.script.until(|events| events.begun == 1).await;
    let (script, rest) = pipe.close().await;
    assert_eq!(script.events.borrow().cancelled, 1);
    assert_eq!(script.events.borrow().closed, 1);
    assert!(!rest.contains(r#""id":1"#), "{rest}");
}

#[tokio::test]
async fn a_client_that_is_gone_ends_the_server_even_if_it_left_its_calls() {
    let mut pipe = Pipe::initialized("2025-06-18").await;
    pipe.write(&call(1, "progress", &json!({"count": 100_000})).to_string())
        .await;
    let Pipe {
        script,
        served,
        lines,
        input,
    } = pipe;
    drop((lines, input));
    let _ = soon(served).await.unwrap();
    assert_eq!(script.events.borrow().closed, 1);
}
