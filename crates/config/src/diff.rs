//! What differs between two configs, so that a reload touches only that.

use policy::ServerName;

use crate::model::Config;
use crate::server::ServerConfig;

/// The difference between an old config and a new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigChange {
    pub servers_added: Vec<ServerConfig>,
    pub servers_removed: Vec<ServerName>,
    pub servers_changed: Vec<ServerChange>,
    /// `intent_declaration` or `tool_overrides`.
    pub policy_changed: bool,
    /// `api_key`, `require_mcp_auth` or `allow_stdio_over_http`.
    pub auth_changed: bool,
    /// `tool_response_limit`, `retrieve_tools` or `endpoints`.
    pub answers_changed: bool,
    pub activity_changed: bool,
    /// What a running daemon cannot take over.
    pub needs_restart: Vec<RestartOnly>,
}

/// An upstream that is in both configs and not the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerChange {
    pub server: ServerConfig,
    /// Whether the connection has to go: the transport changed, or it was switched on or off.
    /// Otherwise the new limits apply to the connection as it is.
    pub reconnect: bool,
}

/// A setting that takes effect only at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartOnly {
    Listen,
    DataDir,
    Limits,
}

impl ConfigChange {
    pub fn between(old: &Config, new: &Config) -> Self {
        let restart_only = [
            (RestartOnly::Listen, old.listen != new.listen),
            (RestartOnly::DataDir, old.data_dir != new.data_dir),
            (RestartOnly::Limits, old.limits != new.limits),
        ];
        Self {
            servers_added: new
                .mcp_servers
                .iter()
                .filter(|server| old.server(&server.name).is_none())
                .cloned()
                .collect(),
            servers_removed: old
                .mcp_servers
                .iter()
                .filter(|server| new.server(&server.name).is_none())
                .map(|server| server.name.clone())
                .collect(),
            servers_changed: new
                .mcp_servers
                .iter()
                .filter_map(|server| ServerChange::between(old.server(&server.name)?, server))
                .collect(),
            policy_changed: old.intent_declaration != new.intent_declaration
                || old.distrust != new.distrust
                || old.tool_overrides != new.tool_overrides,
            auth_changed: old.api_key != new.api_key
                || old.require_mcp_auth != new.require_mcp_auth
                || old.allow_stdio_over_http != new.allow_stdio_over_http,
            answers_changed: old.tool_response_limit != new.tool_response_limit
                || old.retrieve_tools != new.retrieve_tools
                || old.endpoints != new.endpoints,
            activity_changed: old.activity != new.activity,
            needs_restart: restart_only
                .into_iter()
                .filter_map(|(setting, changed)| changed.then_some(setting))
                .collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ServerChange {
    fn between(old: &ServerConfig, new: &ServerConfig) -> Option<Self> {
        (old != new).then(|| Self {
            server: new.clone(),
            reconnect: !old.keeps_connection(new),
        })
    }
}

impl RestartOnly {
    /// The key in the config file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Listen => "listen",
            Self::DataDir => "data_dir",
            Self::Limits => "limits",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const BASE: &str = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"url": "http://h/"}}}"#;

    fn change(new: &str) -> ConfigChange {
        let parse = |text: &str| {
            let loaded = crate::parse(text.as_bytes(), Path::new("x"));
            loaded.unwrap_or_else(|error| panic!("{error}")).config
        };
        ConfigChange::between(&parse(BASE), &parse(new))
    }

    fn with(setting: &str) -> ConfigChange {
        change(&BASE.replacen('{', &format!("{{{setting},"), 1))
    }

    #[test]
    fn the_same_config_is_no_change() {
        assert!(change(BASE).is_empty());
        // Neither the form nor the order is part of what a server is.
        let list =
            r#"{"mcpServers": [{"name": "b", "url": "http://h/"}, {"name": "a", "command": "x"}]}"#;
        assert!(change(list).is_empty());
    }

    #[test]
    fn servers_come_and_go() {
        let change =
            change(r#"{"mcpServers": {"b": {"url": "http://h/"}, "c": {"command": "y"}}}"#);
        let added: Vec<&str> = change
            .servers_added
            .iter()
            .map(|s| s.name.as_str())
            .collect();
        assert_eq!(added, ["c"]);
        assert_eq!(change.servers_removed, ["a".parse().unwrap()]);
        assert_eq!(change.servers_changed, []);
        assert!(!change.policy_changed && !change.auth_changed && !change.activity_changed);
    }

    #[test]
    fn a_limit_changes_without_a_new_connection() {
        let reconnect = |entry: &str| {
            let text =
                format!(r#"{{"mcpServers": {{"a": {entry}, "b": {{"url": "http://h/"}}}}}}"#);
            let change = change(&text);
            let [changed] = change.servers_changed.as_slice() else {
                panic!("{change:?}");
            };
            assert_eq!(changed.server.name.as_str(), "a");
            changed.reconnect
        };
        assert!(!reconnect(r#"{"command": "x", "timeout": 5}"#));
        assert!(!reconnect(r#"{"command": "x", "max_concurrency": 5}"#));
        assert!(reconnect(r#"{"command": "x", "enabled": false}"#));
        assert!(reconnect(r#"{"command": "x", "args": ["y"]}"#));
        assert!(reconnect(r#"{"command": "x", "env": {"A": "b"}}"#));
        assert!(reconnect(r#"{"url": "http://h/"}"#));
    }

    #[test]
    fn every_setting_belongs_to_one_change() {
        let flags = |change: ConfigChange| {
            (
                [
                    change.policy_changed,
                    change.auth_changed,
                    change.answers_changed,
                    change.activity_changed,
                ],
                change.needs_restart,
            )
        };
        for (setting, expected) in [
            (
                r#""tool_overrides": {"a:b": "write"}"#,
                [true, false, false, false],
            ),
            (
                r#""intent_declaration": {"mode": "inferred"}"#,
                [true, false, false, false],
            ),
            (
                r#""api_key": "a key of sixteen""#,
                [false, true, false, false],
            ),
            (r#""require_mcp_auth": true"#, [false, true, false, false]),
            (
                r#""allow_stdio_over_http": true"#,
                [false, true, false, false],
            ),
            (r#""tool_response_limit": 1"#, [false, false, true, false]),
            (
                r#""retrieve_tools": {"schema_budget": 1}"#,
                [false, false, true, false],
            ),
            (
                r#""endpoints": {"direct": false}"#,
                [false, false, true, false],
            ),
            (
                r#""activity": {"max_records": 1}"#,
                [false, false, false, true],
            ),
        ] {
            assert_eq!(flags(with(setting)), (expected, vec![]), "{setting}");
        }
        let listen = with(r#""listen": "127.0.0.1:1""#);
        assert_eq!(flags(listen), ([false; 4], vec![RestartOnly::Listen]));
        let data_dir = with(r#""data_dir": "/d""#);
        assert_eq!(flags(data_dir), ([false; 4], vec![RestartOnly::DataDir]));
    }
}
