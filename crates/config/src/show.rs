//! A config as it may be shown: complete, with every secret masked.

use serde_json::{Map, Value, json};

use crate::duration;
use crate::model::Config;
use crate::save::{Audience, server_entry};
use crate::secret::MASK;

impl Config {
    /// The config with every default filled in, in the shape of the file. Keys, the values of env
    /// and headers, and those of options such as `--token` are `***`, unless they are only a
    /// reference.
    pub fn to_masked_json(&self) -> Value {
        let servers: Map<String, Value> = self
            .mcp_servers
            .iter()
            .map(|server| {
                let mut entry = server_entry(server, Audience::People);
                entry.insert("enabled".into(), server.enabled.into());
                entry.insert("timeout".into(), duration::to_json(server.timeout));
                entry.insert(
                    "max_concurrency".into(),
                    server.max_concurrency.get().into(),
                );
                (server.name.to_string(), Value::Object(entry))
            })
            .collect();
        let overrides: Map<String, Value> = self
            .tool_overrides
            .written()
            .iter()
            .map(|(pattern, tier)| (pattern.clone(), tier.as_str().into()))
            .collect();
        json!({
            "listen": self.listen,
            "data_dir": self.data_dir,
            "api_key": self.api_key.as_ref().map(|_| MASK),
            "require_mcp_auth": self.require_mcp_auth,
            "allow_stdio_over_http": self.allow_stdio_over_http,
            "tool_response_limit": self.tool_response_limit,
            "intent_declaration": {
                "mode": self.intent_declaration.mode,
                "strict_server_validation": self.intent_declaration.strict_server_validation,
                "unannotated": self.intent_declaration.unannotated,
                "distrust": self.distrust.patterns().collect::<Vec<_>>(),
            },
            "tool_overrides": overrides,
            "retrieve_tools": self.retrieve_tools,
            "activity": self.activity,
            "endpoints": self.endpoints,
            "shutdown_grace": duration::to_json(self.shutdown_grace),
            "exit_when_idle": self.exit_when_idle.map(duration::to_json),
            "limits": self.limits,
            "mcpServers": servers,
        })
    }
}
