//! What is done to a thing: a request to write a document is not answered by reading one, though
//! both texts are about documents.

use std::sync::LazyLock;

use crate::hash::HashMap;
use crate::text::{self, Role};
use crate::tool::ToolDefinition;
use crate::word_list;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Look,
    Change,
    Remove,
}

/// Actions by the stems of the words for them.
static ACTIONS: LazyLock<HashMap<String, Action>> =
    LazyLock::new(|| parse(include_str!("../data/action_words.txt")));

impl Action {
    /// What a word stands for, by its stem.
    pub(crate) fn of_stem(stem: &str) -> Option<Self> {
        ACTIONS.get(stem).copied()
    }

    /// What a tool does: its name says so, or the word with which its description begins.
    pub(crate) fn of_tool(tool: &ToolDefinition) -> Option<Self> {
        Self::among_first(tool.id.tool().as_str(), usize::MAX)
            .or_else(|| Self::among_first(&tool.description, 1))
    }

    /// The first action among the first `words` of a text.
    fn among_first(text: &str, words: usize) -> Option<Self> {
        let mut action = None;
        let mut seen = 0;
        text::for_each_word(text, |word, role| {
            if role != Role::Whole && seen < words {
                seen += 1;
                action = action.or_else(|| Self::of_stem(&text::stem(word)));
            }
        });
        action
    }

    fn named(kind: &str) -> Option<Self> {
        match kind {
            "look" => Some(Self::Look),
            "change" => Some(Self::Change),
            "remove" => Some(Self::Remove),
            _ => None,
        }
    }
}

fn parse(list: &str) -> HashMap<String, Action> {
    let mut actions = HashMap::default();
    for mut line in word_list::lines(list) {
        if let Some(action) = line.next().and_then(Action::named) {
            actions.extend(line.map(|word| (text::stem(word), action)));
        }
    }
    actions
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn of(name: &str, description: &str) -> Option<Action> {
        let definition = json!({"name": name, "description": description});
        let raw = RawValue::from_string(definition.to_string()).unwrap();
        Action::of_tool(&ToolDefinition::parse(&"notes".parse().unwrap(), raw).unwrap())
    }

    #[test]
    fn the_name_says_what_a_tool_does_and_else_the_description() {
        assert_eq!(of("notes_list", "Deletes nothing."), Some(Action::Look));
        assert_eq!(of("createNote", ""), Some(Action::Change));
        assert_eq!(of("bin", "Purges the bin."), Some(Action::Remove));
        assert_eq!(of("bin", "The bin, which purges itself."), None);
        assert_eq!(of("bin", ""), None);
    }

    #[test]
    fn no_word_stands_for_two_actions() {
        let list = include_str!("../data/action_words.txt");
        let lines: Vec<Vec<&str>> = word_list::lines(list).map(Iterator::collect).collect();
        let words: usize = lines.iter().map(|line| line.len().saturating_sub(1)).sum();
        assert_eq!(ACTIONS.len(), words);
        assert!(
            lines
                .iter()
                .all(|line| line.is_empty() || Action::named(line[0]).is_some())
        );
    }
}
