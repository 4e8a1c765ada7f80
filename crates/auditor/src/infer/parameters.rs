//! What the parameters of a tool say.

use serde_json::value::RawValue;

use super::name::read_name;
use crate::lexicon::{Deed, Lexicon, Role, Verb};
use crate::schema::{self, Item};
use crate::text::Words;

/// What the parameters of one tool say, each with the name of the first that says it.
#[derive(Debug, Default)]
pub(super) struct ParametersSay {
    pub(super) code: Option<&'static str>,
    pub(super) mutates: Option<&'static str>,
    pub(super) permanent: Option<&'static str>,
    pub(super) soft: Option<&'static str>,
    pub(super) payload: Option<&'static str>,
    /// The worst choice of a parameter that chooses what to do, and that parameter.
    pub(super) worst_choice: Option<(Verb, &'static str)>,
}

impl ParametersSay {
    pub(super) fn read(schema: Option<&RawValue>, lexicon: &'static Lexicon) -> Self {
        let mut says = Self::default();
        let mut key = String::new();
        if let Some(schema) = schema {
            schema::walk(schema, |item| match item {
                Item::Parameter(name) => {
                    snake_case(name, &mut key);
                    says.parameter(&key, lexicon);
                }
                Item::Choice { parameter, value } => {
                    snake_case(parameter, &mut key);
                    says.choice(&key, value, lexicon);
                }
                Item::Text(_) => {}
            });
        }
        // A command that is chosen from a list is an action, not code.
        if let Some((_, parameter)) = says.worst_choice
            && says.code == Some(parameter)
        {
            says.code = None;
        }
        says
    }

    fn parameter(&mut self, key: &str, lexicon: &'static Lexicon) {
        let Some((name, roles)) = lexicon.roles(key) else {
            return;
        };
        for role in roles {
            let place = match role {
                Role::Code => &mut self.code,
                Role::Mutates => &mut self.mutates,
                Role::Permanent => &mut self.permanent,
                Role::Soft => &mut self.soft,
                Role::Payload => &mut self.payload,
                Role::Action => continue,
            };
            place.get_or_insert(name);
        }
    }

    fn choice(&mut self, key: &str, value: &str, lexicon: &'static Lexicon) {
        let Some((name, roles)) = lexicon.roles(key) else {
            return;
        };
        if !roles.contains(&Role::Action) {
            return;
        }
        let words = Words::of_identifier(value);
        let Some(verb) = read_name(&words, &Words::default(), lexicon).verb() else {
            return;
        };
        let worst = self
            .worst_choice
            .map_or(Deed::Analyse, |(verb, _)| verb.deed);
        if self.worst_choice.is_none() || verb.deed > worst {
            self.worst_choice = Some((verb, name));
        }
    }
}

/// `dryRun` and `dry-run` as `dry_run`.
fn snake_case(name: &str, into: &mut String) {
    into.clear();
    let mut before_lower = false;
    for character in name.chars() {
        if character.is_uppercase() && before_lower || character == '-' {
            into.push('_');
        }
        if character != '-' {
            into.extend(character.to_lowercase());
        }
        before_lower = character.is_lowercase() || character.is_numeric();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(properties: &str) -> ParametersSay {
        let schema = format!(r#"{{"properties": {properties}}}"#);
        let schema = RawValue::from_string(schema).unwrap();
        ParametersSay::read(Some(&schema), Lexicon::get())
    }

    #[test]
    fn names_of_every_style_are_known() {
        for name in ["dry_run", "dryRun", "dry-run"] {
            let says = read(&format!(r#"{{"{name}": {{"type": "boolean"}}}}"#));
            assert_eq!(says.mutates, Some("dry_run"));
        }
    }

    #[test]
    fn the_worst_choice_counts() {
        let says = read(r#"{"action": {"enum": ["list", "delete_all", "create"]}}"#);
        let (verb, parameter) = says.worst_choice.unwrap();
        assert_eq!((verb.word, parameter), ("delete", "action"));
        assert!(
            read(r#"{"colour": {"enum": ["delete"]}}"#)
                .worst_choice
                .is_none()
        );
    }

    #[test]
    fn a_command_chosen_from_a_list_is_no_code() {
        assert_eq!(
            read(r#"{"command": {"type": "string"}}"#).code,
            Some("command")
        );
        let chosen = read(r#"{"command": {"enum": ["view", "insert"]}}"#);
        assert_eq!(chosen.code, None);
        assert_eq!(chosen.worst_choice.unwrap().0.word, "insert");
    }
}
