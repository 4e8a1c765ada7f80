//! All endpoints of a daemon: which of them a request is for, and which of their clients an upstream's
//! announcement is for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use mcp::Notification;
use mcp::server::{HttpOptions, HttpServer, UnreadBudget};
use policy::ServerName;
use tokio_util::sync::CancellationToken;
use upstream::FleetListener;

use super::agent::AgentEndpoint;
use super::direct::DirectEndpoint;
use super::server::ServerEndpoint;
use crate::engine::Engine;
use crate::http::Principal;
use crate::rest::ApiError;

#[derive(Debug)]
pub(crate) struct Endpoints {
    engine: Arc<Engine>,
    /// The same for all endpoints, which share one budget for what clients do not read.
    options: HttpOptions,
    agent: Endpoint<AgentEndpoint>,
    direct: Endpoint<DirectEndpoint>,
    /// Created on the first request to each.
    servers: Mutex<HashMap<ServerName, Endpoint<ServerEndpoint>>>,
}

/// A service and the HTTP server in front of it.
#[derive(Debug)]
struct Endpoint<S: mcp::server::Service> {
    service: Arc<S>,
    http: HttpServer<S>,
}

/// Passes announcements of upstreams on to the endpoints' clients, while there are endpoints.
#[derive(Debug)]
struct EndpointNotifier(Weak<Endpoints>);

// === impl Endpoints ===

impl Endpoints {
    /// The endpoints of an engine, which begin no request any more once `draining` has fired.
    pub(crate) fn new(engine: Arc<Engine>, draining: CancellationToken) -> Arc<Self> {
        let options = options(&engine, draining);
        let endpoints = Arc::new(Self {
            agent: Endpoint::new(AgentEndpoint::new(Arc::clone(&engine)), &options),
            direct: Endpoint::new(DirectEndpoint::new(Arc::clone(&engine)), &options),
            options,
            servers: Mutex::default(),
            engine,
        });
        let notifier = EndpointNotifier(Arc::downgrade(&endpoints));
        endpoints.engine.fleet().announce_to(Arc::new(notifier));
        endpoints
    }

    /// `/mcp`.
    pub(crate) async fn agent(&self, request: Request) -> Response {
        self.agent.http.handle(request).await
    }

    /// `/mcp/direct`.
    pub(crate) async fn direct(&self, request: Request) -> Response {
        if !self.engine.config().endpoints.direct {
            self.direct.http.end_all_sessions();
            return switched_off("direct").into_response();
        }
        self.direct.http.handle(request).await
    }

    /// `/mcp/server/{name}`.
    pub(crate) async fn server(&self, name: &str, request: Request) -> Response {
        match self.server_endpoint(name) {
            Ok(endpoint) => endpoint.handle(request).await,
            Err(refusal) => refusal.into_response(),
        }
    }

    /// Ends every session, so that nothing keeps the daemon from stopping.
    pub(crate) fn end_all_sessions(&self) {
        self.agent.http.end_all_sessions();
        self.direct.http.end_all_sessions();
        self.end_servers(|_| true);
    }

    fn server_endpoint(&self, name: &str) -> Result<HttpServer<ServerEndpoint>, ApiError> {
        if !self.engine.config().endpoints.server {
            self.end_servers(|_| true);
            return Err(switched_off("server"));
        }
        let fleet = self.engine.fleet();
        let known = name.parse::<ServerName>().ok();
        let Some(server) = known.filter(|server| fleet.get(server).is_some()) else {
            // It may have been there before.
            self.end_servers(|server| fleet.get(server).is_none());
            return Err(self.unknown_server(name));
        };
        let mut servers = self.servers();
        let endpoint = servers.entry(server).or_insert_with_key(|server| {
            let service = ServerEndpoint::new(Arc::clone(&self.engine), server.clone());
            Endpoint::new(service, &self.options)
        });
        Ok(endpoint.http.clone())
    }

    fn unknown_server(&self, name: &str) -> ApiError {
        let error = ApiError::not_found(format!("there is no server '{name}'"));
        match self.engine.similar_server(name) {
            Some(near) => error.hint(format!("did you mean /mcp/server/{near}?")),
            None => error.hint("list the servers with `mcpproxy upstream list`"),
        }
    }

    fn end_servers(&self, which: impl Fn(&ServerName) -> bool) {
        let ended: Vec<_> = {
            let mut servers = self.servers();
            let names: Vec<_> = servers.keys().filter(|name| which(name)).cloned().collect();
            names
                .iter()
                .filter_map(|name| servers.remove(name))
                .collect()
        };
        for endpoint in ended {
            endpoint.http.end_all_sessions();
        }
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<ServerName, Endpoint<ServerEndpoint>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: mcp::server::Service> Endpoint<S> {
    fn new(service: S, options: &HttpOptions) -> Self {
        let service = Arc::new(service);
        Self {
            http: HttpServer::new(Arc::clone(&service), options.clone()),
            service,
        }
    }
}

impl FleetListener for EndpointNotifier {
    fn hear(&self, server: &ServerName, notification: &Notification) {
        let Some(endpoints) = self.0.upgrade() else {
            return;
        };
        let Some(upstream) = endpoints.engine.fleet().get(server) else {
            return;
        };
        let (agent, direct) = (&endpoints.agent, &endpoints.direct);
        // The tools of that endpoint are its own, and stay.
        if notification.method != "notifications/tools/list_changed" {
            let clients = &agent.service.servers.clients;
            clients.tell(&agent.http, &upstream, notification);
        }
        let clients = &direct.service.servers.clients;
        clients.tell(&direct.http, &upstream, notification);
        let own = endpoints
            .servers()
            .get(server)
            .map(|endpoint| (Arc::clone(&endpoint.service), endpoint.http.clone()));
        if let Some((service, http)) = own {
            service.clients.tell(&http, &upstream, notification);
        }
    }
}

/// What clients may make an endpoint hold, as the config has it when the daemon starts.
fn options(engine: &Engine, draining: CancellationToken) -> HttpOptions {
    let limits = &engine.config().limits;
    HttpOptions {
        draining,
        under_way: engine.under_way().requests(),
        max_body_bytes: limits.request_bytes,
        max_sessions: limits.sessions,
        session_bytes: limits.session_bytes,
        unread: UnreadBudget::new(limits.unread_bytes),
        // The id of a session is not enough for a caller who lacks the key that its owner had.
        same_caller: |one, other| one.get::<Principal>() == other.get::<Principal>(),
        ..HttpOptions::default()
    }
}

fn switched_off(endpoint: &str) -> ApiError {
    let message =
        format!("this endpoint is switched off: endpoints.{endpoint} is false in the config");
    ApiError::new(StatusCode::NOT_FOUND, "ENDPOINT_CLOSED", message)
        .hint("use /mcp, or ask the operator to open it")
}
