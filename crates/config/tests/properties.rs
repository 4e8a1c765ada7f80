//! Laws that hold for every config: saving and loading agree, edits keep what they do not know, and
//! no input is too broken for an error.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use config::{
    Document, HttpProtocol, LoadError, SecretTemplate, ServerConfig, Template, Transport,
};
use policy::{ServerName, Tier, Trust};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value};

fn template() -> impl Strategy<Value = Template> {
    prop_oneof![
        "\\PC{1,12}".prop_map(|text| Template::literal(&text)),
        "[a-z]{0,3}\\$\\{env:[A-Z_]{1,5}\\}[a-z]{0,3}".prop_map(|text| text.parse().unwrap()),
    ]
}

fn secrets(name: &'static str) -> impl Strategy<Value = BTreeMap<String, SecretTemplate>> {
    btree_map(name, template().prop_map(SecretTemplate::from), 0..4)
}

fn transport() -> impl Strategy<Value = Transport> {
    let stdio = (
        template(),
        vec(template(), 0..4),
        secrets("[A-Z_]{1,6}"),
        option::of("/[a-z]{1,8}"),
    )
        .prop_map(|(command, args, env, working_dir)| Transport::Stdio {
            command,
            args,
            env,
            working_dir: working_dir.map(Into::into),
        });
    let http = (
        "https?://[a-z]{1,8}(\\.example)?(:[1-9][0-9]{0,3})?/[a-z]{0,8}(\\?k=\\$\\{env:K\\})?",
        secrets("[A-Za-z][A-Za-z-]{0,8}"),
        prop_oneof![Just(HttpProtocol::Streamable), Just(HttpProtocol::Sse)],
    )
        .prop_map(|(url, headers, protocol)| Transport::Http {
            url: url.parse().unwrap(),
            headers,
            protocol,
        });
    prop_oneof![stdio, http]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1_u64..86_400).prop_map(Duration::from_secs),
        (1_u64..10_000).prop_map(Duration::from_millis),
    ]
}

fn server(name: impl Strategy<Value = String>) -> impl Strategy<Value = ServerConfig> {
    (
        name,
        transport(),
        any::<bool>(),
        option::of(duration()),
        option::of(1_usize..100),
        option::of(duration()),
        any::<bool>(),
    )
        .prop_map(
            |(name, transport, enabled, timeout, concurrency, refresh, pinned)| {
                let mut server = ServerConfig::new(name.parse().unwrap(), transport);
                server.enabled = enabled;
                server.timeout = timeout.unwrap_or(server.timeout);
                if let Some(limit) = concurrency {
                    server.max_concurrency = limit.try_into().unwrap();
                }
                server.refresh_interval = refresh;
                server.trust = if pinned { Trust::Pin } else { Trust::Log };
                server
            },
        )
}

fn servers() -> impl Strategy<Value = Vec<ServerConfig>> {
    vec(server("[a-c][a-z0-9.-]{0,3}".prop_map(String::from)), 0..6)
}

/// JSON that means nothing to mcpproxy.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("\\PC{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn unknown_members() -> impl Strategy<Value = Map<String, Value>> {
    btree_map("x-[a-z]{1,4}", json(), 0..4).prop_map(|members| members.into_iter().collect())
}

fn document(text: &str) -> Document {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Document::load(file.path()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn parse(text: &str) -> config::Loaded {
    config::parse(text.as_bytes(), Path::new("mcp_config.json"))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_saved_loads_as_the_same(
        servers in servers(),
        tiers in btree_map("[a-z]{1,3}:[a-z*?]{1,4}", prop::sample::select(&Tier::ALL[..]), 0..4),
        start in prop::sample::select(&["{}", "{\"mcpServers\": []}", "{\n\t\"mcpServers\": {}\n}"][..]),
    ) {
        let mut document = document(start);
        let mut expected: Vec<ServerConfig> = Vec::new();
        for server in servers {
            document.set_server(&server);
            match expected.iter_mut().find(|known| known.name == server.name) {
                Some(known) => *known = server,
                None => expected.push(server),
            }
        }
        for (pattern, tier) in &tiers {
            document.set_override(pattern, *tier).unwrap();
        }
        let loaded = parse(&document.to_text());
        prop_assert_eq!(loaded.config.mcp_servers, expected);
        let written: BTreeMap<_, _> = loaded.config.tool_overrides.written().iter().cloned().collect();
        prop_assert_eq!(written, tiers);
    }

    #[test]
    fn edits_keep_what_they_do_not_know(
        in_root in unknown_members(),
        in_entry in unknown_members(),
        as_list in any::<bool>(),
        before in server(Just("a".to_owned())),
        after in server(Just("a".to_owned())),
        added in server(Just("b".to_owned())),
    ) {
        let name: ServerName = "a".parse().unwrap();
        let mut seed = document(if as_list { "{\"mcpServers\": []}" } else { "{}" });
        seed.set_server(&before);
        let mut root: Value = serde_json::from_str(&seed.to_text()).unwrap();
        let pointer = if as_list { "/mcpServers/0" } else { "/mcpServers/a" };
        root.pointer_mut(pointer).unwrap().as_object_mut().unwrap().extend(in_entry.clone());
        root.as_object_mut().unwrap().extend(in_root.clone());
        let order: Vec<String> = root.as_object().unwrap().keys().cloned().collect();

        let mut edited = document(&root.to_string());
        edited.set_server(&after);
        edited.set_server(&added);
        let text = edited.to_text();
        prop_assert_eq!(parse(&text).config.mcp_servers, [after, added]);
        let result: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(result["mcpServers"].is_array(), as_list);
        let after_order: Vec<String> = result.as_object().unwrap().keys().cloned().collect();
        prop_assert_eq!(after_order, order);
        for (key, value) in &in_root {
            prop_assert_eq!(&result[key], value);
        }
        for (key, value) in &in_entry {
            prop_assert_eq!(&result.pointer(pointer).unwrap()[key], value);
        }

        let mut edited = document(&text);
        prop_assert!(edited.remove_server(&name));
        let left: BTreeSet<_> = parse(&edited.to_text())
            .config
            .mcp_servers
            .into_iter()
            .map(|server| server.name.to_string())
            .collect();
        prop_assert_eq!(left, BTreeSet::from(["b".to_owned()]));
    }

    #[test]
    fn any_value_in_any_place_is_taken_or_refused_there(
        key in prop::sample::select(&[
            "listen", "data_dir", "api_key", "require_mcp_auth", "tool_response_limit",
            "intent_declaration", "tool_overrides", "retrieve_tools", "activity", "endpoints",
            "shutdown_grace", "exit_when_idle", "limits",
            "mcpServers",
        ][..]),
        value in json(),
    ) {
        let text = Value::Object(Map::from_iter([(key.to_owned(), value)])).to_string();
        if let Err(error) = config::parse(text.as_bytes(), Path::new("x")) {
            let LoadError::Invalid { fault, .. } = error else { panic!("{error}") };
            prop_assert!(fault.path.to_string().starts_with(key), "{}", fault.path);
        }
    }

    #[test]
    fn any_bytes_are_taken_or_refused(bytes in vec(any::<u8>(), 0..64)) {
        let _ = config::parse(&bytes, Path::new("x"));
    }
}

#[test]
fn a_file_cut_anywhere_is_refused_with_a_place() {
    let servers: Vec<String> = (0..16)
        .map(|index| {
            format!(
                "    {{\"name\": \"server-{index}\", \"command\": \"npx\", \"args\": [\"-y\", \"päckage\"],\n      \
                 \"env\": {{\"TOKEN\": \"${{env:TOKEN}}\"}}, \"timeout\": \"30s\", \"enabled\": false}}"
            )
        })
        .collect();
    let text = format!(
        "{{\n  \"listen\": \"127.0.0.1:8080\",\n  \"mcpServers\": [\n{}\n  ]\n}}",
        servers.join(",\n")
    );
    assert!(text.len() > 2_000);
    parse(&text);
    let last_line = text.lines().count();
    for end in 0..text.len() {
        let error = config::parse(&text.as_bytes()[..end], Path::new("x")).unwrap_err();
        let LoadError::Invalid { fault, .. } = error else {
            panic!("{error}");
        };
        assert!((1..=last_line).contains(&fault.position.line), "{fault}");
        assert!(fault.position.column >= 1, "{fault}");
    }
}
