//! `mcpproxy activity watch`: filtered in every format, with a daemon, without one and from one to
//! the next, and gone without a complaint on Ctrl-C.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Script, TestDaemon};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::timeout;

use crate::support::{LANES, Proxy, WRITE, database, home, tools};
use crate::wire::McpClient;

/// A watch that has begun.
struct Watch {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Watch {
    async fn begin(home: &Home, options: &[&str]) -> Self {
        let mut child = home
            .command()
            .args(["activity", "watch"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut watch = Self {
            stdout: BufReader::new(child.stdout.take().unwrap()).lines(),
            stderr: BufReader::new(child.stderr.take().unwrap()).lines(),
            child,
        };
        watch.note("watching").await;
        watch
    }

    /// Reads notes up to one with this word.
    async fn note(&mut self, word: &str) {
        loop {
            let line = timeout(DEADLINE, self.stderr.next_line()).await;
            let line = line.expect("a note in time").unwrap();
            if line.expect("it goes on").contains(word) {
                return;
            }
        }
    }

    async fn line(&mut self) -> String {
        let line = timeout(DEADLINE, self.stdout.next_line()).await;
        let line = line.expect("a line in time").unwrap();
        line.expect("it goes on")
    }

    /// The next record, of a watch as JSON lines: what it was called with and its status.
    async fn record(&mut self) -> (String, String) {
        let record: Value = serde_json::from_str(&self.line().await).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&record["arguments"]["n"]), text(&record["status"]))
    }

    /// The start and the end of one call, and nothing else.
    async fn whole_call(&mut self, name: &str) {
        for status in ["pending", "success"] {
            let expected = (name.to_owned(), status.to_owned());
            assert_eq!(self.record().await, expected);
        }
    }

    /// Reads lines up to one with this word.
    async fn line_with(&mut self, word: &str) -> String {
        loop {
            let line = self.line().await;
            if line.contains(word) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    async fn interrupt(mut self) {
        self.signal(Signal::INT);
        let status = timeout(DEADLINE, self.child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

#[tokio::test]
async fn filters_work_in_every_format_and_interrupting_is_no_failure() {
    let proxy = Proxy::start().await;
    let home = &proxy.daemon.home;
    let filter = ["--intent-type", "write", "--status", "success"];
    let watch = async |format: &str| {
        let options: Vec<&str> = filter.iter().copied().chain(["-o", format]).collect();
        Watch::begin(home, &options).await
    };
    let mut json_lines = watch("jsonl").await;
    let mut table = watch("table").await;
    let mut yaml = watch("yaml").await;
    let mut client = proxy.client().await;
    for number in 0..2 {
        for lane in LANES {
            client.succeed(lane, &json!({"n": number})).await;
        }
    }
    for number in 0..2 {
        let record: Value = serde_json::from_str(&json_lines.line().await).unwrap();
        assert_eq!(record["tool_name"], "save");
        assert_eq!(record["status"], "success");
        assert_eq!(record["arguments"]["n"], number);
        let row = table.line_with("save").await;
        assert!(row.contains("W write") && row.contains("success"), "{row}");
        yaml.line_with("tool_name: save").await;
    }
    for watch in [json_lines, table, yaml] {
        watch.interrupt().await;
    }
}

#[tokio::test]
async fn it_comes_back_with_the_daemon_and_misses_nothing() {
    let proxy = Proxy::start().await;
    let mut watch = Watch::begin(&proxy.daemon.home, &["--type", "tool_call", "-o", "jsonl"]).await;
    let mut client = proxy.client().await;
    client.succeed(WRITE, &json!({"n": "before"})).await;
    watch.line_with(r#""status":"success""#).await;

    let config = std::fs::read(proxy.daemon.home.config_file()).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    let home = proxy.daemon.killed().await;
    watch.note("daemon").await;
    let daemon = TestDaemon::start(home, config).await;
    let proxy = Proxy { daemon, ..proxy };
    // Most likely before the watch has found the daemon again.
    let mut client = proxy.client().await;
    client.succeed(WRITE, &json!({"n": "after"})).await;
    let started: Value = serde_json::from_str(&watch.line().await).unwrap();
    assert_eq!(
        (&started["status"], &started["arguments"]["n"]),
        (&json!("pending"), &json!("after"))
    );
    watch.line_with(r#""status":"success""#).await;
    watch.interrupt().await;
}

/// The daemon is killed before the watch has seen anything, and something happens before it finds
/// the next one.
#[tokio::test]
async fn what_happens_before_its_first_event_is_not_missed_either() {
    let proxy = Proxy::start().await;
    proxy.calls(1).await;
    let mut watch = Watch::begin(&proxy.daemon.home, &["--type", "tool_call", "-o", "jsonl"]).await;
    watch.signal(Signal::STOP);
    let config = std::fs::read(proxy.daemon.home.config_file()).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    let home = proxy.daemon.killed().await;
    let daemon = TestDaemon::start(home, config).await;
    let proxy = Proxy { daemon, ..proxy };
    let mut client = proxy.client().await;
    client.succeed(WRITE, &json!({"n": "meanwhile"})).await;
    watch.signal(Signal::CONT);
    watch.note("watching").await;
    let started: Value = serde_json::from_str(&watch.line().await).unwrap();
    assert_eq!(started["arguments"]["n"], "meanwhile", "{started}");
    watch.interrupt().await;
}

const CALLS: [&str; 4] = ["--type", "tool_call", "-o", "jsonl"];

/// A home with an upstream and no daemon.
fn home_without_daemon() -> (Home, Value) {
    let home = home();
    let upstream = home.upstream("up", &Script::new(tools()));
    let config = json!({"mcpServers": {"up": upstream.config()}});
    home.write_config(&config);
    (home, config)
}

/// A call by a process that is its own daemon for as long as it runs.
async fn call_without_daemon(home: &Home, name: &str) {
    let arguments = json!({"n": name}).to_string();
    home.cli(["call", "tool-write", "up:save", "--args", &arguments])
        .await
        .succeeded();
}

#[tokio::test]
async fn without_a_daemon_the_log_itself_is_watched_from_its_first_record() {
    let (home, _) = home_without_daemon();
    let mut watch = Watch::begin(&home, &CALLS).await;
    assert!(!home.path().join(".mcpproxy/activity").exists());
    for name in ["first", "second"] {
        call_without_daemon(&home, name).await;
        watch.whole_call(name).await;
    }
    let mut from_now_on = Watch::begin(&home, &CALLS).await;
    call_without_daemon(&home, "third").await;
    for watch in [&mut watch, &mut from_now_on] {
        watch.whole_call("third").await;
    }
    for watch in [watch, from_now_on] {
        watch.interrupt().await;
    }
}

#[tokio::test]
async fn daemons_come_and_go_and_a_watch_goes_on() {
    let (home, config) = home_without_daemon();
    let mut watch = Watch::begin(&home, &CALLS).await;
    let mut home = home;
    for round in 0..3 {
        call_without_daemon(&home, "alone").await;
        watch.whole_call("alone").await;
        let daemon = TestDaemon::start(home, config.clone()).await;
        let mut client = McpClient::connect(daemon.address()).await.unwrap();
        client.succeed(WRITE, &json!({"n": "daemon"})).await;
        watch.whole_call("daemon").await;
        home = if round == 1 {
            daemon.killed().await
        } else {
            daemon.stop().await.0
        };
    }
    watch.interrupt().await;
}

/// What a daemon that was killed had answered may be nowhere but in its journal.
#[tokio::test]
async fn what_a_killed_daemon_had_answered_is_seen() {
    let proxy = Proxy::start().await;
    let mut watch = Watch::begin(&proxy.daemon.home, &CALLS).await;
    let mut client = proxy.client().await;
    for _ in 0..20 {
        client.succeed(WRITE, &json!({"n": "answered"})).await;
    }
    let home = proxy.daemon.killed().await;
    for _ in 0..20 {
        watch.whole_call("answered").await;
    }
    watch.note("no daemon is running").await;
    call_without_daemon(&home, "alone").await;
    watch.whole_call("alone").await;
    watch.interrupt().await;
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_no_watch() {
    let (home, _) = home_without_daemon();
    let file = database(&home);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(
        &file,
        "not a database, and long enough to be looked at".repeat(100),
    )
    .unwrap();
    let output = home.cli(["activity", "watch"]).await;
    output.ended_with(1);
    assert!(output.stderr.contains("activity log"), "{}", output.stderr);
    assert!(
        output.stderr.contains("mcpproxy serve"),
        "{}",
        output.stderr
    );
}

#[tokio::test]
async fn a_table_has_one_header_and_a_line_for_each_record() {
    let proxy = Proxy::start().await;
    let mut watch = Watch::begin(&proxy.daemon.home, &["--type", "tool_call"]).await;
    let mut client = proxy.client().await;
    for lane in LANES {
        client.succeed(lane, &json!({})).await;
    }
    let header = watch.line().await;
    let begins: Vec<usize> = ["ID", "TIME", "SERVER", "TOOL", "INTENT", "STATUS"]
        .iter()
        .map(|title| header.find(title).unwrap_or_else(|| panic!("{header}")))
        .collect();
    for lane in LANES {
        for status in ["pending", "success"] {
            let row = watch.line().await;
            let cells: Vec<&str> = begins.iter().map(|begin| &row[*begin..]).collect();
            assert_eq!(cells[0].find(' '), Some(26), "{row}");
            let time = cells[1].as_bytes();
            assert_eq!((time[2], time[5], time[8]), (b':', b':', b' '), "{row}");
            let word = format!(" {}", lane.operation_type);
            for (cell, text) in [
                (cells[2], "up "),
                (cells[3], lane.tool),
                (&cells[4][1..], word.as_str()),
                (cells[5], status),
            ] {
                assert!(cell.starts_with(text), "{text} in {row}");
            }
        }
    }
    watch.interrupt().await;
}

/// As with `| head`.
#[tokio::test]
async fn it_ends_when_nobody_reads_it_any_more() {
    let proxy = Proxy::start().await;
    let watch = Watch::begin(&proxy.daemon.home, &CALLS).await;
    let Watch {
        mut child,
        stdout,
        stderr,
    } = watch;
    drop(stdout);
    proxy.calls(1).await;
    let status = timeout(DEADLINE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    drop(stderr);
}

#[tokio::test]
async fn what_hides_or_turns_text_around_is_escaped_as_data_too() {
    let proxy = Proxy::start().await;
    let text = "one \u{202e}two\u{9b}31m\u{e0041}";
    let home = &proxy.daemon.home;
    let mut json_lines = Watch::begin(home, &CALLS).await;
    let mut yaml = Watch::begin(home, &["-o", "yaml"]).await;
    let mut client = proxy.client().await;
    client.succeed(WRITE, &json!({"n": text})).await;
    let line = json_lines.line().await;
    assert!(
        line.contains("\\u202etwo\\u009b31m\\udb40\\udc41"),
        "{line}"
    );
    let record: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(record["arguments"]["n"], text);
    let line = yaml.line_with("one ").await;
    assert!(line.contains("\\U0000202etwo\\U0000009b31m"), "{line}");
}

#[tokio::test]
async fn a_watch_is_from_now_on() {
    let proxy = Proxy::start().await;
    for option in ["--since=1h", "--until=2030-01-01T00:00:00Z"] {
        let output = proxy.daemon.home.cli(["activity", "watch", option]).await;
        output.ended_with(2);
        for word in ["--since", "--until", "activity list"] {
            assert!(output.stderr.contains(word), "{}", output.stderr);
        }
    }
}
