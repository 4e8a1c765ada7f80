//! Names on `/mcp/direct`: those of tools and prompts begin with the name of their server.

use std::sync::Arc;

use mcp::{Members, RawValue};
use policy::ServerName;
use serde::Deserialize;
use serde_json::value::to_raw_value;
use upstream::Upstream;

const SEPARATOR: &str = "__";

#[derive(Deserialize)]
struct Named {
    name: String,
}

pub(super) fn prefixed(server: &ServerName, name: &str) -> String {
    format!("{server}{SEPARATOR}{name}")
}

/// The upstream that a name belongs to, and what it is called there. A server's name may itself
/// hold the separator; the longest one counts.
pub(super) fn resolve<'n>(
    name: &'n str,
    upstreams: &[Arc<Upstream>],
) -> Option<(Arc<Upstream>, &'n str)> {
    let servers = upstreams.iter().map(|upstream| upstream.name().as_str());
    let (index, rest) = longest(name, servers)?;
    Some((Arc::clone(&upstreams[index]), rest))
}

fn longest<'n, 's>(
    name: &'n str,
    servers: impl Iterator<Item = &'s str>,
) -> Option<(usize, &'n str)> {
    let matching = servers.enumerate().filter_map(|(index, server)| {
        let rest = name.strip_prefix(server)?.strip_prefix(SEPARATOR)?;
        Some((index, rest))
    });
    matching.min_by_key(|(_, rest)| rest.len())
}

/// A definition under its name on this endpoint; everything else in it stays as it was written.
pub(super) fn renamed(server: &ServerName, definition: &RawValue) -> Option<Box<RawValue>> {
    let Named { name } = serde_json::from_str(definition.get()).ok()?;
    with_name(definition, &prefixed(server, &name))
}

/// An object with another `name`.
pub(super) fn with_name(object: &RawValue, name: &str) -> Option<Box<RawValue>> {
    let mut members = Members::parse(object).ok()?;
    members.set("name", to_raw_value(name).ok()?);
    members.to_raw().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_server_that_fits_is_meant() {
        let servers = ["a", "a__b", "c"];
        let resolve = |name| longest(name, servers.into_iter());
        assert_eq!(resolve("a__tool"), Some((0, "tool")));
        assert_eq!(resolve("a__b__tool"), Some((1, "tool")));
        assert_eq!(resolve("c__x__y"), Some((2, "x__y")));
        assert_eq!(resolve("d__tool"), None);
        assert_eq!(resolve("a_tool"), None);
    }

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
