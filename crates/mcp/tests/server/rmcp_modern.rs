//! A modern client that we did not write, over both transports.
#![expect(
    deprecated,
    reason = "roots are on their way out of the protocol, but it still has them"
)]

use std::sync::{Arc, Mutex};

use mcp::Notification;
use mcp::server::{LineOptions, serve_lines};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ClientRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ListRootsResult,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, Request, Root,
    RootsCapabilities, SubscriptionFilter,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RequestContext,
    RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};

use crate::script::Script;
use crate::wire::{Endpoint, soon};

#[derive(Clone, Default)]
struct Peer {
    progress: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for Peer {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities.roots = Some(RootsCapabilities::default());
        info.capabilities.elicitation = Some(ElicitationCapability::default());
        info
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///work")]))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            panic!("a form was asked for");
        };
        let mut result = ElicitResult::new(ElicitationAction::Accept);
        result.content = Some(json!({ "asked": message }));
        Ok(result)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().unwrap().push(params.progress);
    }
}

type Client = RunningService<RoleClient, Peer>;

fn modern_only() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::LATEST],
    }
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn text(result: &CallToolResult) -> String {
    serde_json::to_value(result).unwrap()["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Everything that must work the same on every transport.
async fn exercise(client: &Client, script: &Script) {
    let tools = soon(client.list_all_tools()).await.unwrap();
    assert_eq!(tools[0].name, "echo");

    let roots = soon(client.call_tool(call("roots", json!({}))))
        .await
        .unwrap();
    assert!(text(&roots).contains("file:///work"), "{roots:?}");

    let rounds = json!({"tag": "t", "rounds": [["a", "b"], ["c"]]});
    let form = soon(client.call_tool(call("form", rounds))).await.unwrap();
    let answers: Value = serde_json::from_str(&text(&form)).unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(answers[name]["action"], "accept");
        assert_eq!(answers[name]["content"]["asked"], format!("t/{name}"));
    }

    let missing = soon(client.read_resource(ReadResourceRequestParams::new("test://x"))).await;
    let Err(ServiceError::McpError(error)) = missing else {
        panic!("{missing:?}");
    };
    assert_eq!(error.code.0, -32602);

    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = soon(client.listen(filter)).await.unwrap();
    soon(client.call_tool(call("change", json!({}))))
        .await
        .unwrap();
    let heard = soon(subscription.next()).await.unwrap();
    assert!(heard.is_some());
    drop(subscription);
    script.until(|events| events.closed == 1).await;

    let request = ClientRequest::CallToolRequest(Request::new(call("wait", json!({}))));
    let begun = script.events.borrow().begun;
    let handle = client
        .send_cancellable_request(request, PeerRequestOptions::no_options())
        .await
        .unwrap();
    script.until(|events| events.begun > begun).await;
    handle.cancel(None).await.unwrap();
    script.until(|events| events.cancelled == 1).await;
}

#[tokio::test]
async fn rmcp_speaks_modern_over_http() {
    let endpoint = Endpoint::open().await;
    let transport = StreamableHttpClientTransport::from_uri(endpoint.url.clone());
    let client = soon(Peer::default().serve_with_lifecycle(transport, modern_only()))
        .await
        .unwrap();
    exercise(&client, &endpoint.script).await;
    assert_eq!(endpoint.server.session_count(), 0);
    soon(client.cancel()).await.unwrap();
}

#[tokio::test]
async fn rmcp_speaks_modern_over_pipes() {
    let script = Script::new();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let options = LineOptions::default();
    let served = tokio::spawn(serve_lines(Arc::clone(&script), reader, writer, options));
    let client = soon(Peer::default().serve_with_lifecycle(ours, modern_only()))
        .await
        .unwrap();
    exercise(&client, &script).await;
    soon(client.cancel()).await.unwrap();
    soon(served).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_may_choose_chooses_modern() {
    let endpoint = Endpoint::open().await;
    let transport = StreamableHttpClientTransport::from_uri(endpoint.url.clone());
    let choosing = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    let client = soon(Peer::default().serve_with_lifecycle(transport, choosing))
        .await
        .unwrap();
    assert_eq!(soon(client.list_all_tools()).await.unwrap()[0].name, "echo");
    assert_eq!(endpoint.server.session_count(), 0);
    endpoint
        .server
        .broadcast(&Notification::new("notifications/tools/list_changed", None));
}
