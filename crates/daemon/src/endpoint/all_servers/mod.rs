//! Everything but tools of all upstreams at once, for `/mcp` and `/mcp/direct`. Prompts are called
//! `server__name`; resources keep their addresses and go to the upstream that announced them.

mod lists;
mod names;
mod owners;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mcp::server::{Connection, RequestContext};
use mcp::{ErrorObject, Members, Notification, RawValue, Request, codes};
use policy::ServerName;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use upstream::Upstream;

use self::lists::{Listing, Wanted, gather};
pub(super) use self::names::{renamed, resolve, with_name};
use self::owners::Owners;
use super::clients::Clients;
use super::relay::{Answer, forward, raw, to_error};
use super::server::{Named, Resource, connected, empty_object, let_go, log_level, parse};
use crate::engine::Engine;

/// How long a list waits for upstreams that are just being connected.
const CONNECTING_PATIENCE: Duration = Duration::from_secs(10);

/// The upstreams as one server, and what is kept for the clients of one endpoint.
#[derive(Debug)]
pub(super) struct AllServers {
    engine: Arc<Engine>,
    owners: Owners,
    pub(super) clients: Clients,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
}

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow, rename = "ref")]
    reference: &'a RawValue,
}

#[derive(Deserialize)]
struct Reference {
    name: Option<String>,
    uri: Option<String>,
}

// === impl AllServers ===

impl AllServers {
    pub(super) fn new(engine: Arc<Engine>, clients: Clients) -> Self {
        Self {
            engine,
            owners: Owners::default(),
            clients,
        }
    }

    /// Answers a request for anything but tools. None if this is no such request.
    pub(super) async fn answer(
        &self,
        request: &Request,
        context: &RequestContext,
    ) -> Option<Answer> {
        Some(match request.method.as_str() {
            "prompts/list" => self.prompts(context).await,
            "prompts/get" => self.get_prompt(request, context).await,
            "resources/list" => self.resources(context).await,
            "resources/templates/list" => self.templates(context).await,
            "resources/read" | "resources/directory/read" | "skills/get" => {
                self.read(request, context).await
            }
            "skills/list" => self.skills(context).await,
            "resources/subscribe" => self.subscribe(request, context).await,
            "resources/unsubscribe" => self.unsubscribe(request, context).await,
            "completion/complete" => self.complete(request, context).await,
            "logging/setLevel" => self.set_level(request, context).await,
            "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" => {
                self.task(request, context).await
            }
            _ => return None,
        })
    }

    /// Those upstreams that can be asked now, in the order of the config.
    pub(super) async fn ready(&self) -> Vec<Arc<Upstream>> {
        let deadline = Instant::now() + CONNECTING_PATIENCE;
        let mut upstreams = self.engine.upstreams();
        let configured = self.configured();
        upstreams.sort_by_key(|upstream| {
            let is_same = |name: &ServerName| name == upstream.name();
            configured.iter().position(is_same)
        });
        join_all(upstreams.iter().map(|upstream| upstream.settled(deadline))).await;
        let is_ready = |upstream: &Arc<Upstream>| upstream.status().state.is_connected();
        upstreams.into_iter().filter(is_ready).collect()
    }

    async fn prompts(&self, context: &RequestContext) -> Answer {
        let listing = self.list("prompts/list", "prompts", context).await;
        let prompts: Vec<_> = listing
            .items
            .iter()
            .filter_map(|item| renamed(&item.server, &item.raw))
            .collect();
        raw(&json!({ "prompts": prompts }))
    }

    async fn get_prompt(&self, request: &Request, context: &RequestContext) -> Answer {
        let params = request.params.clone().unwrap_or_else(empty_object);
        let Named { name, .. } = parse(&request.method, Some(&params))?;
        let (upstream, own_name) = self.owner_of_name("prompt", &name)?;
        let sent = with_name(&params, &own_name).ok_or_else(not_an_object)?;
        self.pass(upstream, "prompts/get", Some(sent), context)
            .await
    }

    async fn resources(&self, context: &RequestContext) -> Answer {
        let listing = self.list("resources/list", "resources", context).await;
        let resources = self.owners.learn_resources(listing, &self.configured());
        raw(&json!({ "resources": resources }))
    }

    async fn templates(&self, context: &RequestContext) -> Answer {
        let listing = self
            .list("resources/templates/list", "resourceTemplates", context)
            .await;
        let templates = self.owners.learn_templates(listing, &self.configured());
        raw(&json!({ "resourceTemplates": templates }))
    }

    async fn skills(&self, context: &RequestContext) -> Answer {
        let listing = self.list("skills/list", "skills", context).await;
        let skills = self.owners.learn_skills(listing, &self.configured());
        raw(&json!({ "skills": skills }))
    }

    async fn list(&self, method: &str, member: &str, context: &RequestContext) -> Listing {
        let upstreams = self.ready().await;
        let wanted = Wanted {
            method,
            member,
            client: &self.clients.on_behalf(context),
            context,
        };
        gather(&upstreams, wanted).await
    }

    /// All servers in the order of the config, which says who comes first.
    fn configured(&self) -> Vec<ServerName> {
        let config = self.engine.config();
        let servers = config.mcp_servers.iter();
        servers.map(|server| server.name.clone()).collect()
    }

    /// The upstream that announced a resource; all are asked again for one that none did.
    async fn owner_of_resource(
        &self,
        uri: &str,
        context: &RequestContext,
    ) -> Option<Arc<Upstream>> {
        let known = |uri| {
            let owner = self.owners.of_resource(uri)?;
            self.engine.fleet().get(&owner)
        };
        if let Some(owner) = known(uri) {
            return Some(owner);
        }
        // Only what is learnt on the way counts.
        let _ = tokio::join!(self.resources(context), self.templates(context));
        known(uri)
    }

    /// Reads a resource where it is, or wherever it turns out to be.
    async fn read(&self, request: &Request, context: &RequestContext) -> Answer {
        let method = request.method.as_str();
        let Resource { uri } = parse(method, request.params.as_deref())?;
        if let Some(owner) = self.owner_of_resource(&uri, context).await {
            let params = request.params.clone();
            return self.pass(owner, method, params, context).await;
        }
        let mut refusal: Option<ErrorObject> = None;
        for upstream in self.ready().await {
            let reading = self.pass(upstream, method, request.params.clone(), context);
            match reading.await {
                Ok(result) => return Ok(result),
                // One that knows the method says more than one that does not.
                Err(error) if is_not_there(&error) => {
                    let unknown = |error: &ErrorObject| error.code == codes::METHOD_NOT_FOUND;
                    refusal = refusal.filter(|known| !unknown(known)).or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(refusal.unwrap_or_else(|| no_such_resource(&uri)))
    }

    async fn complete(&self, request: &Request, context: &RequestContext) -> Answer {
        let params = request.params.clone().unwrap_or_else(empty_object);
        let Completion { reference } = parse(&request.method, Some(&params))?;
        let Reference { name, uri } = parse(&request.method, Some(reference))?;
        let (upstream, sent) = match (name, uri) {
            (Some(name), _) => {
                let (upstream, own_name) = self.owner_of_name("prompt", &name)?;
                let reference = with_name(reference, &own_name).ok_or_else(not_an_object)?;
                let mut members = Members::parse(&params).map_err(|_| not_an_object())?;
                members.set("ref", reference);
                (upstream, members.to_raw().map_err(|_| not_an_object())?)
            }
            (None, Some(uri)) => {
                let owner = self.owner_of_resource(&uri, context).await;
                (owner.ok_or_else(|| no_such_resource(&uri))?, params.clone())
            }
            (None, None) => {
                let message = "Invalid params: ref needs a name or a uri";
                return Err(ErrorObject::invalid_params(message));
            }
        };
        self.pass(upstream, "completion/complete", Some(sent), context)
            .await
    }

    async fn subscribe(&self, request: &Request, context: &RequestContext) -> Answer {
        let Resource { uri } = parse(&request.method, request.params.as_deref())?;
        if self.clients.is_subscribed(&context.connection, &uri) {
            return Ok(empty_object());
        }
        let owner = self.owner_of_resource(&uri, context).await;
        let owner = connected(owner.ok_or_else(|| no_such_resource(&uri))?).await?;
        let client = self.clients.on_behalf(context);
        owner.subscribe(&uri, &client).await.map_err(to_error)?;
        self.clients
            .subscribe(&context.connection, &uri, owner.name());
        Ok(empty_object())
    }

    async fn unsubscribe(&self, request: &Request, context: &RequestContext) -> Answer {
        let Resource { uri } = parse(&request.method, request.params.as_deref())?;
        let owner = self.clients.unsubscribe(&context.connection, &uri);
        if let Some(owner) = owner.and_then(|owner| self.engine.fleet().get(&owner)) {
            let client = self.clients.on_behalf(context);
            owner.unsubscribe(&uri, &client).await.map_err(to_error)?;
        }
        Ok(empty_object())
    }

    async fn set_level(&self, request: &Request, context: &RequestContext) -> Answer {
        let level = log_level(request)?;
        for upstream in self.ready().await {
            if let Err(error) = upstream.log_from(level).await {
                tracing::warn!(server = %upstream.name(), %error, "the log level is not set");
            }
        }
        self.clients.set_log_level(&context.connection, level);
        Ok(empty_object())
    }

    async fn task(&self, request: &Request, context: &RequestContext) -> Answer {
        let Task { task_id } = parse(&request.method, request.params.as_deref())?;
        let owner = self.owners.of_task(&task_id);
        let mut owner = owner.and_then(|owner| self.engine.fleet().get(&owner));
        if owner.is_none() {
            // A task that was not begun here is for a server to refuse that has tasks at all.
            let mut ready = self.ready().await.into_iter();
            owner = ready.find(|upstream| has_tasks(upstream));
        }
        match owner {
            Some(owner) => {
                let params = request.params.clone();
                self.pass(owner, &request.method, params, context).await
            }
            None => Err(ErrorObject::method_not_found(&request.method)),
        }
    }

    pub(super) async fn pass(
        &self,
        upstream: Arc<Upstream>,
        method: &str,
        params: Option<Box<RawValue>>,
        context: &RequestContext,
    ) -> Answer {
        let upstream = connected(upstream).await?;
        let client = self.clients.on_behalf(context);
        forward(&upstream, method, params, &client, context).await
    }

    fn owner_of_name(
        &self,
        what: &str,
        name: &str,
    ) -> Result<(Arc<Upstream>, String), ErrorObject> {
        let found = resolve(self.engine.fleet(), name);
        found
            .map(|(upstream, own_name)| (upstream, own_name.to_owned()))
            .ok_or_else(|| {
                let message = format!(
                    "Unknown {what}: {name}. Names here are those of a server and, after two \
                     underscores, of its {what}"
                );
                ErrorObject::invalid_params(message)
            })
    }

    /// The server that a result comes from has the task that it began, if it began one.
    pub(super) fn learn_task(&self, server: &ServerName, result: &RawValue) {
        self.owners.learn_task(server, result);
    }

    /// What is offered whatever is connected.
    pub(super) fn capabilities() -> Value {
        json!({
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "completions": {},
            "logging": {},
        })
    }

    /// What upstreams know beyond the protocol, all of it together.
    pub(super) fn add_extensions(&self, capabilities: &mut Value) {
        for kind in ["extensions", "experimental", "tasks"] {
            let mut merged = Map::new();
            for upstream in self.engine.upstreams() {
                merged.extend(members_of(&upstream, kind));
            }
            if !merged.is_empty() {
                capabilities[kind] = Value::Object(merged);
            }
        }
    }

    /// The recipient of a notification is not known, so all upstreams get it.
    pub(super) async fn notification(&self, notification: Notification, connection: &Connection) {
        let client = self.clients.of_connection(connection);
        let Notification { method, params } = notification;
        let upstreams = self.engine.upstreams();
        let telling = upstreams
            .iter()
            .map(|upstream| upstream.notify(&method, params.clone(), &client));
        join_all(telling).await;
    }

    /// A client is gone.
    pub(super) fn closed(&self, connection: &Connection) {
        let mut by_server: BTreeMap<ServerName, Vec<String>> = BTreeMap::new();
        for (uri, server) in self.clients.forget(connection).subscriptions {
            by_server.entry(server).or_default().push(uri);
        }
        for upstream in self.engine.upstreams() {
            let uris = by_server.remove(upstream.name()).unwrap_or_default();
            let client = self.clients.of_connection(connection);
            let_go(upstream, client, connection, uris);
        }
    }
}

/// The members of one of an upstream's capabilities.
fn members_of(upstream: &Upstream, capability: &str) -> Map<String, Value> {
    let status = upstream.status();
    let Some(identity) = &status.server else {
        return Map::new();
    };
    let offered = identity.handshake.capabilities.get();
    let mut offered: Map<String, Value> = serde_json::from_str(offered).unwrap_or_default();
    match offered.remove(capability) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn has_tasks(upstream: &Upstream) -> bool {
    const EXTENSION: &str = "io.modelcontextprotocol/tasks";

    members_of(upstream, "extensions").contains_key(EXTENSION)
        || !members_of(upstream, "tasks").is_empty()
}

fn is_not_there(error: &ErrorObject) -> bool {
    matches!(
        error.code,
        codes::RESOURCE_NOT_FOUND | codes::INVALID_PARAMS | codes::METHOD_NOT_FOUND
    )
}

fn no_such_resource(uri: &str) -> ErrorObject {
    let message = format!("No server is known to have the resource {uri}");
    let mut error = ErrorObject::new(codes::RESOURCE_NOT_FOUND, message);
    error.data = raw(&json!({ "uri": uri })).ok();
    error
}

pub(super) fn not_an_object() -> ErrorObject {
    ErrorObject::invalid_params("Invalid params: an object is needed")
}
