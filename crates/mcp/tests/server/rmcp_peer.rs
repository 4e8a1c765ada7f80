//! A client that we did not write, over both transports.
#![expect(
    deprecated,
    reason = "roots are on their way out of the protocol, but clients of this era have them"
)]

use std::sync::Arc;
use std::sync::Mutex;

use mcp::Notification;
use mcp::server::{LineOptions, serve_lines};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ClientRequest, ListRootsResult,
    ProgressNotificationParam, Request, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ErrorData, RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::script::Script;
use crate::wire::{Endpoint, soon};

#[derive(Clone, Default)]
struct Peer {
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    progress: Mutex<Vec<f64>>,
    list_changed: Notify,
}

impl ClientHandler for Peer {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities.roots = Some(RootsCapabilities::default());
        info
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///work")]))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.seen.progress.lock().unwrap().push(params.progress);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.seen.list_changed.notify_one();
    }
}

type Client = RunningService<RoleClient, Peer>;

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
async fn exercise(client: &Client, script: &Script, seen: &Seen) {
    let tools = soon(client.list_all_tools()).await.unwrap();
    assert_eq!(tools[0].name, "echo");

    let progressed = soon(client.call_tool(call("progress", json!({"count": 3}))))
        .await
        .unwrap();
    assert_eq!(text(&progressed), "done");
    assert_eq!(*seen.progress.lock().unwrap(), [1.0, 2.0, 3.0]);

    let roots = soon(client.call_tool(call("roots", json!({}))))
        .await
        .unwrap();
    assert!(text(&roots).contains("file:///work"), "{roots:?}");

    let request = ClientRequest::CallToolRequest(Request::new(call("wait", json!({}))));
    let handle = client
        .send_cancellable_request(request, PeerRequestOptions::no_options())
        .await
        .unwrap();
    let begun = script.events.borrow().begun;
    script.until(|events| events.begun > begun.max(2)).await;
    handle.cancel(None).await.unwrap();
    script.until(|events| events.cancelled == 1).await;

    let after = soon(client.call_tool(call("impatient", json!({}))))
        .await
        .unwrap();
    assert_eq!(text(&after), "gave up");
}

#[tokio::test]
async fn rmcp_over_http() {
    let endpoint = Endpoint::open().await;
    let peer = Peer::default();
    let seen = Arc::clone(&peer.seen);
    let transport = StreamableHttpClientTransport::from_uri(endpoint.url.clone());
    let client = soon(peer.serve(transport)).await.unwrap();
    exercise(&client, &endpoint.script, &seen).await;
    endpoint
        .server
        .broadcast(&Notification::new("notifications/tools/list_changed", None));
    soon(seen.list_changed.notified()).await;
    soon(client.cancel()).await.unwrap();
    endpoint.script.until(|events| events.closed == 1).await;
}

#[tokio::test]
async fn rmcp_over_pipes() {
    let script = Script::new();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let options = LineOptions::default();
    let served = tokio::spawn(serve_lines(Arc::clone(&script), reader, writer, options));
    let peer = Peer::default();
    let seen = Arc::clone(&peer.seen);
    let client = soon(peer.serve(ours)).await.unwrap();
    exercise(&client, &script, &seen).await;
    soon(client.cancel()).await.unwrap();
    soon(served).await.unwrap().unwrap();
    assert_eq!(script.events.borrow().closed, 1);
}
