//! Which values in a client's file are nobody's business.

use config::{is_secret_name, is_secret_option};
use serde_json::Value;
use url::Url;

use crate::endpoint::KEY_VARIABLE;

/// Members whose texts are secret whatever they are called.
const CONTAINERS: [&str; 4] = ["env", "headers", "http_headers", "requestInit"];

/// Collects what must not be shown: texts under `env` and `headers`, those whose name says what
/// they are, passwords and queries of addresses, and the values of such options.
pub(crate) fn collect(value: &Value, secrets: &mut Vec<String>) {
    collect_inside(value, false, secrets);
    // A reference to our own key gives nothing away.
    secrets.retain(|secret| !secret.contains(KEY_VARIABLE));
}

fn collect_inside(value: &Value, inside: bool, secrets: &mut Vec<String>) {
    match value {
        Value::String(text) if inside => secrets.push(text.clone()),
        Value::String(text) => collect_from_address(text, secrets),
        Value::Array(elements) => {
            collect_from_options(elements, secrets);
            for element in elements {
                collect_inside(element, inside, secrets);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let inside = inside || is_secret_name(name) || CONTAINERS.contains(&name.as_str());
                collect_inside(value, inside, secrets);
            }
        }
        _ => {}
    }
}

/// `--token x` and `--token=x`.
fn collect_from_options(elements: &[Value], secrets: &mut Vec<String>) {
    let mut follows = false;
    for text in elements.iter().filter_map(Value::as_str) {
        let (option, value) = text.split_once('=').unwrap_or((text, ""));
        if follows {
            secrets.push(text.to_owned());
            follows = false;
        } else if is_secret_option(option) {
            follows = value.is_empty();
            secrets.extend((!follows).then(|| value.to_owned()));
        }
    }
}

/// The parts of an address in which keys travel, as they are written.
fn collect_from_address(text: &str, secrets: &mut Vec<String>) {
    let Ok(url) = Url::parse(text) else {
        return;
    };
    secrets.extend(url.password().map(str::to_owned));
    for pair in url.query().unwrap_or_default().split('&') {
        let value = pair.split_once('=').map_or(pair, |(_, value)| value);
        secrets.push(value.to_owned());
    }
}
