//! The first hour with the real Claude Code: connected, its servers moved, calls made, the daemon
//! restarted in the middle, and everything undone. The model behind it follows a script.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Script, Tool, wait_for};
use tokio::process::{Child, Command};

use crate::peers::{SLOW_START, command, tool};
use crate::support::home;

/// Characters of a result that is longer than what is shown at once.
const LONG: usize = 1_200_000;

/// The model, on loopback.
struct Model {
    _child: Child,
    url: String,
    log: std::path::PathBuf,
}

impl Model {
    async fn start(home: &Home, turns: &Value) -> Self {
        let (port, script) = (home.path().join("port"), home.path().join("turns.json"));
        let log = home.path().join("model.jsonl");
        std::fs::write(&script, turns.to_string()).unwrap();
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
        let mut python = command(tool("venv/bin/python"), home);
        let child = python
            .arg(peers.join("scripted_model.py"))
            .args([&port, &script, &log])
            .spawn()
            .unwrap();
        let port = wait_for("the model listens", DEADLINE, async || {
            std::fs::read_to_string(&port)
                .ok()
                .filter(|port| !port.is_empty())
        })
        .await;
        Self {
            _child: child,
            url: format!("http://127.0.0.1:{port}"),
            log,
        }
    }

    /// What the model was told, request by request.
    fn told(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        let lines = log.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Claude Code without a terminal, which asks nobody and so is denied what it would ask for.
fn claude(home: &Home, model: &Model) -> Command {
    let program = "node_modules/@anthropic-ai/claude-code-linux-x64/claude";
    let mut claude = command(tool(program), home);
    claude
        .args(["-p", "go", "--model", "claude-sonnet-4-5"])
        .env("ANTHROPIC_BASE_URL", &model.url)
        .env("ANTHROPIC_API_KEY", "sk-ant-of-nobody")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .current_dir(home.path());
    claude
}

fn call(lane: &str, tool: &str) -> Value {
    let intent = json!({"operation_type": lane});
    json!({"name": format!("mcp__mcpproxy__call_tool_{lane}"), "input": {"name": tool, "intent": intent}})
}

#[tokio::test]
async fn the_first_hour() {
    let home = home();
    let long: String = (0..LONG / 10).map(|line| format!("{line:09}\n")).collect();
    let tools = [
        Tool::read_only("look"),
        Tool::annotated(
            "make",
            &json!({"readOnlyHint": false, "destructiveHint": false}),
        ),
        Tool::read_only("read_all")
            .returns(json!({"content": [{"type": "text", "text": long}]}).to_string()),
    ];
    let upstream = home.upstream("up", &Script::new(tools));
    let own = json!({"mcpServers": {"up": upstream.config()}}).to_string();
    let own_file = home.path().join(".claude.json");
    std::fs::write(&own_file, &own).unwrap();
    home.write_config(&json!({"listen": free_address()}));

    let arguments = [
        "connect",
        "claude-code",
        "--approve",
        "read",
        "--move",
        "--unannotated",
        "infer",
        "--yes",
    ];
    home.cli(arguments).await.succeeded();
    home.cli(["tools", "list"]).await.succeeded();

    let restarted = {
        let mut call = call("read", "up:look");
        call["first"] = json!([env!("CARGO_BIN_EXE_mcpproxy"), "restart"]);
        call
    };
    let turns = json!([
        call("read", "up:look"),
        call("write", "up:make"),
        restarted,
        call("read", "up:read_all"),
        "done"
    ]);
    let model = Model::start(&home, &turns).await;
    let output = tokio::time::timeout(SLOW_START, claude(&home, &model).output())
        .await
        .expect("Claude Code ends")
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said.trim(), "done", "{output:?}");

    let told = model.told();
    let tools = told[0]["tools"].as_array().unwrap();
    let own = tools
        .iter()
        .any(|tool| tool.as_str().unwrap().starts_with("mcp__up__"));
    assert!(
        !own,
        "agents reach the server through mcpproxy alone: {tools:?}"
    );
    let results: Vec<&Value> = told.iter().filter_map(|it| it["results"].get(0)).collect();
    // Reads run silently, also after the restart; a write is denied where nobody can be asked.
    assert_eq!(results[0]["is_error"], false, "{}", results[0]);
    assert_eq!(results[1]["is_error"], true, "{}", results[1]);
    assert_eq!(results[2]["is_error"], false, "{}", results[2]);
    let calls: Vec<Value> = upstream.record().calls();
    let names: Vec<&str> = calls
        .iter()
        .map(|call| call["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["look", "look", "read_all"]);
    // The long result arrived whole, page by page.
    let pages = results[3..].iter().map(|page| {
        let text = page["text"].as_str().unwrap();
        let (note, page) = text.split_once(']').unwrap();
        assert!(note.starts_with("[mcpproxy: "), "{note}");
        // The client may add a note of its own at the end.
        page.split("\n\n<system-reminder>").next().unwrap()
    });
    // It also takes away line ends at the edges of a page.
    let read: Vec<&str> = pages.flat_map(str::lines).collect();
    assert_eq!(read.concat(), long.replace('\n', ""));
    // It is all in the log, and the log holds.
    home.cli(["activity", "verify"]).await.succeeded();

    home.cli(["connect", "claude-code", "--undo", "--yes"])
        .await
        .succeeded();
    let after: Value = serde_json::from_slice(&std::fs::read(&own_file).unwrap()).unwrap();
    assert_eq!(after["mcpServers"]["up"], upstream.config());
    assert!(after["mcpServers"]["mcpproxy"].is_null(), "{after}");
    home.cli(["stop"]).await.succeeded();
}

fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}
