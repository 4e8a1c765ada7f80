//! The streams of a modern server that are open, by the id of the request that opened them, which
//! is what the server tags its notifications with.

use std::collections::HashMap;
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::pending::own_id;
use crate::lock::lock;
use crate::modern::{SubscriptionFilter, meta};
use crate::{Members, Notification, RequestId};

#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<HashMap<u64, Open>>);

#[derive(Debug)]
struct Open {
    acknowledged: Option<oneshot::Sender<SubscriptionFilter>>,
    ended: CancellationToken,
}

#[derive(Deserialize)]
struct Acknowledgement<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(default)]
    notifications: SubscriptionFilter,
}

impl Subscriptions {
    /// Expects the stream that the request `id` is about to open. Hands out what will become of
    /// it: the acknowledgement, and that the server ended it.
    pub(super) fn expect(
        &self,
        id: u64,
    ) -> (oneshot::Receiver<SubscriptionFilter>, CancellationToken) {
        let (sender, acknowledged) = oneshot::channel();
        let ended = CancellationToken::new();
        let open = Open {
            acknowledged: Some(sender),
            ended: ended.clone(),
        };
        lock(&self.0).insert(id, open);
        (acknowledged, ended)
    }

    pub(super) fn forget(&self, id: u64) {
        lock(&self.0).remove(&id);
    }

    pub(super) fn acknowledge(&self, notification: &Notification) {
        let params = notification.params.as_ref();
        let Some(Ok(acknowledgement)) =
            params.map(|params| serde_json::from_str::<Acknowledgement<'_>>(params.get()))
        else {
            tracing::debug!("an acknowledgement could not be read");
            return;
        };
        let id = acknowledgement
            .meta
            .and_then(|raw| Members::parse(raw).ok())
            .and_then(|members| RequestId::from_raw(members.get(meta::SUBSCRIPTION_ID)?))
            .and_then(|id| own_id(&id));
        let mut open = lock(&self.0);
        let waiting = id
            .and_then(|id| open.get_mut(&id))
            .and_then(|stream| stream.acknowledged.take());
        if let Some(waiting) = waiting {
            // Where it came too late, the caller waits no longer.
            let _ = waiting.send(acknowledgement.notifications);
        }
    }

    /// The server ended a stream.
    pub(super) fn end(&self, id: u64) {
        if let Some(stream) = lock(&self.0).remove(&id) {
            stream.ended.cancel();
        }
    }
}

/// The notification without the tag that only says on which of our streams it came.
pub(super) fn untagged(mut notification: Notification) -> Notification {
    if let Some(params) = notification.params.as_deref()
        && params.get().contains(meta::SUBSCRIPTION_ID)
        && let Some(params) = without_tag(params)
    {
        notification.params = Some(params);
    }
    notification
}

/// What is left; `None` if there is nothing to take out.
fn without_tag(params: &RawValue) -> Option<Box<RawValue>> {
    let mut members = Members::parse(params).ok()?;
    let raw = members.get("_meta")?.to_owned();
    let mut meta = Members::parse(&raw).ok()?;
    meta.remove(meta::SUBSCRIPTION_ID);
    if meta.is_empty() {
        members.remove("_meta");
    } else {
        members.set("_meta", meta.to_raw().ok()?);
    }
    members.to_raw().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(params: &str) -> Notification {
        let params = RawValue::from_string(params.to_owned()).unwrap();
        Notification::new("notifications/resources/updated", Some(params))
    }

    #[test]
    fn only_the_tag_is_taken_off() {
        let table = [
            (
                r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#,
                "{}",
            ),
            (
                r#"{"uri": "a","_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#,
                r#"{"uri":"a"}"#,
            ),
            (
                r#"{"_meta":{"x": 1,"io.modelcontextprotocol/subscriptionId":1},"uri":"a"}"#,
                r#"{"_meta":{"x":1},"uri":"a"}"#,
            ),
            (r#"{"uri": "a" }"#, r#"{"uri": "a" }"#),
        ];
        for (tagged, expected) in table {
            let left = untagged(notification(tagged)).params.unwrap();
            assert_eq!(left.get(), expected);
        }
    }

    #[tokio::test]
    async fn each_stream_hears_only_of_itself() {
        let subscriptions = Subscriptions::default();
        let (first, first_ended) = subscriptions.expect(1);
        let (mut second, second_ended) = subscriptions.expect(2);
        subscriptions.acknowledge(&notification(
            r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"toolsListChanged":true}}"#,
        ));
        assert!(first.await.unwrap().tools_list_changed);
        assert!(second.try_recv().is_err());
        subscriptions.end(2);
        assert!(second_ended.is_cancelled() && !first_ended.is_cancelled());
    }
}
