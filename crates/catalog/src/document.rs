//! A tool as the search sees it: which terms occur how often in which field, and what it means.

use std::sync::Arc;

use serde_json::Value;

use crate::action::Action;
use crate::bm25::{Field, PerField};
use crate::embedding::{Embedding, EmbeddingSum};
use crate::hash::HashMap;
use crate::text::{self, Role};
use crate::tool::ToolDefinition;
use crate::word_list;
use crate::word_piece;

/// Parameters nested deeper say little about what a tool is for.
const PARAMETER_DEPTH: usize = 4;

/// Longer enumerations are lists of countries or the like, which no tool is for.
const MOST_VALUES: usize = 64;

/// Descriptions begin with what a tool does. What follows is how to use it, and takes the sum of
/// all its words away from there.
const MEANINGFUL_TOKENS: usize = 32;

/// The analysed text of one tool. It does not depend on any other tool, so it is kept as long as
/// the tool's definition stays the same.
#[derive(Debug)]
pub(crate) struct Document {
    /// In no particular order.
    pub(crate) terms: Box<[(Arc<str>, PerField<u8>)]>,
    pub(crate) lengths: PerField<u32>,
    /// What the tool does, if its text says so.
    pub(crate) action: Option<Action>,
}

/// Turns definitions into documents. It remembers every word it has met, because the same few
/// thousand words make up all descriptions and stemming is the dearest step.
#[derive(Debug, Default)]
pub(crate) struct Analyzer {
    words: HashMap<Box<str>, Option<Word>>,
}

/// A word that is not a function word.
#[derive(Debug)]
struct Word {
    term: Arc<str>,
    /// Its rows in the token table.
    rows: Box<[u32]>,
}

#[derive(Default)]
struct Counter {
    frequencies: HashMap<Arc<str>, PerField<u8>>,
    lengths: PerField<u32>,
}

impl Analyzer {
    pub(crate) fn analyze(&mut self, tool: &ToolDefinition) -> Document {
        let mut counter = Counter::default();
        self.count(&mut counter, Field::Name, tool.id.tool().as_str());
        self.count(&mut counter, Field::Server, tool.id.server().as_str());
        self.count(&mut counter, Field::Description, &tool.description);
        if let Some(title) = &tool.title {
            self.count(&mut counter, Field::Description, title);
        }
        let schema = tool.input_schema.as_ref();
        // A schema that nests too deep to be read is still a tool that can be found and called.
        if let Some(schema) = schema.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            self.count_parameters(&mut counter, &schema, PARAMETER_DEPTH);
        }
        Document {
            terms: counter.frequencies.into_iter().collect(),
            lengths: counter.lengths,
            action: Action::of_tool(tool),
        }
    }

    fn count_parameters(&mut self, counter: &mut Counter, schema: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (name, property) in properties {
                self.count(counter, Field::ParameterName, name);
                if let Some(Value::String(description)) = property.get("description") {
                    self.count(counter, Field::ParameterDescription, description);
                }
                let values = property.get("enum").and_then(Value::as_array);
                let values = values.into_iter().flatten().take(MOST_VALUES);
                for value in values.filter_map(Value::as_str) {
                    self.count(counter, Field::ParameterDescription, value);
                }
                self.count_parameters(counter, property, depth);
            }
        }
        if let Some(items) = schema.get("items") {
            self.count_parameters(counter, items, depth);
        }
    }

    fn count(&mut self, counter: &mut Counter, field: Field, text: &str) {
        let field = field as usize;
        text::for_each_word(text, |word, _| {
            if let Some(Word { term, .. }) = self.word(word) {
                counter.lengths[field] = counter.lengths[field].saturating_add(1);
                let frequency = match counter.frequencies.get_mut(term) {
                    Some(frequencies) => &mut frequencies[field],
                    None => &mut counter.frequencies.entry(Arc::clone(term)).or_default()[field],
                };
                *frequency = frequency.saturating_add(1);
            }
        });
    }

    /// What a tool is for: its server, its name, its title and how its description begins.
    pub(crate) fn embed(&mut self, tool: &ToolDefinition) -> Embedding {
        let mut sum = EmbeddingSum::new();
        self.add_meaning(&mut sum, tool.id.server().as_str(), usize::MAX);
        self.add_meaning(&mut sum, tool.id.tool().as_str(), usize::MAX);
        if let Some(title) = &tool.title {
            self.add_meaning(&mut sum, title, usize::MAX);
        }
        self.add_meaning(&mut sum, &tool.description, MEANINGFUL_TOKENS);
        sum.finish()
    }

    fn add_meaning(&mut self, sum: &mut EmbeddingSum, text: &str, mut most: usize) {
        let mut parts = 0;
        text::for_each_word(text, |word, role| {
            // A compound counts once: as its parts if it has any, which are the better known.
            parts = match role {
                Role::Part => parts + 1,
                Role::Whole if parts > 0 => {
                    parts = 0;
                    return;
                }
                Role::Whole | Role::Single => 0,
            };
            let rows = self.word(word).map_or(&[][..], |word| &word.rows);
            for row in rows.iter().take(most) {
                sum.add(*row, 1.0);
            }
            most = most.saturating_sub(rows.len());
        });
    }

    fn word(&mut self, word: &str) -> Option<&Word> {
        if !self.words.contains_key(word) {
            let meaningful = !word_list::is_function_word(word);
            let known = meaningful.then(|| Word {
                term: text::stem(word).into(),
                rows: word_piece::rows(word).into(),
            });
            self.words.insert(word.into(), known);
        }
        self.words.get(word)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn frequencies(document: &Document, term: &str) -> PerField<u8> {
        let found = document.terms.iter().find(|(known, _)| **known == *term);
        found.map_or_else(PerField::default, |(_, frequencies)| *frequencies)
    }

    fn analyze(definition: &Value) -> Document {
        let raw = RawValue::from_string(definition.to_string()).unwrap();
        let tool = ToolDefinition::parse(&"issue-tracker".parse().unwrap(), raw).unwrap();
        Analyzer::default().analyze(&tool)
    }

    #[test]
    fn each_field_is_counted_apart() {
        let document = analyze(&json!({
            "name": "list_issues",
            "title": "Issue list",
            "description": "Lists the issues.",
            "inputSchema": {"properties": {"issue_state": {"description": "Of the issue."}}},
        }));
        assert_eq!(frequencies(&document, "issu"), [1, 2, 1, 1, 1]);
        assert_eq!(frequencies(&document, "list"), [1, 2, 0, 0, 0]);
        assert_eq!(frequencies(&document, "the"), [0; 5]);
        assert_eq!(document.lengths, [2, 4, 2, 2, 1]);
    }

    #[test]
    fn nested_parameters_count_and_odd_schemas_do_not() {
        let nested = json!({"properties": {"inner": {"items": {"properties": {"deepest": 1}}}}});
        let document = analyze(&json!({"name": "x1", "inputSchema": nested}));
        assert_eq!(frequencies(&document, "deepest"), [0, 0, 0, 1, 0]);
        for odd in [
            json!(true),
            json!({"properties": [1]}),
            json!({"items": [[]]}),
        ] {
            let document = analyze(&json!({"name": "x1", "inputSchema": odd}));
            assert_eq!(document.lengths[Field::ParameterName as usize], 0);
        }
    }

    #[test]
    fn the_values_of_an_enumeration_describe_their_parameter() {
        let schema = json!({"properties": {"unit": {"enum": ["celsius", 7, null]}}});
        let document = analyze(&json!({"name": "x1", "inputSchema": schema}));
        assert_eq!(frequencies(&document, "celsius"), [0, 0, 0, 0, 1]);
        let values: Vec<_> = (0..1_000).map(|number| format!("v{number}x")).collect();
        let schema = json!({"properties": {"many": {"enum": values}}});
        let document = analyze(&json!({"name": "x1", "inputSchema": schema}));
        assert!(document.lengths[Field::ParameterDescription as usize] < 200);
    }

    #[test]
    fn a_word_repeated_without_end_saturates() {
        let document = analyze(&json!({"name": "x1", "description": "zinc ".repeat(1_000)}));
        assert_eq!(frequencies(&document, "zinc"), [0, 255, 0, 0, 0]);
    }
}
