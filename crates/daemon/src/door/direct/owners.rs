//! Whose a resource or a task is. Their names are not ours to change, because results refer to
//! them, so it is remembered who announced them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp::RawValue;
use policy::ServerName;
use serde::Deserialize;

use super::lists::Item;

/// Tasks that are remembered; the oldest is forgotten first.
const MOST_TASKS: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Owners(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    resources: HashMap<String, ServerName>,
    skills: HashMap<String, ServerName>,
    /// In the order of the list, which is how they are tried.
    templates: Vec<(String, ServerName)>,
    tasks: HashMap<String, ServerName>,
    oldest_tasks: VecDeque<String>,
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Template {
    uri_template: String,
}

impl Owners {
    /// Learns whose the resources are. What two servers announce belongs to the first, and is
    /// listed once.
    pub(super) fn learn_resources(&self, items: Vec<Item>) -> Vec<Box<RawValue>> {
        let (resources, listed) = by_address(items);
        self.known().resources = resources;
        listed
    }

    /// The same for skills, whose addresses are those of resources that need not be listed.
    pub(super) fn learn_skills(&self, items: Vec<Item>) -> Vec<Box<RawValue>> {
        let (skills, listed) = by_address(items);
        self.known().skills = skills;
        listed
    }

    pub(super) fn learn_templates(&self, items: Vec<Item>) -> Vec<Box<RawValue>> {
        let mut templates: Vec<(String, ServerName)> = Vec::new();
        let mut listed = Vec::with_capacity(items.len());
        for Item { server, raw } in items {
            let Ok(Template { uri_template }) = serde_json::from_str(raw.get()) else {
                continue;
            };
            if templates.iter().any(|(known, _)| *known == uri_template) {
                continue;
            }
            templates.push((uri_template, server));
            listed.push(raw);
        }
        self.known().templates = templates;
        listed
    }

    /// Learns whose a task is from the result that began it.
    pub(super) fn learn_task(&self, server: &ServerName, result: &RawValue) {
        if !result.get().contains("taskId") {
            return;
        }
        let Some(id) = task_of(result) else {
            return;
        };
        let mut known = self.known();
        if known.tasks.insert(id.clone(), server.clone()).is_none() {
            known.oldest_tasks.push_back(id);
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
        if let Some(owner) = announced.find_map(|known| known.get(uri)) {
            return Some(owner.clone());
        }
        let template = known
            .templates
            .iter()
            .find(|(template, _)| template == uri || may_be_of(template, uri));
        template.map(|(_, owner)| owner.clone())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first owner of each address, and what is left to be listed.
fn by_address(items: Vec<Item>) -> (HashMap<String, ServerName>, Vec<Box<RawValue>>) {
    let mut owners = HashMap::new();
    let mut listed = Vec::with_capacity(items.len());
    for Item { server, raw } in items {
        let Ok(Resource { uri }) = serde_json::from_str(raw.get()) else {
            continue;
        };
        if let Entry::Vacant(vacant) = owners.entry(uri) {
            vacant.insert(server);
            listed.push(raw);
        }
    }
    (owners, listed)
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

    #[test]
    fn the_first_to_announce_a_resource_owns_it() {
        let owners = Owners::default();
        let listed = owners.learn_resources(vec![
            item("a", r#"{"uri":"x://1"}"#),
            item("b", r#"{"uri":"x://1"}"#),
            item("b", r#"{"uri":"x://2"}"#),
            item("b", "7"),
        ]);
        assert_eq!(listed.len(), 2);
        let owner = |uri| owners.of_resource(uri).map(|owner| owner.to_string());
        assert_eq!(owner("x://1").as_deref(), Some("a"));
        assert_eq!(owner("x://2").as_deref(), Some("b"));
        assert_eq!(owner("x://3"), None);
    }

    #[test]
    fn an_instance_of_a_template_belongs_to_its_server() {
        let owners = Owners::default();
        owners.learn_templates(vec![
            item("a", r#"{"uriTemplate":"t://{id}/data"}"#),
            item("b", r#"{"uriTemplate":"file:///{path}"}"#),
        ]);
        let owner = |uri| owners.of_resource(uri).map(|owner| owner.to_string());
        assert_eq!(owner("t://7/data").as_deref(), Some("a"));
        assert_eq!(owner("t://{id}/data").as_deref(), Some("a"));
        assert_eq!(owner("t://7/other"), None);
        assert_eq!(owner("file:///x/y").as_deref(), Some("b"));
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
