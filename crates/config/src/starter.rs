//! The config file of a first run.

use serde_json::json;

use crate::model::{ActivityConfig, Config};
use crate::save::{Audience, pretty, server_entry};
use crate::server::ServerConfig;

/// The text of a first config file with one upstream, usually the built-in demo.
pub fn starter(demo: &ServerConfig) -> String {
    let default = Config::default();
    let ActivityConfig {
        retention_days,
        max_records,
        max_size_mb,
        max_response_bytes,
        max_argument_bytes: _,
        payloads: _,
    } = default.activity;
    let document = json!({
        "listen": default.listen,
        // Without `unannotated`: that is for the operator to decide, and doctor says so until it is.
        "intent_declaration": {
            "mode": default.intent_declaration.mode,
            "strict_server_validation": default.intent_declaration.strict_server_validation,
        },
        "tool_overrides": {},
        "activity": {
            "retention_days": retention_days,
            "max_records": max_records,
            "max_size_mb": max_size_mb,
            "max_response_bytes": max_response_bytes,
        },
        "mcpServers": { demo.name.as_str(): server_entry(demo, Audience::File) },
    });
    pretty(&document)
}
