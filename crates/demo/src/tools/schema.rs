//! The input schemas, made from the very types that arguments are parsed into.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The JSON Schema (2020-12) of a tool's arguments, self-contained.
pub(super) fn input_schema<Arguments: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<Arguments>();
    RecursiveTransform(offer_no_null).transform(&mut schema);
    RecursiveTransform(join_lines).transform(&mut schema);
    // The name of a Rust type tells a client nothing.
    schema.remove("title");
    // Some clients want it even where there is nothing to list.
    let object = schema.ensure_object();
    object
        .entry("properties")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    schema.to_value()
}

/// An argument that may be left out may also be `null`, but there is no reason to suggest it.
fn offer_no_null(schema: &mut Schema) {
    let Some(Value::Array(types)) = schema.get_mut("type") else {
        return;
    };
    types.retain(|name| name != "null");
    if let [only] = types.as_slice() {
        let only = only.clone();
        schema.insert("type".into(), only);
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

/// Doc comments are wrapped to fit the source, which no reader of a description cares about.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

/// The names of the arguments, for a message about wrong ones.
pub(super) fn summary(schema: &Value) -> String {
    let required = schema["required"].as_array();
    let names: Vec<_> = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .map(|name| match required {
            Some(required) if required.iter().any(|other| other == name) => {
                format!("{name} (required)")
            }
            _ => name.clone(),
        })
        .collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}
