//! `/mcp/server/{name}`: one upstream as itself. Everything passes both ways; calls of tools take
//! the one path, on the lane of their tier.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp::modern::{ParameterHeaders, meta};
use mcp::server::{Connection, InitializeResult, RequestContext, Service};
use mcp::{ErrorObject, LogLevel, Members, Notification, RawValue, Request, codes};
use policy::{ServerName, ToolName};
use serde::Deserialize;
use serde_json::json;
use upstream::{OnBehalf, Upstream};

use super::clients::Clients;
use super::relay::{
    Answer, call_tool, forward, or_cancelled, raw, to_error, tools_list, until_interrupted,
};
use crate::engine::{CallRequest, Engine, ToolState};

/// How long a client waits for an upstream that is just being connected.
const CONNECTING_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct ServerEndpoint {
    engine: Arc<Engine>,
    server: ServerName,
    pub(super) clients: Clients,
}

/// What a tool or a prompt is asked for by.
#[derive(Deserialize)]
pub(super) struct Named<'a> {
    pub(super) name: String,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Resource {
    pub(super) uri: String,
}

#[derive(Deserialize)]
struct SetLevel {
    level: String,
}

// === impl ServerEndpoint ===

impl ServerEndpoint {
    pub(super) fn new(engine: Arc<Engine>, server: ServerName) -> Self {
        Self {
            engine,
            server,
            clients: Clients::apart(),
        }
    }

    async fn answer(&self, request: Request, context: RequestContext) -> Answer {
        match request.method.as_str() {
            "tools/call" => self.call_tool(&request, &context).await,
            "resources/subscribe" => self.subscribe(&request, &context).await,
            "resources/unsubscribe" => self.unsubscribe(&request, &context).await,
            "logging/setLevel" => self.set_level(&request, &context).await,
            "tools/list" => Box::pin(self.tools(&context)).await,
            method => {
                let upstream = self.upstream().await?;
                let client = self.clients.on_behalf(&context);
                forward(&upstream, method, request.params, &client, &context).await
            }
        }
    }

    /// The upstream, once it is connected.
    async fn upstream(&self) -> Result<Arc<Upstream>, ErrorObject> {
        let Some(upstream) = self.engine.fleet().get(&self.server) else {
            let message = format!("Server '{}' is no longer configured", self.server);
            return Err(ErrorObject::new(codes::CONNECTION_CLOSED, message));
        };
        connected(upstream).await
    }

    async fn call_tool(&self, request: &Request, context: &RequestContext) -> Answer {
        let params = request.params.clone().unwrap_or_else(empty_object);
        let Named { name, arguments } = parse(&request.method, Some(&params))?;
        let id = format!("{}:{name}", self.server);
        let call = CallRequest::direct(id, arguments, params.clone());
        let client = self.clients.on_behalf(context);
        call_tool(&self.engine, &name, &call, &client, context).await
    }

    /// The tools that may be called, each as the upstream wrote it.
    async fn tools(&self, context: &RequestContext) -> Answer {
        let upstream = self.upstream().await?;
        let client = self.clients.on_behalf(context);
        let tools = tools_for(&self.engine, &upstream, &client, context).await?;
        tools_list(tools.iter().map(|state| &state.definition().raw))
    }

    async fn subscribe(&self, request: &Request, context: &RequestContext) -> Answer {
        let Resource { uri } = parse(&request.method, request.params.as_deref())?;
        if !self.clients.is_subscribed(&context.connection, &uri) {
            let upstream = self.upstream().await?;
            let client = self.clients.on_behalf(context);
            upstream.subscribe(&uri, &client).await.map_err(to_error)?;
            self.clients
                .subscribe(&context.connection, &uri, &self.server);
        }
        Ok(empty_object())
    }

    async fn unsubscribe(&self, request: &Request, context: &RequestContext) -> Answer {
        let Resource { uri } = parse(&request.method, request.params.as_deref())?;
        if self
            .clients
            .unsubscribe(&context.connection, &uri)
            .is_some()
        {
            let upstream = self.upstream().await?;
            let client = self.clients.on_behalf(context);
            upstream
                .unsubscribe(&uri, &client)
                .await
                .map_err(to_error)?;
        }
        Ok(empty_object())
    }

    async fn set_level(&self, request: &Request, context: &RequestContext) -> Answer {
        let level = log_level(request)?;
        let upstream = self.upstream().await?;
        upstream.log_from(level).await.map_err(to_error)?;
        self.clients.set_log_level(&context.connection, level);
        Ok(empty_object())
    }
}

impl Service for ServerEndpoint {
    async fn initialize(&self, client: &Connection) -> Result<InitializeResult, ErrorObject> {
        let upstream = until_interrupted(&self.engine, self.upstream()).await?;
        let legacy = if client.protocol.is_modern() {
            None
        } else {
            // Boxed: it may connect, and that state must not be part of every request's.
            let on_behalf = self.clients.of_connection(client);
            let handshake = Box::pin(async {
                let handshake = upstream.legacy_handshake(&on_behalf).await;
                handshake.map_err(to_error)
            });
            until_interrupted(&self.engine, handshake).await?
        };
        let status = upstream.status();
        let Some(identity) = &status.server else {
            return Err(unavailable(&upstream));
        };
        let handshake = legacy.as_ref().unwrap_or(&identity.handshake);
        Ok(InitializeResult {
            capabilities: handshake.capabilities.clone(),
            server_info: match server_info(&handshake.result) {
                Some(server_info) => server_info,
                None => raw(&json!({"name": identity.name, "version": identity.version}))?,
            },
            instructions: handshake.instructions.clone(),
        })
    }

    async fn request(&self, request: Request, context: RequestContext) -> Answer {
        // Boxed: the transports move it about, each move a copy of all that it may come to hold.
        until_interrupted(&self.engine, Box::pin(self.answer(request, context))).await
    }

    async fn notification(&self, notification: Notification, connection: Arc<Connection>) {
        if let Ok(upstream) = self.upstream().await {
            let client = self.clients.of_connection(&connection);
            let Notification { method, params } = notification;
            upstream.notify(&method, params, &client).await;
        }
    }

    fn parameter_headers(&self, tool: &str) -> Option<Arc<ParameterHeaders>> {
        parameter_headers(&self.engine, &self.server, tool)
    }

    fn closed(&self, connection: &Connection) {
        let kept = self.clients.forget(connection);
        if let Some(upstream) = self.engine.fleet().get(&self.server) {
            let uris = kept.subscriptions.into_keys().collect();
            let client = self.clients.of_connection(connection);
            let_go(upstream, client, connection, uris);
        }
    }
}

/// The tools that a client may call, as the upstream lists them to it. Each is looked up in what is in
/// force: no definition reaches a client that was neither audited nor compared with its pin.
pub(super) async fn tools_for(
    engine: &Engine,
    upstream: &Arc<Upstream>,
    client: &OnBehalf,
    context: &RequestContext,
) -> Result<Vec<Arc<ToolState>>, ErrorObject> {
    let listing = upstream.tools_for(client);
    let listed = or_cancelled(listing, context).await?.map_err(to_error)?;
    let in_force = engine.current().await;
    let Some(server) = in_force.server(upstream.name()) else {
        return Ok(Vec::new());
    };
    let states: Vec<_> = match &listed {
        None => server.tools().collect(),
        Some(listed) => listed
            .iter()
            .filter_map(|tool| server.state_of(tool))
            .collect(),
    };
    let callable = states.into_iter().filter(|state| state.hold.is_none());
    Ok(callable.cloned().collect())
}

/// Gives up what an upstream did for a client that is gone.
pub(super) fn let_go(
    upstream: Arc<Upstream>,
    client: OnBehalf,
    connection: &Connection,
    uris: Vec<String>,
) {
    upstream.release(connection.session.as_str());
    if uris.is_empty() {
        return;
    }
    // Without a runtime the process is on its way out, and the upstream with it.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    runtime.spawn(async move {
        for uri in uris {
            if let Err(error) = upstream.unsubscribe(&uri, &client).await {
                tracing::debug!(%error, uri, "a subscription could not be taken back");
            }
        }
    });
}

/// The upstream, once it is connected; an error if it is not going to be soon.
pub(super) async fn connected(upstream: Arc<Upstream>) -> Result<Arc<Upstream>, ErrorObject> {
    let status = upstream.status();
    if status.state.is_connected() {
        return Ok(upstream);
    }
    let patience = CONNECTING_PATIENCE.min(upstream.config().timeout);
    let status = upstream.available(Instant::now() + patience).await;
    if status.state.is_connected() {
        return Ok(upstream);
    }
    Err(unavailable(&upstream))
}

fn unavailable(upstream: &Upstream) -> ErrorObject {
    let refusal = crate::engine::unavailable(upstream.name(), &upstream.status().state);
    let mut error = ErrorObject::new(codes::CONNECTION_CLOSED, refusal.message.clone());
    error.data = raw(&refusal).ok();
    error
}

/// The arguments of a tool that its schema wants repeated as headers. Hardly any tool has one.
pub(super) fn parameter_headers(
    engine: &Engine,
    server: &ServerName,
    tool: &str,
) -> Option<Arc<ParameterHeaders>> {
    let name: ToolName = tool.parse().ok()?;
    let in_force = engine.in_force();
    let tool = in_force.server(server)?.tool(&name)?;
    let schema = tool.definition().input_schema.as_deref()?;
    if !schema.get().contains("x-mcp-header") {
        return None;
    }
    ParameterHeaders::of_schema(schema).ok().map(Arc::new)
}

/// Who the upstream says it is, as it wrote it.
fn server_info(hello: &RawValue) -> Option<Box<RawValue>> {
    let hello = Members::parse(hello).ok()?;
    if let Some(meta) = hello.get("_meta")
        && let Ok(meta) = Members::parse(meta)
        && let Some(server_info) = meta.get(meta::SERVER_INFO)
    {
        return Some(server_info.to_owned());
    }
    hello.get("serverInfo").map(ToOwned::to_owned)
}

pub(super) fn log_level(request: &Request) -> Result<LogLevel, ErrorObject> {
    let SetLevel { level } = parse(&request.method, request.params.as_deref())?;
    level.parse().map_err(|_| {
        let known = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        ErrorObject::invalid_params(format!("Unknown log level '{level}'; use one of {known}"))
    })
}

pub(super) fn parse<'a, T: Deserialize<'a>>(
    method: &str,
    params: Option<&'a RawValue>,
) -> Result<T, ErrorObject> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        ErrorObject::invalid_params(format!("Invalid params of {method}: {error}"))
    })
}

pub(super) fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
