//! One stream of subscriptions: what its client wants to hear, and what it has been told so far.

use std::sync::Mutex;

use serde_json::value::{RawValue, to_raw_value};
use tokio_util::sync::CancellationToken;

use crate::lock::lock;
use crate::members::Members;
use crate::modern::{SubscriptionFilter, meta, methods, result_type};
use crate::server::outbound::{Gone, OfferError};
use crate::server::route::Route;
use crate::{ErrorObject, Notification, RequestId, Response};

/// Notifications that may come before the stream is open.
const MAX_EARLY: usize = 64;

#[derive(Debug)]
pub(in crate::server) struct Listener {
    /// The id of the request that opened the stream; every notification on it bears it.
    id: RequestId,
    route: Route,
    stage: Mutex<Stage>,
    /// Fires when nothing more will be sent.
    pub(in crate::server) ended: CancellationToken,
}

#[derive(Debug)]
enum Stage {
    /// The first message must be the acknowledgement, so others wait for it.
    Opening(Vec<Notification>),
    Open(SubscriptionFilter),
}

// === impl Listener ===

impl Listener {
    pub(super) fn new(id: RequestId, route: Route) -> Self {
        Self {
            id,
            route,
            stage: Mutex::new(Stage::Opening(Vec::new())),
            ended: CancellationToken::new(),
        }
    }

    /// Tells the client what it will hear, and then what has happened meanwhile.
    pub(super) async fn open(&self, filter: SubscriptionFilter) {
        let params = to_raw_value(&serde_json::json!({ "notifications": filter })).ok();
        let acknowledged = Notification::new(methods::ACKNOWLEDGED, params);
        // A client that is gone already need not be told.
        let _ = self.route.send(self.tagged(&acknowledged)).await;
        let mut stage = lock(&self.stage);
        if let Stage::Opening(early) = &*stage {
            for notification in early.iter().filter(|it| filter.lets_through(it)) {
                let _ = self.route.offer(self.tagged(notification));
            }
            *stage = Stage::Open(filter);
        }
    }

    pub(in crate::server) async fn notify(&self, notification: &Notification) -> Result<(), Gone> {
        match self.admit(notification)? {
            Some(message) => self.route.send(message).await,
            None => Ok(()),
        }
    }

    pub(in crate::server) fn offer(&self, notification: &Notification) -> Result<(), OfferError> {
        match self.admit(notification)? {
            Some(message) => self.route.offer(message),
            None => Ok(()),
        }
    }

    /// The message to send now, if there is one.
    fn admit(&self, notification: &Notification) -> Result<Option<Vec<u8>>, Gone> {
        if self.ended.is_cancelled() {
            return Err(Gone);
        }
        match &mut *lock(&self.stage) {
            Stage::Opening(early) => {
                if early.len() < MAX_EARLY {
                    early.push(notification.clone());
                }
                Ok(None)
            }
            Stage::Open(filter) if filter.lets_through(notification) => {
                Ok(Some(self.tagged(notification)))
            }
            Stage::Open(_) => Ok(None),
        }
    }

    /// Answers the request that opened the stream: the server has nothing more to say.
    pub(super) fn end(&self) {
        if self.ended.is_cancelled() {
            return;
        }
        self.ended.cancel();
        let mut complete = Members::default();
        let outcome = to_raw_value(result_type::COMPLETE).and_then(|kind| {
            complete.set("resultType", kind);
            tag(complete, &self.id)
        });
        let response = Response {
            id: Some(self.id.clone()),
            outcome: outcome.map_err(|error| ErrorObject::internal(error.to_string())),
        };
        self.route.finish(response.encode());
    }

    fn tagged(&self, notification: &Notification) -> Vec<u8> {
        let params = notification.params.as_deref();
        let params = params.map_or_else(|| Ok(Members::default()), Members::parse);
        let params = params.and_then(|params| tag(params, &self.id)).ok();
        Notification::new(notification.method.clone(), params).encode()
    }
}

/// The object, with a `_meta` that says which subscription it belongs to.
fn tag(mut object: Members<'_>, id: &RequestId) -> Result<Box<RawValue>, serde_json::Error> {
    let meta = object.get("_meta").map(ToOwned::to_owned);
    let mut meta = match &meta {
        Some(meta) => Members::parse(meta)?,
        None => Members::default(),
    };
    meta.set(meta::SUBSCRIPTION_ID, to_raw_value(id)?);
    object.set("_meta", meta.to_raw()?);
    object.to_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn updated(uri: &str) -> Notification {
        let params = format!(r#"{{"uri":"{uri}","_meta":{{"x":1}}}}"#);
        Notification::new("notifications/resources/updated", Some(raw(&params)))
    }

    fn tools_changed() -> Notification {
        Notification::new("notifications/tools/list_changed", None)
    }

    #[tokio::test]
    async fn the_acknowledgement_comes_first_and_everything_is_tagged() {
        let (pipe, mut queue) = tokio::sync::mpsc::channel(8);
        let listener = Listener::new(RequestId::from("s"), Route::Pipe(pipe));
        listener.offer(&tools_changed()).unwrap();
        listener.offer(&updated("a")).unwrap();
        let filter = SubscriptionFilter {
            tools_list_changed: true,
            ..SubscriptionFilter::default()
        };
        listener.open(filter).await;
        listener.offer(&updated("a")).unwrap();
        listener.offer(&tools_changed()).unwrap();
        listener.end();
        listener.end();
        assert!(listener.offer(&tools_changed()).is_err());
        let mut messages = Vec::new();
        while let Ok(message) = queue.try_recv() {
            messages.push(serde_json::from_slice::<Value>(&message).unwrap());
        }
        let methods: Vec<_> = messages.iter().map(|it| it["method"].as_str()).collect();
        let changed = Some("notifications/tools/list_changed");
        let expected = [Some(methods::ACKNOWLEDGED), changed, changed, None];
        assert_eq!(methods, expected);
        for message in &messages[..3] {
            assert_eq!(message["params"]["_meta"][meta::SUBSCRIPTION_ID], "s");
        }
        assert_eq!(
            messages[0]["params"]["notifications"]["toolsListChanged"],
            true
        );
        assert_eq!(messages[3]["id"], "s");
        assert_eq!(messages[3]["result"]["resultType"], "complete");
    }

    #[test]
    fn a_tag_leaves_the_rest_of_the_params_alone() {
        let params = raw(r#"{"uri": "a","_meta":{"x": 1.0}}"#);
        let tagged = tag(Members::parse(&params).unwrap(), &RequestId::from(1));
        assert_eq!(
            tagged.unwrap().get(),
            r#"{"uri":"a","_meta":{"x":1.0,"io.modelcontextprotocol/subscriptionId":1}}"#
        );
    }
}
