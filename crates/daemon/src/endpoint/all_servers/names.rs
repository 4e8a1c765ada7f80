//! Names where all upstreams are one server: those of tools and prompts begin with the name of their server.

use std::sync::Arc;

use mcp::{Members, RawValue};
use policy::ServerName;
use serde::Deserialize;
use serde_json::value::to_raw_value;
use upstream::{Fleet, Upstream};

const SEPARATOR: &str = "__";

#[derive(Deserialize)]
struct Named {
    name: String,
}

pub(in crate::endpoint) fn prefixed(server: &ServerName, name: &str) -> String {
    format!("{server}{SEPARATOR}{name}")
}

/// The upstream that a name belongs to, and what it is called there. No server's name has the
/// separator in it.
pub(in crate::endpoint) fn resolve<'n>(
    fleet: &Fleet,
    name: &'n str,
) -> Option<(Arc<Upstream>, &'n str)> {
    let (server, own_name) = name.split_once(SEPARATOR)?;
    Some((fleet.get(&server.parse().ok()?)?, own_name))
}

/// A definition under its name there; everything else in it stays as it was written.
pub(in crate::endpoint) fn renamed(
    server: &ServerName,
    definition: &RawValue,
) -> Option<Box<RawValue>> {
    let Named { name } = serde_json::from_str(definition.get()).ok()?;
    with_name(definition, &prefixed(server, &name))
}

/// An object with another `name`.
pub(in crate::endpoint) fn with_name(object: &RawValue, name: &str) -> Option<Box<RawValue>> {
    let mut members = Members::parse(object).ok()?;
    members.set("name", to_raw_value(name).ok()?);
    members.to_raw().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_definition_changes() {
        let raw = r#"{"description": "d","name":"t","inputSchema":{ "x": 1.0 }}"#;
        let raw = RawValue::from_string(raw.to_owned()).unwrap();
        assert_eq!(
            renamed(&"up".parse().unwrap(), &raw).unwrap().get(),
            r#"{"description":"d","name":"up__t","inputSchema":{ "x": 1.0 }}"#
        );
    }
}
