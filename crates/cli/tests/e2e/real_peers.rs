//! Peers that others wrote: the official Python SDK and the inspector as clients, the official
//! reference servers as upstreams.

use std::path::Path;
use std::process::Stdio;

use mcp::client::Era;
use serde_json::{Value, json};
use testkit::{Home, TestDaemon, wait_until};
use tokio::process::Child;

use crate::peers::{SLOW_START, command, json_output, node, tool};
use crate::person::{Person, Visitor, everything};
use crate::support::{call, home, read, text_of};

/// The entry for an upstream that npm installed.
pub(crate) fn npm_server(program: &str, arguments: &[&str], env: &Value) -> Value {
    let program = tool(&format!("node_modules/.bin/{program}"));
    let mut args = vec![json!(program)];
    args.extend(arguments.iter().map(|argument| json!(argument)));
    json!({"command": node(), "args": args, "env": env})
}

async fn python(daemon: &TestDaemon, tool_id: &str, arguments: &Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/python_client.py");
    let mut command = command(tool("venv/bin").join("python"), &daemon.home);
    command
        .arg(script)
        .args([&daemon.url("/mcp"), tool_id, &arguments.to_string()]);
    json_output(command).await
}

async fn inspector(daemon: &TestDaemon, arguments: &[&str]) -> Value {
    let mut command = command(node(), &daemon.home);
    command
        .arg(tool("node_modules/.bin/mcp-inspector"))
        .args(["--cli", &daemon.url("/mcp"), "--format", "json", "-q"])
        .args(arguments);
    json_output(command).await
}

/// All three reference servers over stdio, and a folder with one file in it.
async fn reference_servers() -> TestDaemon {
    let home = home();
    let folder = home.path().join("files");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("hello.txt"), "hello from a file").unwrap();
    let memory = home.path().join("memory.jsonl");
    let folder = folder.to_str().unwrap();
    let servers = json!({
        "everything": npm_server("mcp-server-everything", &["stdio"], &json!({})),
        "filesystem": npm_server("mcp-server-filesystem", &[folder], &json!({})),
        "memory": npm_server("mcp-server-memory", &[], &json!({"MEMORY_FILE_PATH": memory})),
    });
    let daemon = TestDaemon::with_servers(home, servers).await;
    let session = daemon.session().await;
    for tool in [
        "everything:echo",
        "filesystem:read_text_file",
        "memory:read_graph",
    ] {
        daemon.wait_for_tool(&session, tool).await;
    }
    daemon
}

/// The everything server over streamable HTTP, on a port of its own.
async fn everything_over_http(home: &Home) -> (Child, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut command = command(node(), home);
    let child = command
        .arg(tool("node_modules/.bin/mcp-server-everything"))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the everything server listens", SLOW_START, async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_ok()
    })
    .await;
    (child, format!("http://127.0.0.1:{port}/mcp"))
}

#[tokio::test]
async fn the_python_sdk_searches_and_calls_the_reference_servers() {
    let daemon = reference_servers().await;
    let echo = python(&daemon, "everything:echo", &json!({"message": "hello"})).await;
    assert_eq!(echo["tools"].as_array().unwrap().len(), 6);
    assert_eq!(echo["lane"], "call_tool_read");
    assert_eq!(echo["text"], json!(["Echo: hello"]));
    assert_eq!(echo["refusal"], "INTENT_MISMATCH");
    let file = json!({"path": daemon.home.path().join("files/hello.txt")});
    let read = python(&daemon, "filesystem:read_text_file", &file).await;
    assert_eq!(read["text"], json!(["hello from a file"]));
    let file = json!({"path": daemon.home.path().join("files/new.txt"), "content": "written"});
    let written = python(&daemon, "filesystem:write_file", &file).await;
    assert_eq!(written["lane"], "call_tool_destructive");
    assert_eq!(written["is_error"], false);
    let new = std::fs::read_to_string(daemon.home.path().join("files/new.txt")).unwrap();
    assert_eq!(new, "written");
    let entity = json!({"entities": [{"name": "ada", "entityType": "person", "observations": []}]});
    let created = python(&daemon, "memory:create_entities", &entity).await;
    assert_eq!(created["lane"], "call_tool_write");
    let session = daemon.session().await;
    let graph = text_of(&crate::support::read(&session, "memory:read_graph").await);
    assert!(graph.contains("ada"), "{graph}");
}

#[tokio::test]
async fn the_python_sdk_receives_images_and_progress() {
    let daemon = reference_servers().await;
    let image = python(&daemon, "everything:get-tiny-image", &json!({})).await;
    assert!(
        image["types"].as_array().unwrap().contains(&json!("image")),
        "{image}"
    );
    let arguments = json!({"duration": 1, "steps": 4});
    let long = python(
        &daemon,
        "everything:trigger-long-running-operation",
        &arguments,
    )
    .await;
    assert_eq!(long["is_error"], false);
    assert!(long["progress"].as_array().unwrap().len() >= 3, "{long}");
}

#[tokio::test]
async fn the_inspector_lists_searches_and_calls() {
    let daemon = reference_servers().await;
    let list = inspector(&daemon, &["--method", "tools/list"]).await;
    let result = list.get("result").unwrap_or(&list);
    assert_eq!(result["tools"].as_array().unwrap().len(), 6, "{list}");
    let query = json!({"query": "echo a message"}).to_string();
    let call_method = ["--method", "tools/call", "--tool-name"];
    let search = [
        &call_method[..],
        &["retrieve_tools", "--tool-args-json", &query],
    ]
    .concat();
    let found = inspector(&daemon, &search).await;
    let result = found.get("result").unwrap_or(&found);
    assert_eq!(
        result["structuredContent"]["tools"][0]["name"], "everything:echo",
        "{found}"
    );
    let mut arguments = call("everything:echo", "read");
    arguments["args"] = json!({"message": "inspected"});
    let arguments = arguments.to_string();
    let echo = [
        &call_method[..],
        &["call_tool_read", "--tool-args-json", &arguments],
    ]
    .concat();
    let echoed = inspector(&daemon, &echo).await;
    assert!(echoed.to_string().contains("Echo: inspected"), "{echoed}");
}

#[tokio::test]
async fn the_inspector_finds_no_fault_with_our_schemas() {
    let daemon = TestDaemon::with_servers(home(), json!({})).await;
    let mut command = command(node(), &daemon.home);
    command.arg(tool("node_modules/.bin/mcp-inspector")).args([
        "--cli",
        &daemon.url("/mcp"),
        "--method",
        "tools/list",
        "--strict",
    ]);
    let output = tokio::time::timeout(SLOW_START, command.output())
        .await
        .unwrap()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

#[tokio::test]
async fn a_reference_server_over_http() {
    let home = home();
    let (_server, url) = everything_over_http(&home).await;
    let daemon = TestDaemon::with_servers(home, json!({"everything": {"url": url}})).await;
    let session = daemon.session_with(&["everything:echo"]).await;
    let mut arguments = call("everything:echo", "read");
    arguments["args"] = json!({"message": "over HTTP"});
    let echo = session.call("call_tool_read", &arguments).await;
    assert_eq!(text_of(&echo), "Echo: over HTTP");
    let arguments = json!({"duration": 1, "steps": 4});
    let long = python(
        &daemon,
        "everything:trigger-long-running-operation",
        &arguments,
    )
    .await;
    assert!(long["progress"].as_array().unwrap().len() >= 3, "{long}");
    let links = read(&session, "everything:get-resource-links").await;
    assert!(links.contains("resource_link"), "{links}");
}

#[tokio::test]
async fn tools_that_need_a_capable_client_exist_for_those_and_can_be_called() {
    let daemon = reference_servers().await;
    for era in [Era::Legacy, Era::Modern] {
        let visit = async |path: &str, capabilities: &Value| {
            let person = Person::called("somebody");
            person.visits(&daemon, path, era, capabilities).await
        };
        let count = async |visitor: &Visitor| {
            let listed = visitor.request("tools/list", &json!({})).await.unwrap();
            listed["tools"].as_array().unwrap().len()
        };
        let path = "/mcp/server/everything";
        let (capable, silent) = (
            visit(path, &everything()).await,
            visit(path, &json!({})).await,
        );
        assert_eq!(
            (count(&capable).await, count(&silent).await),
            (17, 13),
            "{era:?}"
        );
        let arguments = json!({"prompt": "say", "maxTokens": 9});
        let sampled = capable.call("trigger-sampling-request", &arguments).await;
        assert!(sampled.contains("somebody"), "{era:?}: {sampled}");
        let agent = visit("/mcp", &everything()).await;
        let mut request = call("everything:trigger-sampling-request", "destructive");
        request["args"] = arguments;
        let sampled = agent.call("call_tool_destructive", &request).await;
        assert!(sampled.contains("somebody"), "{era:?}: {sampled}");
    }
}
