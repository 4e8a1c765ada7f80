//! `/mcp/direct`: all upstreams at once. Tools and prompts are called `server__name`.

use std::sync::Arc;

use futures_util::future::join_all;
use mcp::modern::ParameterHeaders;
use mcp::server::{Connection, InitializeResult, RequestContext, Service};
use mcp::{ErrorObject, Notification, Request};
use serde_json::json;
use upstream::Upstream;

use super::all_servers::{AllServers, not_an_object, renamed, resolve, with_name};
use super::clients::Clients;
use super::relay::{Answer, call_tool, raw, tools_list, until_interrupted};
use super::server::{Named, empty_object, parameter_headers, parse, tools_for};
use crate::engine::{CallRequest, Engine, ServerInForce, ToolState};

const INSTRUCTIONS: &str = "All connected MCP servers at once. The names of tools and prompts begin \
with the name of their server and two underscores.";

#[derive(Debug)]
pub(crate) struct DirectEndpoint {
    engine: Arc<Engine>,
    pub(super) servers: AllServers,
}

// === impl DirectEndpoint ===

impl DirectEndpoint {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            servers: AllServers::new(Arc::clone(&engine), Clients::apart()),
            engine,
        }
    }

    async fn answer(&self, request: Request, context: RequestContext) -> Answer {
        match request.method.as_str() {
            "tools/list" => Box::pin(self.tools(&context)).await,
            "tools/call" => self.call_tool(&request, &context).await,
            _ => match self.servers.answer(&request, &context).await {
                Some(answer) => answer,
                None => self.unknown(request, &context).await,
            },
        }
    }

    /// All tools that are known, those of servers that are just not there included: the list does
    /// not change with every hiccup.
    async fn tools(&self, context: &RequestContext) -> Answer {
        self.servers.ready().await;
        let client = self.servers.clients.on_behalf(context);
        let upstreams = self.engine.upstreams();
        let listing = upstreams.iter().map(async |upstream| {
            if upstream.status().state.is_connected() {
                let listed = tools_for(&self.engine, upstream, &client, context).await;
                match listed {
                    Ok(tools) => return tools,
                    Err(error) => {
                        let server = upstream.name();
                        tracing::warn!(%server, %error, "the tools are those that all clients get");
                    }
                }
            }
            self.known(upstream)
        });
        let tools = join_all(listing).await.into_iter().flatten();
        tools_list(tools.filter_map(|state| {
            let tool = state.definition();
            renamed(tool.id.server(), &tool.raw)
        }))
    }

    /// The tools that every client gets, as they were last listed.
    fn known(&self, upstream: &Upstream) -> Vec<Arc<ToolState>> {
        let in_force = self.engine.in_force();
        let server = in_force.server(upstream.name()).into_iter();
        let tools = server.flat_map(ServerInForce::tools);
        tools
            .filter(|state| state.hold.is_none())
            .cloned()
            .collect()
    }

    async fn call_tool(&self, request: &Request, context: &RequestContext) -> Answer {
        let params = request.params.clone().unwrap_or_else(empty_object);
        let Named { name, arguments } = parse(&request.method, Some(&params))?;
        let client = self.servers.clients.on_behalf(context);
        let Some((upstream, own_name)) = resolve(self.engine.fleet(), &name) else {
            // Refused where every call is refused, and recorded there.
            let id = name.replacen("__", ":", 1);
            let call = CallRequest::direct(id, arguments, params.clone());
            return call_tool(&self.engine, &name, &call, &client, context).await;
        };
        let sent = with_name(&params, own_name).ok_or_else(not_an_object)?;
        let id = format!("{}:{own_name}", upstream.name());
        let call = CallRequest::direct(id, arguments, sent);
        let result = call_tool(&self.engine, &name, &call, &client, context).await?;
        self.servers.learn_task(upstream.name(), &result);
        Ok(result)
    }

    /// A method that says nothing about whose it is can only go to the one upstream there is.
    async fn unknown(&self, request: Request, context: &RequestContext) -> Answer {
        match self.engine.upstreams().as_slice() {
            [only] => {
                let only = Arc::clone(only);
                let passing = self
                    .servers
                    .pass(only, &request.method, request.params, context);
                passing.await
            }
            _ => Err(ErrorObject::method_not_found(&request.method)),
        }
    }
}

impl Service for DirectEndpoint {
    async fn initialize(&self, _: &Connection) -> Result<InitializeResult, ErrorObject> {
        self.servers.ready().await;
        let mut capabilities = AllServers::capabilities();
        capabilities["tools"] = json!({"listChanged": true});
        self.servers.add_extensions(&mut capabilities);
        Ok(InitializeResult {
            capabilities: raw(&capabilities)?,
            server_info: raw(&json!({
                "name": "mcpproxy-direct",
                "title": "mcpproxy",
                "version": env!("CARGO_PKG_VERSION")
            }))?,
            instructions: Some(INSTRUCTIONS.to_owned()),
        })
    }

    async fn request(&self, request: Request, context: RequestContext) -> Answer {
        // Boxed: the transports move it about, each move a copy of all that it may come to hold.
        until_interrupted(&self.engine, Box::pin(self.answer(request, context))).await
    }

    async fn notification(&self, notification: Notification, connection: Arc<Connection>) {
        self.servers.notification(notification, &connection).await;
    }

    fn parameter_headers(&self, tool: &str) -> Option<Arc<ParameterHeaders>> {
        let (upstream, own_name) = resolve(self.engine.fleet(), tool)?;
        parameter_headers(&self.engine, upstream.name(), own_name)
    }

    fn closed(&self, connection: &Connection) {
        self.servers.closed(connection);
    }
}
