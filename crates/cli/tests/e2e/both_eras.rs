//! Servers that speak both eras, on SDKs that others wrote: each client is served in its own era.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use mcp::client::Era;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    ServerRequest, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Session, TestDaemon, wait_until};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::peers::{command, tool};
use crate::person::{Person, everything, fixture_over_stdio};
use crate::support::{call, home};

fn python() -> PathBuf {
    tool("venv/bin").join("python")
}

fn python_server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/python_server.py")
}

pub(crate) async fn in_front_of_python() -> TestDaemon {
    let server = json!({"command": python(), "args": [python_server()]});
    let daemon = TestDaemon::with_servers(home(), json!({"py": server})).await;
    daemon.session_with(&["py:greet"]).await;
    daemon
}

#[tokio::test]
async fn a_legacy_client_is_asked_by_a_server_that_asks_in_the_legacy_era_only() {
    let daemon = in_front_of_python().await;
    for (path, prefix) in [("/mcp/server/py", ""), ("/mcp/direct", "py__")] {
        let person = Person::called("somebody");
        let visitor = person
            .visits(&daemon, path, Era::Legacy, &everything())
            .await;
        let answer = visitor.call(&format!("{prefix}greet"), &json!({})).await;
        assert_eq!(answer, "hello somebody", "{path}");
        let answer = visitor.call(&format!("{prefix}think"), &json!({})).await;
        assert_eq!(answer, "thought somebody", "{path}");
        assert_eq!(visitor.person.asked().len(), 2, "{path}");
    }
}

#[tokio::test]
async fn each_client_has_a_process_of_its_own_and_agents_share_one_for_each_era() {
    let daemon = in_front_of_python().await;
    let visit = async |path: &str, era, name| {
        let person = Person::called(name);
        let visitor = person.visits(&daemon, path, era, &json!({})).await;
        let process = match path {
            "/mcp" => {
                visitor
                    .call("call_tool_write", &call("py:process", "write"))
                    .await
            }
            _ => visitor.call("process", &json!({})).await,
        };
        (visitor, process)
    };
    let mut processes = Vec::new();
    for (era, name) in [
        (Era::Legacy, "one"),
        (Era::Legacy, "two"),
        (Era::Modern, "one"),
        (Era::Modern, "two"),
    ] {
        let (visitor, process) = visit("/mcp/server/py", era, name).await;
        assert_eq!(visitor.call("process", &json!({})).await, process);
        processes.push(process);
    }
    for era in [Era::Legacy, Era::Modern] {
        let (_, one) = visit("/mcp", era, "one").await;
        let (_, two) = visit("/mcp", era, "two").await;
        assert_eq!(one, two, "{era:?}");
        processes.push(one);
    }
    let distinct: std::collections::HashSet<_> = processes.iter().collect();
    assert_eq!(distinct.len(), 6, "{processes:?}");
}

#[tokio::test]
async fn an_update_that_a_call_causes_reaches_the_subscribed_client() {
    let daemon = in_front_of_python().await;
    for capabilities in [json!({}), everything()] {
        let person = Person::called("somebody");
        let visitor = person
            .visits(&daemon, "/mcp/server/py", Era::Legacy, &capabilities)
            .await;
        let note = json!({"uri": "note://one"});
        visitor.request("resources/subscribe", &note).await.unwrap();
        // The stream for notifications is opened beside the requests.
        wait_until("the client hears of the change", DEADLINE, async || {
            visitor.call("touch", &json!({})).await;
            let updated = "notifications/resources/updated";
            visitor.person.has_heard(updated)
        })
        .await;
        visitor
            .request("resources/unsubscribe", &note)
            .await
            .unwrap();
    }
}

/// The answers of the program without a proxy, each as it is on the wire.
async fn direct_answers(home: &Home, requests: &[(&str, &str)]) -> Vec<String> {
    let mut child = command(python(), home)
        .arg(python_server())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = Vec::new();
    for (method, params) in requests {
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        input.write_all(message.as_bytes()).await.unwrap();
        input.write_all(b"\n").await.unwrap();
        let line = lines.next_line().await.unwrap().unwrap();
        answers.push(outcome(&line));
        if *method == "initialize" {
            let initialized = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
            input.write_all(initialized.as_bytes()).await.unwrap();
        }
    }
    drop(input);
    child.wait().await.unwrap();
    answers
}

/// The result or the error in an answer.
fn outcome(answer: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Answer {
        result: Option<Box<RawValue>>,
        error: Option<Box<RawValue>>,
    }
    let answer: Answer = serde_json::from_str(answer).unwrap();
    answer.result.or(answer.error).unwrap().get().to_owned()
}

#[tokio::test]
async fn answers_to_a_legacy_client_are_those_of_a_legacy_session() {
    let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"testkit","version":"1"}}"#;
    let requests = [
        ("initialize", hello),
        ("prompts/list", "{}"),
        ("resources/list", "{}"),
        ("resources/templates/list", "{}"),
        (
            "prompts/get",
            r#"{"name":"review","arguments":{"code":"x"}}"#,
        ),
        ("resources/read", r#"{"uri":"note://one"}"#),
        ("resources/read", r#"{"uri":"note://none"}"#),
        (
            "tools/call",
            r#"{"name":"add","arguments":{"a":19,"b":23}}"#,
        ),
        ("tools/call", r#"{"name":"add","arguments":{"a":"x"}}"#),
        ("tools/list", "{}"),
    ];
    let daemon = in_front_of_python().await;
    let direct = direct_answers(&daemon.home, &requests).await;
    let session = Session::open(&daemon.url("/mcp/server/py")).await;
    for ((method, params), direct) in requests.iter().zip(direct) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let reply = session.post(&body).await.body;
        let reply = outcome(reply.trim_start_matches("data: ").trim());
        if matches!(*method, "initialize" | "tools/list") {
            // The first has its members in an order of our own, the second is put together from pages.
            let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(json(&reply), json(&direct), "{method}");
        } else {
            assert_eq!(reply, direct, "{method} {params}");
        }
    }
}

/// A server on rmcp whose only tool has the client's model say something.
#[derive(Debug, Clone)]
struct Thinker;

impl ServerHandler for Thinker {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let think = Tool::new("think", "thinks", Arc::new(JsonObject::new()));
        Ok(ListToolsResult::with_all_items(vec![think]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = json!({"method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "say"}}],
            "maxTokens": 9,
        }});
        let question: ServerRequest = serde_json::from_value(question).unwrap();
        let refused = |error: String| ErrorData::internal_error(error, None);
        let asking = context.peer.send_request(question);
        let answer = asking.await.map_err(|error| refused(error.to_string()))?;
        let ClientResult::CreateMessageResult(answer) = answer else {
            return Err(refused(format!("{answer:?}")));
        };
        let text = serde_json::to_value(&*answer).unwrap()["content"]["text"].to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

#[tokio::test]
async fn a_legacy_client_is_asked_over_http_too() {
    let service = StreamableHttpService::new(
        || Ok(Thinker),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = axum::Router::new().nest_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let daemon = TestDaemon::with_servers(home(), json!({"rs": {"url": url}})).await;
    daemon.session_with(&["rs:think"]).await;
    let person = Person::called("somebody");
    let visitor = person
        .visits(&daemon, "/mcp/server/rs", Era::Legacy, &everything())
        .await;
    let answer = visitor.call("think", &json!({})).await;
    assert_eq!(answer, "\"somebody\"");
}

#[tokio::test]
async fn a_server_without_the_legacy_era_is_greeted_once_and_then_translated_for() {
    let servers = json!({"fx": fixture_over_stdio("modern")});
    let daemon = TestDaemon::with_servers(home(), servers).await;
    for _ in 0..3 {
        let person = Person::called("somebody");
        let visitor = person
            .visits(&daemon, "/mcp/server/fx", Era::Legacy, &everything())
            .await;
        let arguments = json!({"message": "who?"});
        let answer = visitor.call("test_elicitation", &arguments).await;
        assert!(answer.contains("somebody"), "{answer}");
    }
    let log = daemon.log();
    let refusals = log
        .matches("the server does not know the legacy era")
        .count();
    assert_eq!(refusals, 1, "{log}");
}
