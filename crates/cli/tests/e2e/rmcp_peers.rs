//! rmcp, the official Rust SDK, as the client of the daemon and as an upstream behind it.

use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, tool, tool_handler, tool_router};
use serde_json::{Value, json};
use testkit::{Script, TestDaemon, Tool};

use crate::support::{Front, call, home, text_of};

fn params(tool: &'static str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone())
}

#[tokio::test]
async fn rmcp_lists_searches_and_calls() {
    let front = Front::of([Tool::read_only("greet")]).await;
    front.session("greet").await;
    let client = front.daemon.client().await;
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 6);
    let found = client
        .call_tool(params("retrieve_tools", &json!({"query": "greet"})))
        .await
        .unwrap();
    let found = found.structured_content.unwrap();
    assert_eq!(found["tools"][0]["name"], "up:greet");
    let mut arguments = call("up:greet", "read");
    arguments["args"] = json!({"name": "world"});
    let result = client
        .call_tool(params("call_tool_read", &arguments))
        .await
        .unwrap();
    assert_ne!(result.is_error, Some(true));
    assert_eq!(
        front.record.calls()[0]["arguments"],
        json!({"name": "world"})
    );
    let refused = client
        .call_tool(params("call_tool_read", &call("up:greet", "write")))
        .await
        .unwrap();
    assert_eq!(refused.is_error, Some(true));
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn many_clients_share_one_upstream() {
    let front = Front::of([Tool::read_only("greet")]).await;
    front.session("greet").await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(front.daemon.client().await);
    }
    let calls = clients
        .iter()
        .map(|client| client.call_tool(params("call_tool_read", &call("up:greet", "read"))));
    for result in futures_util::future::join_all(calls).await {
        assert_ne!(result.unwrap().is_error, Some(true));
    }
    assert_eq!(front.record.pids().len(), 1);
    assert_eq!(front.record.calls().len(), 8);
}

#[derive(Debug, Clone)]
struct Calculator;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[tool_router]
impl Calculator {
    #[tool(description = "Adds two numbers", annotations(read_only_hint = true))]
    async fn add(
        &self,
        Parameters(Sum { a, b }): Parameters<Sum>,
    ) -> Result<CallToolResult, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text(
            (a + b).to_string(),
        )]))
    }
}

#[tool_handler]
impl ServerHandler for Calculator {}

#[tokio::test]
async fn rmcp_as_an_upstream() {
    let service = StreamableHttpService::new(
        || Ok(Calculator),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = axum::Router::new().nest_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let home = home();
    let other = home.upstream("other", &Script::new([]));
    let servers = json!({"calculator": {"url": url}, "other": other.config()});
    let daemon = TestDaemon::with_servers(home, servers).await;
    let session = daemon.session_with(&["calculator:add"]).await;
    let mut arguments = call("calculator:add", "read");
    arguments["args"] = json!({"a": 19, "b": 23});
    assert_eq!(
        text_of(&session.call("call_tool_read", &arguments).await),
        "42"
    );
    let wrong = call("calculator:add", "read");
    let result = session.call("call_tool_read", &wrong).await;
    assert!(result.contains("\"isError\":true"), "{result}");
}
