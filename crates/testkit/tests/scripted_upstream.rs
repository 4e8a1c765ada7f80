//! The kit itself: a scripted upstream does what its script says, over both transports.
#![expect(clippy::expect_used, reason = "helpers of tests fail the test")]

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{
    DEADLINE, HttpUpstream, Outcome, Script, Session, StdioUpstream, Tool, Wire, process,
    wait_until,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

struct Running {
    upstream: StdioUpstream,
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    _folder: tempfile::TempDir,
}

impl Running {
    #[expect(
        clippy::disallowed_methods,
        reason = "killed when the handle is dropped"
    )]
    fn start(script: &Script) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_scripted-upstream"));
        let folder = tempfile::tempdir().expect("a folder");
        let upstream = StdioUpstream::place(program, folder.path(), "kit", script);
        let config = upstream.config();
        let arguments = config["args"].as_array().expect("arguments");
        let mut child = Command::new(program)
            .args(arguments.iter().filter_map(Value::as_str))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        Self {
            upstream,
            stdin: child.stdin.take().expect("piped"),
            stdout: BufReader::new(child.stdout.take().expect("piped")).lines(),
            child,
            _folder: folder,
        }
    }

    async fn send(&mut self, message: &str) {
        let line = format!("{message}\n");
        self.stdin.write_all(line.as_bytes()).await.expect("sent");
    }

    async fn line(&mut self) -> String {
        let line = self.stdout.next_line().await.expect("a line");
        line.expect("the upstream runs")
    }

    async fn call(&mut self, tool: &str) {
        let params = json!({"name": tool, "_meta": {"progressToken": "t"}});
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        self.send(&message.to_string()).await;
    }
}

#[tokio::test]
async fn a_result_goes_out_as_written_after_banner_and_progress() {
    let raw = r#"{"content":[],"n":1.0,  "big":123456789012345678901234567890,"\u0041":0}"#;
    let mut tool = Tool::echo("raw").returns(raw).progress(2);
    tool.behaviour.before.push("not json".to_owned());
    let mut script = Script::new([tool]);
    script.start.banner.push("Welcome!".to_owned());
    let mut running = Running::start(&script);
    running.call("raw").await;
    assert_eq!(running.line().await, "Welcome!");
    assert_eq!(running.line().await, "not json");
    for step in 1..=2 {
        let progress: Value = serde_json::from_str(&running.line().await).expect("JSON");
        assert_eq!(progress["params"]["progress"], step);
        assert_eq!(progress["params"]["progressToken"], "t");
    }
    assert_eq!(
        running.line().await,
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{raw}}}"#)
    );
    let record = running.upstream.record();
    assert_eq!(record.pids(), [running.child.id().expect("it runs")]);
    assert_eq!(record.calls()[0]["name"], "raw");
}

#[tokio::test]
async fn pages_changes_and_cancellation() {
    let replacement = Outcome::ReplaceTools(vec![Tool::echo("new")]);
    let mut script = Script::new([
        Tool::echo("swap").outcome(replacement),
        Tool::echo("hang").outcome(Outcome::Hang),
    ]);
    script.page_size = Some(1);
    let mut running = Running::start(&script);
    running.send(r#"{"id":1,"method":"tools/list"}"#).await;
    let page: Value = serde_json::from_str(&running.line().await).expect("JSON");
    assert_eq!(page["result"]["nextCursor"], "1");
    assert_eq!(page["result"]["tools"][0]["name"], "swap");
    running.call("hang").await;
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
    running.send(cancel).await;
    running.call("swap").await;
    let lines = [running.line().await, running.line().await];
    assert!(
        lines.iter().any(|line| line.contains("list_changed")),
        "{lines:?}"
    );
    running.send(r#"{"id":2,"method":"tools/list"}"#).await;
    let page: Value = serde_json::from_str(&running.line().await).expect("JSON");
    assert_eq!(page["result"]["tools"][0]["name"], "new");
    assert_eq!(
        running
            .upstream
            .record()
            .received("notifications/cancelled")
            .len(),
        1
    );
}

#[tokio::test]
async fn exit_codes_and_crashes_are_as_scripted() {
    let script = Script::new([
        Tool::echo("exit").outcome(Outcome::Exit(3)),
        Tool::echo("crash").outcome(Outcome::Crash),
    ]);
    for (tool, code) in [("exit", Some(3)), ("crash", None)] {
        let mut running = Running::start(&script);
        running.call(tool).await;
        let status = running.child.wait().await.expect("it ends");
        assert_eq!(status.code(), code, "{tool}");
    }
}

#[tokio::test]
async fn a_stubborn_upstream_and_its_grandchild_need_sigkill() {
    let mut script = Script::new([]);
    script.stubborn = true;
    script.start.grandchild = true;
    let mut running = Running::start(&script);
    running.send(r#"{"id":1,"method":"ping"}"#).await;
    running.line().await;
    let pid = running.child.id().expect("it runs");
    let grandchild = running.upstream.record().grandchildren()[0];
    process::terminate(pid);
    process::terminate(grandchild);
    running.send(r#"{"id":2,"method":"ping"}"#).await;
    running.line().await;
    assert!(process::is_alive(pid) && process::is_alive(grandchild));
    process::kill(pid);
    process::kill(grandchild);
    let gone = async || !process::is_alive(pid) && !process::is_alive(grandchild);
    wait_until("both are gone", DEADLINE, gone).await;
}

#[tokio::test]
async fn http_answers_as_json_and_as_events_and_forgets_sessions() {
    let folder = tempfile::tempdir().expect("a folder");
    let raw = r#"{"content":[],"n":1.0}"#;
    for wire in [Wire::Json, Wire::EventStream] {
        let mut script = Script::new([Tool::echo("raw").returns(raw).progress(1)]).wire(wire);
        script.http.calls_per_session = Some(1);
        let upstream = HttpUpstream::start(folder.path(), "http", script).await;
        let config = upstream.config();
        let session = Session::open(config["url"].as_str().expect("a url")).await;
        let params = r#"{"name":"raw","_meta":{"progressToken":1}}"#;
        let answer = session.request("tools/call", params).await;
        assert_eq!(answer.result.expect("a result"), raw);
        assert_eq!(
            answer.notifications.len(),
            usize::from(wire == Wire::EventStream)
        );
        let call = r#"{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"raw"}}"#;
        assert_eq!(session.post(call).await.status, 404);
    }
}
