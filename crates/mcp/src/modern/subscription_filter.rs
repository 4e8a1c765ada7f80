//! Which changes a client wants to hear of on a stream of subscriptions, and which a server agreed
//! to tell.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Notification;

/// The same on both sides: what a client asks for, and what a server acknowledges of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SubscriptionFilter {
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) tools_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) prompts_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) resources_list_changed: bool,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) resource_subscriptions: BTreeSet<String>,
}

/// What a server's capabilities say about what changes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Offered {
    tools: Changes,
    prompts: Changes,
    resources: Changes,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Changes {
    list_changed: bool,
    subscribe: bool,
}

#[derive(Deserialize)]
struct Updated {
    uri: String,
}

impl SubscriptionFilter {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is left of the wishes where the server has these capabilities.
    pub(crate) fn within(self, capabilities: &RawValue) -> Self {
        let offered: Offered = serde_json::from_str(capabilities.get()).unwrap_or_default();
        let mut subscriptions = self.resource_subscriptions;
        if !offered.resources.subscribe {
            subscriptions.clear();
        }
        Self {
            tools_list_changed: self.tools_list_changed && offered.tools.list_changed,
            prompts_list_changed: self.prompts_list_changed && offered.prompts.list_changed,
            resources_list_changed: self.resources_list_changed && offered.resources.list_changed,
            resource_subscriptions: subscriptions,
        }
    }

    pub(crate) fn lets_through(&self, notification: &Notification) -> bool {
        match notification.method.as_str() {
            "notifications/tools/list_changed" => self.tools_list_changed,
            "notifications/prompts/list_changed" => self.prompts_list_changed,
            "notifications/resources/list_changed" => self.resources_list_changed,
            "notifications/resources/updated" => {
                let updated = notification
                    .params
                    .as_deref()
                    .and_then(|params| serde_json::from_str::<Updated>(params.get()).ok());
                updated.is_some_and(|updated| self.covers(&updated.uri))
            }
            _ => false,
        }
    }

    /// A server may report a part of what was subscribed to.
    fn covers(&self, uri: &str) -> bool {
        self.resource_subscriptions.iter().any(|subscribed| {
            uri.strip_prefix(subscribed.as_str()).is_some_and(|rest| {
                rest.is_empty() || subscribed.ends_with('/') || rest.starts_with(['/', '#', '?'])
            })
        })
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn updated(uri: &str) -> Notification {
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        Notification::new("notifications/resources/updated", Some(raw(&params)))
    }

    #[test]
    fn wishes_are_cut_to_what_the_server_offers() {
        let all: SubscriptionFilter = serde_json::from_str(
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,
                "resourceSubscriptions":["a"]}"#,
        )
        .unwrap();
        let some = all.clone().within(&raw(
            r#"{"tools":{"listChanged":true},"resources":{"subscribe":true}}"#,
        ));
        assert_eq!(
            serde_json::to_string(&some).unwrap(),
            r#"{"toolsListChanged":true,"resourceSubscriptions":["a"]}"#
        );
        assert_eq!(
            all.within(&raw(r#"{"tools":{}}"#)),
            SubscriptionFilter::default()
        );
    }

    #[test]
    fn an_update_passes_if_it_is_of_what_was_subscribed_to() {
        let filter = SubscriptionFilter {
            resource_subscriptions: BTreeSet::from(["file:///a".to_owned()]),
            ..SubscriptionFilter::default()
        };
        assert!(filter.lets_through(&updated("file:///a")));
        assert!(filter.lets_through(&updated("file:///a/b")));
        assert!(!filter.lets_through(&updated("file:///ab")));
        assert!(!filter.lets_through(&Notification::new("notifications/tools/list_changed", None)));
    }
}
