//! The config as it would be with other settings, for asking what would have happened then.

use std::path::Path;

use policy::{ServerName, Trust};
use serde_json::{Map, Value, json};

use crate::error::LoadError;
use crate::load;
use crate::model::Config;
use crate::warning::{Warning, WarningKind};

const INTENT: &str = "intent_declaration";
const OVERRIDES: &str = "tool_overrides";
const SERVERS: &str = "mcpServers";
const TRUST: &str = ".trust";

/// Why a setting cannot be tried out.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    #[error(
        "'{path}' does not decide about calls; use intent_declaration.…, tool_overrides.PATTERN or \
         mcpServers.NAME.trust"
    )]
    NotPolicy { path: String },
    #[error("{}", unknown(.0))]
    UnknownKey(Warning),
    #[error("{}; {}", reason(.0), .0.help())]
    Invalid(#[source] Box<LoadError>),
    #[error("there is no server '{name}' in the config")]
    UnknownServer { name: String },
    #[error("the trust of a server is \"log\" or \"pin\"")]
    Trust,
}

impl Config {
    /// This config with other values for settings that decide about calls, by their paths in the
    /// file. `null` takes a setting back to its default, and an override away.
    pub fn what_if<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> Result<Self, WhatIfError> {
        let mut config = self.clone();
        let mut document = self.policy_document();
        for (path, value) in changes {
            let not_policy = || WhatIfError::NotPolicy {
                path: path.to_owned(),
            };
            // A pattern may have dots in it, so only the first one divides.
            let (section, key) = path.split_once('.').ok_or_else(not_policy)?;
            match section {
                INTENT | OVERRIDES => put(&mut document, section, key, value),
                SERVERS => {
                    let name = key.strip_suffix(TRUST).ok_or_else(not_policy)?;
                    config.set_trust(name, value)?;
                }
                _ => return Err(not_policy()),
            }
        }
        let text = Value::Object(document).to_string();
        let loaded = load::parse(text.as_bytes(), Path::new("the changed settings"));
        let loaded = loaded.map_err(|error| WhatIfError::Invalid(Box::new(error)))?;
        if let Some(warning) = loaded.warnings.into_iter().next() {
            return Err(WhatIfError::UnknownKey(warning));
        }
        config.intent_declaration = loaded.config.intent_declaration;
        config.distrust = loaded.config.distrust;
        config.tool_overrides = loaded.config.tool_overrides;
        Ok(config)
    }

    /// What decides about calls, as the file would say it.
    fn policy_document(&self) -> Map<String, Value> {
        let rules = &self.intent_declaration;
        let distrust: Vec<_> = self.distrust.patterns().collect();
        let overrides = self.tool_overrides.written().iter();
        let overrides: Map<String, Value> = overrides
            .map(|(pattern, tier)| (pattern.clone(), tier.as_str().into()))
            .collect();
        let intent = json!({
            "mode": rules.mode,
            "strict_server_validation": rules.strict_server_validation,
            "unannotated": rules.unannotated,
            "distrust": distrust,
        });
        Map::from_iter([
            (INTENT.to_owned(), intent),
            (OVERRIDES.to_owned(), overrides.into()),
        ])
    }

    fn set_trust(&mut self, name: &str, value: &Value) -> Result<(), WhatIfError> {
        let unknown = || WhatIfError::UnknownServer {
            name: name.to_owned(),
        };
        let parsed: ServerName = name.parse().map_err(|_| unknown())?;
        let mut servers = self.mcp_servers.iter_mut();
        let server = servers
            .find(|server| server.name == parsed)
            .ok_or_else(unknown)?;
        server.trust = match value {
            Value::Null => Trust::default(),
            value => serde_json::from_value(value.clone()).map_err(|_| WhatIfError::Trust)?,
        };
        Ok(())
    }
}

// The lines and columns are those of a document that nobody wrote.

fn unknown(warning: &Warning) -> String {
    let path = &warning.path;
    match &warning.kind {
        WarningKind::UnknownKey {
            suggestion: Some(key),
        } => format!("there is no setting `{path}`; did you mean `{key}`?"),
        WarningKind::UnknownKey { suggestion: None } => {
            format!("there is no setting `{path}`")
        }
        WarningKind::NoEffect { .. } | WarningKind::NotExpanded { .. } => warning.to_string(),
    }
}

fn reason(error: &LoadError) -> String {
    match error {
        LoadError::Invalid { fault, .. } => format!("{}: {}", fault.path, fault.problem),
        LoadError::Unreadable { .. } | LoadError::Exposed { .. } => error.why(),
    }
}

fn put(document: &mut Map<String, Value>, section: &str, key: &str, value: &Value) {
    let Some(Value::Object(section)) = document.get_mut(section) else {
        return;
    };
    if value.is_null() {
        section.shift_remove(key);
    } else {
        section.insert(key.to_owned(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use policy::{IntentMode, Tier, Unannotated};

    use super::*;

    fn config() -> Config {
        let text = br#"{"intent_declaration": {"mode": "inferred", "distrust": ["acme-*"]},
            "tool_overrides": {"a:x.y": "write"}, "mcpServers": {"a": {"command": "x"}}}"#;
        load::parse(text, Path::new("x")).unwrap().config
    }

    fn what_if(changes: &[(&str, Value)]) -> Result<Config, WhatIfError> {
        config().what_if(changes.iter().map(|(path, value)| (*path, value)))
    }

    #[test]
    fn no_change_is_the_config_itself() {
        assert_eq!(what_if(&[]).unwrap(), config());
    }

    #[test]
    fn only_what_is_named_changes() {
        let changed = what_if(&[
            ("intent_declaration.unannotated", json!("infer")),
            ("tool_overrides.b:v1.*", json!("destructive")),
            ("mcpServers.a.trust", json!("pin")),
        ])
        .unwrap();
        assert_eq!(changed.intent_declaration.unannotated, Unannotated::Infer);
        assert_eq!(changed.intent_declaration.mode, IntentMode::Inferred);
        assert_eq!(changed.distrust, config().distrust);
        let written = changed.tool_overrides.written();
        assert_eq!(written[0], ("a:x.y".to_owned(), Tier::Write));
        assert_eq!(written[1], ("b:v1.*".to_owned(), Tier::Destructive));
        assert_eq!(changed.mcp_servers[0].trust, Trust::Pin);
    }

    #[test]
    fn null_takes_a_setting_away() {
        let changed = what_if(&[
            ("tool_overrides.a:x.y", Value::Null),
            ("intent_declaration.mode", Value::Null),
        ])
        .unwrap();
        assert_eq!(changed.tool_overrides.written(), []);
        assert_eq!(changed.intent_declaration.mode, IntentMode::TwoKey);
    }

    #[test]
    fn what_cannot_be_tried_out_says_why() {
        for (path, value, expected) in [
            ("listen", json!("x"), "does not decide about calls"),
            (
                "activity.max_records",
                json!(1),
                "does not decide about calls",
            ),
            (
                "mcpServers.a.command",
                json!("x"),
                "does not decide about calls",
            ),
            ("mcpServers.b.trust", json!("pin"), "no server 'b'"),
            ("mcpServers.a.trust", json!("blind"), "\"log\" or \"pin\""),
            (
                "intent_declaration.unanotated",
                json!("infer"),
                "did you mean `unannotated`?",
            ),
            (
                "intent_declaration.unannotated",
                json!("guess"),
                "trust, infer, deny",
            ),
            ("tool_overrides.a:*", json!("harmless"), "read_only, write"),
            ("tool_overrides.nonsense", json!("write"), "server:tool"),
        ] {
            let message = what_if(&[(path, value)]).unwrap_err().to_string();
            assert!(message.contains(expected), "{path}: {message}");
            assert!(!message.contains("column"), "{path}: {message}");
        }
    }
}
