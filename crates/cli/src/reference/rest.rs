//! `docs/rest.md` and `docs/openapi.json`: every route, from the attributes above the handlers.

use serde_json::{Map, Value};

use super::{cell, keep, keep_part};

#[test]
fn the_rest_api_is_documented() {
    let document = daemon::api_document();
    keep("openapi.json", &format!("{document:#}\n"));
    let mut text = String::new();
    for tag in document["tags"].as_array().unwrap() {
        let description = tag["description"].as_str().unwrap();
        text.push_str(&format!("\n## {description}\n"));
        for (path, method, operation) in operations(&document) {
            if operation["tags"][0] == tag["name"] {
                describe(path, method, operation, &document, &mut text);
            }
        }
    }
    text.push_str("\n## Shapes\n\nWhat `data` and bodies are made of.\n");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let members = members(schema, &document);
        if !name.starts_with("Answer_") && !members.is_empty() {
            text.push_str(&format!("\n### {name}\n\n{}", table("member", &members)));
        }
    }
    keep_part("rest.md", &text);
}

fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (path, method, operation))
    })
}

fn describe(path: &str, method: &str, operation: &Value, document: &Value, text: &mut String) {
    let said = |member: &str| operation[member].as_str().unwrap_or_default();
    let summary = said("summary").trim_end_matches('.');
    text.push_str(&format!(
        "\n### `{} {path}`\n\n{summary}.\n",
        method.to_uppercase()
    ));
    if !said("description").is_empty() {
        text.push_str(&format!("{}\n", said("description")));
    }
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameters: Vec<(String, String)> = parameters
        .map(|parameter| {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            let words = words(&parameter["schema"], document);
            let meaning = parameter["description"].as_str().unwrap_or_default();
            (name, format!("{meaning}{words}"))
        })
        .collect();
    if !parameters.is_empty() {
        text.push_str(&format!("\n{}", table("parameter", &parameters)));
    }
    let content = operation["requestBody"]["content"]
        .as_object()
        .into_iter()
        .flatten();
    for (_, content) in content {
        text.push_str(&format!("\nBody: {}.\n", kind(&content["schema"])));
    }
    let responses = operation["responses"].as_object().into_iter().flatten();
    let mut responses: Vec<(String, String)> = responses
        .map(|(status, response)| {
            let description = response["description"].as_str().unwrap_or_default();
            let answer = response["content"]["application/json"]["schema"]["$ref"].as_str();
            let data = answer
                .and_then(|it| it.split_once("Answer_"))
                .map(|(_, data)| data);
            let data = data.map(|data| format!(" `data`: {data}."));
            (
                status.clone(),
                format!("{description}{}", data.unwrap_or_default()),
            )
        })
        .collect();
    responses.sort();
    text.push_str(&format!("\n{}", table("status", &responses)));
}

fn table(first: &str, rows: &[(String, String)]) -> String {
    let rows = rows
        .iter()
        .map(|(name, meaning)| format!("| `{name}` | {} |\n", cell(meaning)));
    format!(
        "| {first} | meaning |\n|---|---|\n{}",
        rows.collect::<String>()
    )
}

/// The members of an object with their types, and the words of an enumeration.
fn members(schema: &Value, document: &Value) -> Vec<(String, String)> {
    let none = Map::new();
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let inherited = parts.flat_map(|part| members(resolve(part, document), document));
    let own = schema["properties"]
        .as_object()
        .unwrap_or(&none)
        .iter()
        .map(|(name, property)| {
            let meaning = property["description"].as_str().unwrap_or_default();
            let space = if meaning.is_empty() { "" } else { " " };
            (name.clone(), format!("{}.{space}{meaning}", kind(property)))
        });
    inherited.chain(own).collect()
}

fn resolve<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|it| it.strip_prefix("#/")) {
        Some(path) => path.split('/').fold(document, |value, part| &value[part]),
        None => schema,
    }
}

/// A type in a few words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(options) = schema["oneOf"].as_array() {
        return options.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds.collect::<Vec<_>>().join(" or ")
        }
        Value::String(kind) if kind == "array" => {
            format!("array of {}", self::kind(&schema["items"]))
        }
        Value::String(kind) => kind.clone(),
        _ => "anything".to_owned(),
    }
}

fn words(schema: &Value, document: &Value) -> String {
    let words = resolve(schema, document)["enum"]
        .as_array()
        .into_iter()
        .flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    if words.is_empty() {
        String::new()
    } else {
        format!(" One of {}.", words.join(", "))
    }
}
