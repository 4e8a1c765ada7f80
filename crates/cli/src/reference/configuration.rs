//! `docs/configuration.md`: every key of the config file, from its JSON Schema.

use serde_json::{Map, Value};

use super::{cell, keep_part};

#[test]
fn the_config_file_is_documented() {
    let schema = config::json_schema();
    let mut rows = Vec::new();
    collect(&schema, &schema, "", &mut rows);
    let mut text = String::from("| key | default | meaning |\n|---|---|---|\n");
    text.push_str(&rows.concat());
    text.push_str("\n### A server\n\n| key | default | meaning |\n|---|---|---|\n");
    let mut rows = Vec::new();
    collect(&schema["$defs"]["Server"], &schema, "", &mut rows);
    text.push_str(&rows.concat());
    keep_part("configuration.md", &text);
}

fn collect(object: &Value, schema: &Value, prefix: &str, rows: &mut Vec<String>) {
    let none = Map::new();
    for (key, property) in object["properties"].as_object().unwrap_or(&none) {
        let key = format!("{prefix}{key}");
        let target = resolve(property, schema);
        if target["properties"].is_object() {
            collect(target, schema, &format!("{key}."), rows);
            continue;
        }
        let meaning = property["description"]
            .as_str()
            .or(target["description"].as_str());
        let choices = words(target, schema);
        let choices = match choices.as_slice() {
            [] => String::new(),
            words => format!(" One of {}.", cell(&words.join(", "))),
        };
        let default = match &property["default"] {
            Value::Null => "–".to_owned(),
            value => format!("`{value}`"),
        };
        let meaning = cell(meaning.unwrap_or_default());
        rows.push(format!("| `{key}` | {default} | {meaning}{choices} |\n"));
    }
}

fn resolve<'a>(property: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = property["$ref"]
        .as_str()
        .or(property["allOf"][0]["$ref"].as_str());
    match reference.and_then(|it| it.strip_prefix("#/")) {
        Some(path) => path.split('/').fold(schema, |value, part| &value[part]),
        None => property,
    }
}

/// The words that an enumeration allows, with what they mean where that is said.
fn words(target: &Value, schema: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().map(|word| format!("`{word}`"));
    let listed = target["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(word);
    let options = target["oneOf"].as_array().into_iter().flatten();
    let described = options.flat_map(|option| {
        let own = option["const"]
            .as_str()
            .map(|word| match option["description"].as_str() {
                Some(meaning) => format!("`{word}` ({})", meaning.trim_end_matches('.')),
                None => format!("`{word}`"),
            });
        let nested = words(resolve(option, schema), &Value::Null);
        own.into_iter().chain(if option["const"].is_null() {
            nested
        } else {
            Vec::new()
        })
    });
    listed.chain(described).collect()
}
