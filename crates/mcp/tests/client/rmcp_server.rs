//! The client against a real server, over pipes and over HTTP with streams and with bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp::RawValue;
use mcp::client::{Client, HttpEndpoint, RequestError, RequestOptions};
use mcp::lines::DEFAULT_LINE_LIMIT;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
    ContentBlock, JsonObject, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;

use crate::support::{deadline, eventually, hello, raw};

/// A server with a tool that is done at once, one that reports progress and one that never ends.
#[derive(Clone, Default)]
struct Workshop {
    cancelled: Arc<AtomicUsize>,
}

impl ServerHandler for Workshop {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let echo = Tool::new("echo", "says it again", Arc::new(JsonObject::new()));
        Ok(ListToolsResult::with_all_items(vec![echo]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "echo" => {
                let arguments = Value::Object(request.arguments.unwrap_or_default());
                let text = ContentBlock::text(arguments.to_string());
                Ok(CallToolResult::success(vec![text]).into())
            }
            "steps" => {
                let token = context.meta.get_progress_token().unwrap();
                for step in 1..=3 {
                    let report = ProgressNotificationParam::new(token.clone(), f64::from(step));
                    context.peer.notify_progress(report).await.unwrap();
                }
                Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
            }
            "forever" => {
                context.ct.cancelled().await;
                Err(ErrorData::internal_error("cancelled", None))
            }
            other => Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        }
    }

    async fn on_cancelled(
        &self,
        _: CancelledNotificationParam,
        _: NotificationContext<RoleServer>,
    ) {
        self.cancelled.fetch_add(1, Ordering::SeqCst);
    }
}

async fn over_pipes(workshop: &Workshop) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let workshop = workshop.clone();
    tokio::spawn(async move { workshop.serve(theirs).await.unwrap().waiting().await });
    let (reader, writer) = tokio::io::split(ours);
    Client::connect_lines(reader, writer, DEFAULT_LINE_LIMIT, hello(), ())
        .await
        .unwrap()
}

async fn over_http(workshop: &Workshop, sessions: bool) -> Client {
    let mut config = StreamableHttpServerConfig::default();
    config.legacy_session_mode = sessions;
    config.json_response = !sessions;
    let workshop = workshop.clone();
    let service = StreamableHttpService::new(
        move || Ok(workshop.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let router = axum::Router::new().fallback_service(service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Client::connect_http(HttpEndpoint::new(url.parse().unwrap()), hello(), ())
        .await
        .unwrap()
}

fn tool(name: &str, rest: &str) -> Box<RawValue> {
    raw(&format!(r#"{{"name":"{name}"{rest}}}"#))
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap()
}

async fn everyday(client: &Client) {
    assert!(client.handshake().offers_tools());
    let options = RequestOptions::default;
    let tools = client.request("tools/list", None, options()).await.unwrap();
    assert_eq!(value(&tools)["tools"][0]["name"], "echo");

    let params = tool("echo", r#","arguments":{"b":1,"a":[2]}"#);
    let result = client
        .request("tools/call", Some(params), options())
        .await
        .unwrap();
    assert_eq!(value(&result)["content"][0]["text"], r#"{"b":1,"a":[2]}"#);

    let unknown = client
        .request("tools/call", Some(tool("none", "")), options())
        .await;
    assert!(matches!(unknown, Err(RequestError::Rpc(error)) if error.code == -32602));
    client.request("ping", None, options()).await.unwrap();
}

async fn progress(client: &Client) {
    let (token, mut reports) = client.progress(8);
    let params = tool("steps", &format!(r#","_meta":{{"progressToken":{token}}}"#));
    client
        .request("tools/call", Some(params), RequestOptions::default())
        .await
        .unwrap();
    for step in 1..=3 {
        assert_eq!(
            value(&reports.next().await.unwrap())["progress"],
            f64::from(step)
        );
    }
}

async fn cancellation(client: &Client, workshop: &Workshop) {
    let options = RequestOptions {
        timeout: Some(Duration::from_millis(100)),
        ..RequestOptions::default()
    };
    let outcome = client
        .request("tools/call", Some(tool("forever", "")), options)
        .await;
    assert!(matches!(outcome, Err(RequestError::Timeout { .. })));
    eventually("the server heard of the cancellation", || {
        workshop.cancelled.load(Ordering::SeqCst) == 1
    })
    .await;
}

#[tokio::test]
async fn pipes() {
    deadline(async {
        let workshop = Workshop::default();
        let client = over_pipes(&workshop).await;
        everyday(&client).await;
        progress(&client).await;
        cancellation(&client, &workshop).await;
        everyday(&client).await;
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn http_with_a_session() {
    deadline(async {
        let workshop = Workshop::default();
        let client = over_http(&workshop, true).await;
        everyday(&client).await;
        progress(&client).await;
        cancellation(&client, &workshop).await;
        everyday(&client).await;
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn http_without_a_session() {
    deadline(async {
        let client = over_http(&Workshop::default(), false).await;
        everyday(&client).await;
        progress(&client).await;
    })
    .await;
}
