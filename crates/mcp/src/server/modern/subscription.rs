//! `subscriptions/listen`: to the service a stream of subscriptions is what a session was, with
//! `resources/subscribe` and `resources/unsubscribe` of its own.

use std::sync::Arc;

use http::Extensions;
use serde::Deserialize;
use serde_json::value::to_raw_value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::Modern;
use super::listener::Listener;
use super::opened::Opened;
use crate::modern::SubscriptionFilter;
use crate::server::call::run;
use crate::server::exchange::Outcome;
use crate::server::outbound::Outbound;
use crate::server::route::Route;
use crate::server::service::{Connection, RequestContext, Service};
use crate::server::session_id::SessionId;
use crate::{ErrorObject, ProtocolVersion, Request, RequestId, codes};

/// A stream of subscriptions while it lasts. Dropping it takes the subscriptions back.
#[derive(Debug)]
pub(in crate::server) struct Subscription<S: Service> {
    modern: Arc<Modern<S>>,
    connection: Arc<Connection>,
    listener: Arc<Listener>,
    resources: Vec<String>,
}

#[derive(Deserialize)]
struct ListenParams {
    notifications: SubscriptionFilter,
}

impl<S: Service> Modern<S> {
    /// Opens a stream of subscriptions and acknowledges it.
    pub(in crate::server) async fn listen(
        self: &Arc<Self>,
        opened: Opened,
        extensions: Extensions,
        route: Route,
    ) -> Result<Subscription<S>, ErrorObject> {
        let Opened { request, facts, .. } = opened;
        let params = request.params.as_deref().map_or("{}", |raw| raw.get());
        let wanted: ListenParams = serde_json::from_str(params).map_err(|error| {
            ErrorObject::invalid_params(format!("Invalid params of {}: {error}", request.method))
        })?;
        let listener = Arc::new(Listener::new(request.id, route));
        let connection = Arc::new(Connection {
            session: SessionId::random()
                .map_err(|error| ErrorObject::internal(error.to_string()))?,
            protocol: ProtocolVersion::MODERN,
            client: facts.client,
            extensions,
            outbound: Outbound::of_listener(Arc::clone(&listener)),
        });
        let hello = self.introduce(&connection).await?;
        let mut filter = wanted.notifications.within(&hello.capabilities);
        let mut subscription = Subscription {
            modern: Arc::clone(self),
            connection,
            listener,
            resources: Vec::new(),
        };
        let (connection, listener) = (&subscription.connection, &subscription.listener);
        self.listeners
            .insert(Arc::clone(connection), Arc::clone(listener))
            .map_err(|_| {
                ErrorObject::new(
                    codes::CONNECTION_CLOSED,
                    "Too many streams of subscriptions are open; try again later",
                )
            })?;
        for uri in std::mem::take(&mut filter.resource_subscriptions) {
            let subscribing = subscription.tell_service("resources/subscribe", &uri);
            match subscribing.await {
                Ok(_) => subscription.resources.push(uri),
                Err(error) => tracing::debug!(%error, uri, "a subscription was refused"),
            }
        }
        filter.resource_subscriptions = subscription.resources.iter().cloned().collect();
        subscription.listener.open(filter).await;
        Ok(subscription)
    }
}

// === impl Subscription ===

impl<S: Service> Subscription<S> {
    /// Fires when the server ends the stream.
    pub(in crate::server) fn ended(&self) -> &CancellationToken {
        &self.listener.ended
    }

    fn tell_service(
        &self,
        method: &str,
        uri: &str,
    ) -> impl Future<Output = Outcome> + Send + use<S> {
        let service = Arc::clone(&self.modern.service);
        let request = Request {
            id: RequestId::from(0),
            method: method.to_owned(),
            params: to_raw_value(&serde_json::json!({ "uri": uri })).ok(),
        };
        let context = RequestContext {
            connection: Arc::clone(&self.connection),
            request_id: request.id.clone(),
            outbound: self.connection.outbound.clone(),
            cancelled: CancellationToken::new(),
            log_level: None,
        };
        async move { run(&*service, request, context).await }
    }
}

impl<S: Service> Drop for Subscription<S> {
    fn drop(&mut self) {
        self.modern.listeners.remove(&self.connection.session);
        self.listener.ended.cancel();
        let resources = std::mem::take(&mut self.resources);
        let goodbyes: Vec<_> = resources
            .iter()
            .map(|uri| self.tell_service("resources/unsubscribe", uri))
            .collect();
        let service = Arc::clone(&self.modern.service);
        let connection = Arc::clone(&self.connection);
        let farewell = async move {
            for goodbye in goodbyes {
                // The stream is gone whether or not the service lets go.
                let _ = goodbye.await;
            }
            service.closed(&connection);
        };
        // Without a runtime the process is on its way out, and the service with it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(farewell);
        }
    }
}
