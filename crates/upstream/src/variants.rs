//! Definitions of tools that an upstream lists on connections other than the main one: tools that only some
//! clients get, and other definitions of a tool that all get.

use std::collections::HashSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use catalog::ToolDefinition;

/// The definitions, oldest first, each once. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Variants(Arc<Vec<Arc<ToolDefinition>>>);

/// The definitions that were seen since the main connection was made.
#[derive(Debug, Default)]
pub(crate) struct Seen(ArcSwap<Vec<Arc<ToolDefinition>>>);

impl Variants {
    pub fn all(&self) -> &[Arc<ToolDefinition>] {
        &self.0
    }

    /// Whether they are the very same.
    pub fn is_identical_to(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Seen {
    pub(crate) fn get(&self) -> Variants {
        Variants(self.0.load_full())
    }

    /// Adds those definitions that are in none of the two lists, and forgets the oldest beyond `most`.
    /// Whether there was any.
    pub(crate) fn add(
        &self,
        listed: &[Arc<ToolDefinition>],
        main: &[Arc<ToolDefinition>],
        most: usize,
    ) -> bool {
        let mut any = false;
        self.0.rcu(|seen| {
            let known: HashSet<&str> = main
                .iter()
                .chain(seen.iter())
                .map(|it| it.raw.get())
                .collect();
            let is_new = |tool: &&Arc<ToolDefinition>| !known.contains(tool.raw.get());
            let new: Vec<_> = listed.iter().filter(is_new).cloned().collect();
            any = !new.is_empty();
            if !any {
                return Arc::clone(seen);
            }
            let all = seen.iter().cloned().chain(new);
            let surplus = all.clone().count().saturating_sub(most);
            Arc::new(all.skip(surplus).collect())
        });
        any
    }

    /// Forgets all: the server is a new one.
    pub(crate) fn clear(&self) {
        if !self.0.load().is_empty() {
            self.0.store(Arc::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp::RawValue;

    use super::*;

    fn tool(json: &str) -> Arc<ToolDefinition> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        Arc::new(ToolDefinition::parse(&"up".parse().unwrap(), raw).unwrap())
    }

    #[test]
    fn only_what_is_new_is_kept_and_the_oldest_goes_first() {
        let (a, other_a) = (tool(r#"{"name":"a"}"#), tool(r#"{"name":"a","title":"A"}"#));
        let (b, c) = (tool(r#"{"name":"b"}"#), tool(r#"{"name":"c"}"#));
        let seen = Seen::default();
        let main = [Arc::clone(&a)];
        assert!(!seen.add(&[Arc::clone(&a)], &main, 2));
        assert!(seen.add(&[a, Arc::clone(&other_a), Arc::clone(&b)], &main, 2));
        let before = seen.get();
        assert!(!seen.add(&[other_a, b], &main, 2));
        assert!(before.is_identical_to(&seen.get()));
        assert!(seen.add(&[c], &main, 2));
        let seen = seen.get();
        let names: Vec<_> = seen.all().iter().map(|it| it.id.tool().as_str()).collect();
        assert_eq!(names, ["b", "c"]);
    }
}
