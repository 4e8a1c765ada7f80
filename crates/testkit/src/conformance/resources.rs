//! What can be read.

use mcp::{ErrorObject, codes};
use serde_json::{Value, json};

use super::answers::{Answer, IMAGE};
use super::skills;

pub(super) fn list() -> Value {
    let mut resources = vec![
        resource("test://static-text", "Static text", "text/plain"),
        resource("test://static-binary", "Static binary", "image/png"),
        resource("test://watched-resource", "Watched resource", "text/plain"),
    ];
    resources.extend(skills::resources());
    json!({ "resources": resources })
}

pub(super) fn templates() -> Value {
    json!({"resourceTemplates": [{
        "uriTemplate": "test://template/{id}/data",
        "name": "Template",
        "description": "Data by its id",
        "mimeType": "application/json",
    }]})
}

pub(super) fn read(params: &Value) -> Answer {
    let uri = params["uri"].as_str().unwrap_or_default();
    let mut contents = match uri {
        "test://static-text" => json!({
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        }),
        "test://static-binary" => json!({"mimeType": "image/png", "blob": IMAGE}),
        "test://watched-resource" => json!({"mimeType": "text/plain", "text": "Watched."}),
        _ => match skills::read(uri) {
            Some(contents) => contents,
            None => from_template(uri)?,
        },
    };
    contents["uri"] = uri.into();
    Ok(json!({"contents": [contents]}))
}

fn from_template(uri: &str) -> Answer {
    let id = uri
        .strip_prefix("test://template/")
        .and_then(|rest| rest.strip_suffix("/data"))
        .ok_or_else(|| ErrorObject::new(codes::RESOURCE_NOT_FOUND, "Resource not found"))?;
    let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
    Ok(json!({"mimeType": "application/json", "text": data.to_string()}))
}

fn resource(uri: &str, name: &str, mime_type: &str) -> Value {
    json!({"uri": uri, "name": name, "description": name, "mimeType": mime_type})
}
