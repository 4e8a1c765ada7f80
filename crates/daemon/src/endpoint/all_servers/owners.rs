//! Whose a resource or a task is. Their names are not ours to change, because results refer to
//! them, so it is remembered who announced them.
//!
//! Where two servers announce the same one, the server that stands first in the config has it, also
//! while that server is not connected. A server that is added later can thus not take over what
//! another one announces.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp::RawValue;
use policy::ServerName;
use serde::Deserialize;

use super::lists::{Item, Listing};

/// Tasks that are remembered; the oldest is forgotten first.
const MOST_TASKS: usize = 10_000;

/// Collisions that are logged; a server that announces more is known by then.
const MOST_COLLISIONS: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Owners(Mutex<ToolState>);

#[derive(Debug, Default)]
struct ToolState {
    resources: Announced,
    skills: Announced,
    templates: Announced,
    tasks: HashMap<String, ServerName>,
    oldest_tasks: VecDeque<String>,
    /// What has been logged: the address, and the server that does not have it.
    collisions: HashSet<(String, ServerName)>,
}

/// Addresses with their owners.
#[derive(Debug, Default)]
struct Announced {
    owners: HashMap<String, ServerName>,
    /// The addresses in the order of their servers, which is how templates are tried.
    order: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Address {
    #[serde(alias = "uriTemplate")]
    uri: String,
}

/// An address that one server announced and another one has.
struct Collision {
    address: String,
    owner: ServerName,
    other: ServerName,
}

impl Owners {
    /// Learns whose the resources are, and returns those to be listed: each once, as its owner
    /// announces it. `configured` are the servers in the order of the config.
    pub(super) fn learn_resources(
        &self,
        listing: Listing,
        configured: &[ServerName],
    ) -> Vec<Box<RawValue>> {
        let mut known = self.known();
        let (listed, collisions) = known.resources.learn(listing, configured);
        known.tell("resource", collisions);
        listed
    }

    /// The same for skills, whose addresses are those of resources that need not be listed.
    pub(super) fn learn_skills(
        &self,
        listing: Listing,
        configured: &[ServerName],
    ) -> Vec<Box<RawValue>> {
        let mut known = self.known();
        let (listed, collisions) = known.skills.learn(listing, configured);
        known.tell("skill", collisions);
        listed
    }

    pub(super) fn learn_templates(
        &self,
        listing: Listing,
        configured: &[ServerName],
    ) -> Vec<Box<RawValue>> {
        let mut known = self.known();
        let (listed, collisions) = known.templates.learn(listing, configured);
        known.tell("resource template", collisions);
        listed
    }

    /// Learns whose a task is from the result that began it. A task that another server has
    /// already stays with that one.
    pub(super) fn learn_task(&self, server: &ServerName, result: &RawValue) {
        if !result.get().contains("taskId") {
            return;
        }
        let Some(id) = task_of(result) else {
            return;
        };
        let mut known = self.known();
        match known.tasks.entry(id.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(server.clone());
                known.oldest_tasks.push_back(id);
            }
            Entry::Occupied(owner) if owner.get() == server => {}
            Entry::Occupied(owner) => {
                let collision = Collision {
                    address: id,
                    owner: owner.get().clone(),
                    other: server.clone(),
                };
                known.tell("task", vec![collision]);
            }
        }
        if known.oldest_tasks.len() > MOST_TASKS
            && let Some(oldest) = known.oldest_tasks.pop_front()
        {
            known.tasks.remove(&oldest);
        }
    }

    pub(super) fn of_task(&self, id: &str) -> Option<ServerName> {
        self.known().tasks.get(id).cloned()
    }

    /// The server that announced the resource, or a template that it may be an instance of.
    pub(super) fn of_resource(&self, uri: &str) -> Option<ServerName> {
        let known = self.known();
        let mut announced = [&known.resources, &known.skills].into_iter();
        if let Some(owner) = announced.find_map(|known| known.owners.get(uri)) {
            return Some(owner.clone());
        }
        let templates = &known.templates;
        let mut order = templates.order.iter();
        let template = order.find(|template| *template == uri || may_be_of(template, uri))?;
        templates.owners.get(template).cloned()
    }

    fn known(&self) -> MutexGuard<'_, ToolState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ToolState ===

impl ToolState {
    /// Logs each collision once, with how to reach what is not reached here.
    fn tell(&mut self, what: &str, collisions: Vec<Collision>) {
        for Collision {
            address,
            owner,
            other,
        } in collisions
        {
            if self.collisions.len() >= MOST_COLLISIONS
                || !self.collisions.insert((address.clone(), other.clone()))
            {
                continue;
            }
            let address: String = address.chars().take(200).collect();
            tracing::warn!(
                ?address, %owner, server = %other,
                "two servers announce the same {what}; on /mcp/direct it is the owner's, that of \
                 the other server is reached on /mcp/server/{other}"
            );
        }
    }
}

// === impl Announced ===

impl Announced {
    fn learn(
        &mut self,
        listing: Listing,
        configured: &[ServerName],
    ) -> (Vec<Box<RawValue>>, Vec<Collision>) {
        let rank = |server: &ServerName| configured.iter().position(|known| known == server);
        // A server that does not answer just now keeps what it announced.
        self.owners
            .retain(|_, owner| rank(owner).is_some() && !listing.answered.contains(owner));
        let mut listed = Vec::with_capacity(listing.items.len());
        let mut collisions = Vec::new();
        for Item { server, raw } in listing.items {
            let Ok(Address { uri: address }) = serde_json::from_str(raw.get()) else {
                continue;
            };
            match self.owners.entry(address) {
                Entry::Vacant(vacant) => {
                    vacant.insert(server);
                    listed.push(raw);
                }
                Entry::Occupied(owner) if *owner.get() == server => {}
                Entry::Occupied(mut owner) => {
                    let mut other = server;
                    let earlier = |a: &ServerName, b: &ServerName| {
                        rank(a).unwrap_or(usize::MAX) < rank(b).unwrap_or(usize::MAX)
                    };
                    if earlier(&other, owner.get()) {
                        std::mem::swap(owner.get_mut(), &mut other);
                        listed.push(raw);
                    }
                    collisions.push(Collision {
                        address: owner.key().clone(),
                        owner: owner.get().clone(),
                        other,
                    });
                }
            }
        }
        let mut order: Vec<String> = self.owners.keys().cloned().collect();
        order.sort_by_cached_key(|address| {
            (self.owners.get(address).and_then(rank), address.clone())
        });
        self.order = order;
        (listed, collisions)
    }
}

/// Whether the fixed parts of a template are in the address, in their order.
fn may_be_of(template: &str, uri: &str) -> bool {
    let mut fixed = template.split('{');
    let first = fixed.next().unwrap_or_default();
    let Some(mut rest) = uri.strip_prefix(first) else {
        return false;
    };
    let mut last = first;
    for part in fixed {
        let literal = part.split_once('}').map_or("", |(_, literal)| literal);
        let Some(at) = rest.find(literal) else {
            return false;
        };
        rest = &rest[at + literal.len()..];
        last = literal;
    }
    // The end of a template without a variable there is the end of the address.
    template.ends_with('}') || last.is_empty() || uri.ends_with(last)
}

fn task_of(result: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Begun {
        task_id: Option<String>,
        task: Option<Task>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Task {
        task_id: String,
    }

    let begun: Begun = serde_json::from_str(result.get()).ok()?;
    begun.task_id.or(begun.task.map(|task| task.task_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(server: &str, text: &str) -> Item {
        Item {
            server: server.parse().unwrap(),
            raw: RawValue::from_string(text.to_owned()).unwrap(),
        }
    }

    /// What these servers answered.
    fn listing(answered: &[&str], items: Vec<Item>) -> Listing {
        Listing {
            items,
            answered: names(answered).into_iter().collect(),
        }
    }

    fn names(names: &[&str]) -> Vec<ServerName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn the_first_server_of_the_config_owns_what_two_announce() {
        let owners = Owners::default();
        let announced = |server| item(server, r#"{"uri":"x://1"}"#);
        let owner = |uri| owners.of_resource(uri).map(|owner| owner.to_string());
        let configured = names(&["victim", "aaa"]);
        let both = || {
            let items = vec![announced("victim"), announced("aaa"), item("aaa", "7")];
            listing(&["victim", "aaa"], items)
        };
        assert_eq!(owners.learn_resources(both(), &configured).len(), 1);
        assert_eq!(owner("x://1").as_deref(), Some("victim"));
        assert_eq!(owner("x://2"), None);
        // While its owner is away, no other upstream has it.
        let only_other = || listing(&["aaa"], vec![announced("aaa")]);
        let listed = owners.learn_resources(only_other(), &configured);
        assert!(listed.is_empty());
        assert_eq!(owner("x://1").as_deref(), Some("victim"));
        // Once its owner no longer announces it, or is gone, another one may.
        let given_up = listing(&["victim", "aaa"], vec![announced("aaa")]);
        assert_eq!(owners.learn_resources(given_up, &configured).len(), 1);
        assert_eq!(owner("x://1").as_deref(), Some("aaa"));
        owners.learn_resources(both(), &configured);
        assert_eq!(owner("x://1").as_deref(), Some("victim"));
        owners.learn_resources(only_other(), &names(&["aaa"]));
        assert_eq!(owner("x://1").as_deref(), Some("aaa"));
    }

    #[test]
    fn an_instance_of_a_template_belongs_to_its_server() {
        let owners = Owners::default();
        let items = vec![
            item("a", r#"{"uriTemplate":"t://{id}/data"}"#),
            item("b", r#"{"uriTemplate":"file:///{path}"}"#),
            item("c", r#"{"uriTemplate":"{everything}"}"#),
        ];
        owners.learn_templates(listing(&["a", "b", "c"], items), &names(&["a", "b", "c"]));
        let owner = |uri| owners.of_resource(uri).map(|owner| owner.to_string());
        assert_eq!(owner("t://7/data").as_deref(), Some("a"));
        assert_eq!(owner("t://{id}/data").as_deref(), Some("a"));
        assert_eq!(owner("t://7/other").as_deref(), Some("c"));
        assert_eq!(owner("file:///x/y").as_deref(), Some("b"));
        // The same while a server is away.
        let items = vec![item("c", r#"{"uriTemplate":"{everything}"}"#)];
        owners.learn_templates(listing(&["c"], items), &names(&["a", "b", "c"]));
        assert_eq!(owner("t://7/data").as_deref(), Some("a"));
    }

    #[test]
    fn a_task_stays_with_the_server_that_began_it() {
        let owners = Owners::default();
        let raw = RawValue::from_string(r#"{"task":{"taskId":"1"}}"#.to_owned()).unwrap();
        owners.learn_task(&"a".parse().unwrap(), &raw);
        owners.learn_task(&"b".parse().unwrap(), &raw);
        assert_eq!(owners.of_task("1").unwrap().as_str(), "a");
    }

    #[test]
    fn a_task_is_remembered_however_it_was_begun() {
        let owners = Owners::default();
        let server = "a".parse().unwrap();
        for text in [
            r#"{"task":{"taskId":"1"}}"#,
            r#"{"resultType":"task","taskId":"2"}"#,
        ] {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            owners.learn_task(&server, &raw);
        }
        assert!(owners.of_task("1").is_some() && owners.of_task("2").is_some());
        assert!(owners.of_task("3").is_none());
    }
}
