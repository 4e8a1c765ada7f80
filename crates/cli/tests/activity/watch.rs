//! `mcpproxy activity watch`: filtered in every format, there again after the daemon was, and gone
//! without a complaint on Ctrl-C.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{DEADLINE, Home, TestDaemon};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::timeout;

use crate::support::{LANES, Proxy, WRITE};

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
    watch.note("the daemon is back").await;
    let started: Value = serde_json::from_str(&watch.line().await).unwrap();
    assert_eq!(started["arguments"]["n"], "meanwhile", "{started}");
    watch.interrupt().await;
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
