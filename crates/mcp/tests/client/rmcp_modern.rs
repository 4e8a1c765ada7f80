//! The client against a real server that speaks only the modern era, or both.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp::client::{Client, Era, Events, HttpEndpoint, Origin, RequestError, RequestOptions};
use mcp::lines::DEFAULT_LINE_LIMIT;
use mcp::{ErrorObject, Notification, RawValue, Request};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult,
    JsonObject, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities,
    ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{deadline, eventually, hello_in, options, raw};

/// A server with a tool that wants to know a name first, one that never ends, and a resource that
/// changes as soon as somebody listens.
#[derive(Clone)]
struct Workshop {
    versions: &'static [ProtocolVersion],
    cancelled: Arc<AtomicUsize>,
}

const MODERN: &[ProtocolVersion] = &[ProtocolVersion::V_2026_07_28];
const BOTH: &[ProtocolVersion] = &[ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25];

impl Workshop {
    fn new(versions: &'static [ProtocolVersion]) -> Self {
        Self {
            versions,
            cancelled: Arc::default(),
        }
    }
}

impl ServerHandler for Workshop {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities).with_instructions("knock first")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let greet = Tool::new("greet", "greets by name", Arc::new(JsonObject::new()));
        Ok(ListToolsResult::with_all_items(vec![greet]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match (request.name.as_ref(), request.request_state.as_deref()) {
            ("greet", None) => {
                let form = json!({"method": "elicitation/create", "params": {
                    "mode": "form",
                    "message": "Who is there?",
                    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
                }});
                let questions = serde_json::from_value(json!({"who": form})).unwrap();
                Ok(InputRequiredResult::new(Some(questions), Some("knock".to_owned())).into())
            }
            ("greet", Some("knock")) => {
                let answers = request.input_responses.unwrap_or_default();
                let text = format!("hello {}", answers["who"]["content"]["name"]);
                Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
            }
            ("forever", _) => {
                context.ct.cancelled().await;
                self.cancelled.fetch_add(1, Ordering::SeqCst);
                Err(ErrorData::internal_error("cancelled", None))
            }
            other => Err(ErrorData::invalid_params(format!("{other:?}"), None)),
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            context.sink().notify_resource_updated(uri).await.unwrap();
        }
        context.cancelled().await;
        Ok(())
    }
}

/// Says that it is Ada, and passes on what is notified.
struct Ada(mpsc::Sender<Notification>);

impl Events for Ada {
    fn notification(&self, notification: Notification, _: Origin) {
        let _ = self.0.try_send(notification);
    }

    async fn request(&self, request: Request, _: Origin) -> Result<Box<RawValue>, ErrorObject> {
        assert_eq!(request.method, "elicitation/create");
        Ok(raw(r#"{"action":"accept","content":{"name":"Ada"}}"#))
    }
}

async fn over_pipes(workshop: &Workshop, era: Option<Era>, events: impl Events) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let workshop = workshop.clone();
    tokio::spawn(async move { workshop.serve(theirs).await.unwrap().waiting().await });
    let (reader, writer) = tokio::io::split(ours);
    let mut hello = hello_in(era);
    hello.capabilities = raw(r#"{"elicitation":{"form":{}}}"#);
    Client::connect_lines(reader, writer, DEFAULT_LINE_LIMIT, hello, events)
        .await
        .unwrap()
}

async fn over_http(workshop: &Workshop, era: Option<Era>, events: impl Events) -> Client {
    let workshop = workshop.clone();
    let service = StreamableHttpService::new(
        move || Ok(workshop.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().fallback_service(service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut hello = hello_in(era);
    hello.capabilities = raw(r#"{"elicitation":{"form":{}}}"#);
    Client::connect_http(HttpEndpoint::new(url.parse().unwrap()), hello, events)
        .await
        .unwrap()
}

async fn everything(client: &Client, workshop: &Workshop, mut heard: mpsc::Receiver<Notification>) {
    assert_eq!(client.era(), Era::Modern);
    let handshake = client.handshake();
    assert_eq!(handshake.instructions.as_deref(), Some("knock first"));
    assert!(handshake.offers_tools() && !handshake.server.name.is_empty());

    let listed = client.request("tools/list", None, options()).await.unwrap();
    let listed: Value = serde_json::from_str(listed.get()).unwrap();
    assert_eq!(listed["tools"][0]["name"], "greet");

    let greet = || Some(raw(r#"{"name":"greet","arguments":{}}"#));
    let greeting = client.request("tools/call", greet(), options()).await;
    let greeting: Value = serde_json::from_str(greeting.unwrap().get()).unwrap();
    assert_eq!(greeting["content"][0]["text"], "hello \"Ada\"");

    let unknown = Some(raw(r#"{"name":"none"}"#));
    let unknown = client.request("tools/call", unknown, options()).await;
    assert!(matches!(unknown, Err(RequestError::Rpc(error)) if error.code == -32602));
    client.request("ping", None, options()).await.unwrap();

    let resource = || Some(raw(r#"{"uri":"file:///watched"}"#));
    let subscribed = client
        .request("resources/subscribe", resource(), options())
        .await;
    assert_eq!(subscribed.unwrap().get(), "{}");
    let updated = heard.recv().await.unwrap();
    assert_eq!(updated.method, "notifications/resources/updated");
    assert_eq!(
        updated.params.unwrap().get(),
        r#"{"uri":"file:///watched"}"#
    );
    let gone = client
        .request("resources/unsubscribe", resource(), options())
        .await;
    gone.unwrap();

    let brief = RequestOptions {
        timeout: Some(Duration::from_millis(100)),
        ..options()
    };
    let forever = Some(raw(r#"{"name":"forever"}"#));
    let outcome = client.request("tools/call", forever, brief).await;
    assert!(matches!(outcome, Err(RequestError::Timeout { .. })));
    eventually("the server heard of the cancellation", || {
        workshop.cancelled.load(Ordering::SeqCst) == 1
    })
    .await;
    client.close().await;
}

#[tokio::test]
async fn pipes() {
    for versions in [MODERN, BOTH] {
        deadline(async {
            let (sender, heard) = mpsc::channel(64);
            let workshop = Workshop::new(versions);
            let client = over_pipes(&workshop, None, Ada(sender)).await;
            everything(&client, &workshop, heard).await;
        })
        .await;
    }
}

#[tokio::test]
async fn http() {
    for versions in [MODERN, BOTH] {
        deadline(async {
            let (sender, heard) = mpsc::channel(64);
            let workshop = Workshop::new(versions);
            let client = over_http(&workshop, None, Ada(sender)).await;
            everything(&client, &workshop, heard).await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_of_both_eras_speaks_the_one_it_is_asked_for() {
    deadline(async {
        let workshop = Workshop::new(BOTH);
        for era in [Era::Legacy, Era::Modern] {
            let piped = over_pipes(&workshop, Some(era), ()).await;
            let posted = over_http(&workshop, Some(era), ()).await;
            for client in [piped, posted] {
                assert_eq!(client.era(), era);
                client.request("tools/list", None, options()).await.unwrap();
                client.request("ping", None, options()).await.unwrap();
            }
        }
    })
    .await;
}
