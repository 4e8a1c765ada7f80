//! Claude Code. Servers are in its state file, rules in its settings: deny comes before ask, ask
//! before allow, and the first that fits counts. Hints of a server decide nothing.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::Client;
use crate::SERVER_NAME;
use crate::adapter::{
    Adapter, FileEdits, Rules, ServerFile, changing_tools, http_entry, reading_tools, with_type,
};
use crate::document::{Syntax, path};
use crate::edit::Edit;
use crate::endpoint::Endpoint;
use crate::error::ClientFileError;
use crate::file;
use crate::permissions::{OwnTool, Permissions, Verdict};
use crate::places::{Places, Platform};
use crate::references::Dialect;

pub(crate) struct ClaudeCode;

/// The rules of all settings files together.
#[derive(Default)]
struct Settings {
    deny: Vec<String>,
    ask: Vec<String>,
    allow: Vec<String>,
    /// The first that is set, from the strongest file to the weakest.
    mode: Option<String>,
    read: Vec<PathBuf>,
}

impl Adapter for ClaudeCode {
    fn main_file(&self, places: &Places) -> ServerFile {
        ServerFile::json(places.claude_state(), "mcpServers")
    }

    fn other_files(&self, places: &Places) -> Vec<ServerFile> {
        let Some(project) = &places.project else {
            return Vec::new();
        };
        let own = ServerFile {
            servers: path(["projects", &project.to_string_lossy(), "mcpServers"]),
            ..self.main_file(places)
        };
        let shared = ServerFile::json(project.join(".mcp.json"), "mcpServers");
        vec![own.of_project(), shared.of_project()]
    }

    fn dialect(&self) -> Dialect {
        Dialect::BRACES
    }

    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError> {
        let kind = match endpoint {
            Endpoint::Http { .. } => "http",
            Endpoint::Stdio { .. } => "stdio",
        };
        let entry = http_entry(
            "url",
            endpoint,
            Client::ClaudeCode,
            Some("${MCPPROXY_API_KEY}"),
        )?;
        Ok(with_type(kind, entry))
    }

    fn approve_reads(&self, places: &Places) -> Result<Rules, ClientFileError> {
        let rule = |list: &str, tool: &str| Edit::Element {
            path: path(["permissions", list]),
            value: format!("mcp__{SERVER_NAME}__{tool}").into(),
        };
        let allow = reading_tools().map(|tool| rule("allow", tool));
        let ask = changing_tools().map(|tool| rule("ask", tool));
        Ok(Rules {
            files: vec![FileEdits {
                path: places.claude_folder().join("settings.json"),
                syntax: Syntax::Json,
                edits: allow.chain(ask).collect(),
            }],
            ..Rules::default()
        })
    }

    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError> {
        let settings = Settings::read(places)?;
        let permissions = Permissions::judge(|tool| settings.verdict(tool));
        let notes = settings.notes();
        Ok(permissions.read_from(settings.read).noting(notes))
    }
}

impl Settings {
    fn read(places: &Places) -> Result<Self, ClientFileError> {
        let mut settings = Self::default();
        let managed = match places.platform {
            Platform::Linux => "etc/claude-code/managed-settings.json",
            Platform::MacOs => "Library/Application Support/ClaudeCode/managed-settings.json",
        };
        let files = [
            Some(places.system.join(managed)),
            places.in_project(".claude/settings.local.json"),
            places.in_project(".claude/settings.json"),
            Some(places.claude_folder().join("settings.json")),
        ];
        for file in files.into_iter().flatten() {
            if let Some(document) = file::read_document(&file, Syntax::Json)? {
                settings.add(&document.value()["permissions"]);
                settings.read.push(file);
            }
        }
        Ok(settings)
    }

    fn add(&mut self, permissions: &Value) {
        for (name, rules) in [
            ("deny", &mut self.deny),
            ("ask", &mut self.ask),
            ("allow", &mut self.allow),
        ] {
            let written = permissions[name].as_array().into_iter().flatten();
            rules.extend(written.filter_map(|rule| rule.as_str().map(str::to_owned)));
        }
        let mode = permissions["defaultMode"].as_str().map(str::to_owned);
        self.mode = self.mode.take().or(mode);
    }

    fn verdict(&self, tool: OwnTool) -> Verdict {
        let has = |rules: &[String]| rules.iter().any(|rule| fits(rule, tool.name));
        if has(&self.deny) || self.deny.iter().any(|rule| rule == "mcp__*") {
            return Verdict::Denied;
        }
        let mode = self.mode.as_deref();
        if has(&self.ask) {
            return match mode {
                Some("dontAsk") => Verdict::Denied,
                _ => Verdict::Asks,
            };
        }
        match mode {
            Some("bypassPermissions") => Verdict::Silent,
            _ if has(&self.allow) => Verdict::Silent,
            Some("dontAsk") => Verdict::Denied,
            _ => Verdict::Asks,
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for rule in self.allow.iter().chain(&self.ask).chain(&self.deny) {
            if rule.contains('(') && rule.starts_with("mcp__") {
                notes.push(format!(
                    "the rule {rule} is ignored: rules for MCP take no parentheses"
                ));
            } else if is_partial(rule) {
                notes.push(format!(
                    "the rule {rule} is ignored: only a whole tool name or * may follow the server"
                ));
            }
        }
        if self.allow.iter().any(|rule| rule == "mcp__*") {
            notes.push("the rule mcp__* is ignored in allow: it names no server".to_owned());
        }
        if let Some(mode @ ("bypassPermissions" | "dontAsk")) = self.mode.as_deref() {
            notes.push(format!("defaultMode is {mode}"));
        }
        notes
    }
}

/// Whether a rule speaks of one of our tools: the server, all its tools, or this one.
fn fits(rule: &str, tool: &str) -> bool {
    let Some(rest) = rule
        .strip_prefix("mcp__")
        .and_then(|rest| rest.strip_prefix(SERVER_NAME))
    else {
        return false;
    };
    rest.is_empty() || rest == "__*" || rest.strip_prefix("__") == Some(tool)
}

/// Whether a rule has a pattern inside our tools' names, which is not understood.
fn is_partial(rule: &str) -> bool {
    let ours = rule
        .strip_prefix("mcp__")
        .and_then(|rest| rest.strip_prefix(SERVER_NAME));
    ours.is_some_and(|rest| rest.contains('*') && rest != "__*")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdicts(permissions: &Value) -> [Verdict; 6] {
        let mut settings = Settings::default();
        settings.add(permissions);
        Permissions::judge(|tool| settings.verdict(tool)).verdicts
    }

    #[test]
    fn the_first_list_that_fits_counts() {
        use Verdict::{Asks, Denied, Silent};
        assert_eq!(verdicts(&json!({})), [Asks; 6]);
        assert_eq!(verdicts(&json!({"allow": ["mcp__mcpproxy"]})), [Silent; 6]);
        assert_eq!(
            verdicts(&json!({"allow": ["mcp__mcpproxy__*"], "deny": ["mcp__*"]})),
            [Denied; 6]
        );
        let rules = json!({
            "allow": ["mcp__mcpproxy"],
            "ask": ["mcp__mcpproxy__call_tool_write"],
            "deny": ["mcp__mcpproxy__call_tool_destructive"]
        });
        assert_eq!(
            verdicts(&rules),
            [Silent, Silent, Silent, Asks, Denied, Silent]
        );
    }

    #[test]
    fn rules_of_other_servers_and_shapes_that_are_ignored_do_nothing() {
        let rules = json!({"allow": [
            "mcp__*", "mcp__mcpproxy2", "mcp__other__call_tool_read", "mcp__mcpproxy__call_*",
            "mcp__mcpproxy__call_tool_read(name:*)", 7
        ]});
        assert_eq!(verdicts(&rules), [Verdict::Asks; 6]);
        let mut settings = Settings::default();
        settings.add(&rules);
        assert_eq!(settings.notes().len(), 3, "{:?}", settings.notes());
    }

    #[test]
    fn the_mode_decides_what_no_rule_decides() {
        use Verdict::{Asks, Denied, Silent};
        let bypass =
            json!({"defaultMode": "bypassPermissions", "ask": ["mcp__mcpproxy__call_tool_write"]});
        assert_eq!(
            verdicts(&bypass),
            [Silent, Silent, Silent, Asks, Silent, Silent]
        );
        let deny = json!({"defaultMode": "dontAsk", "allow": ["mcp__mcpproxy__call_tool_read"]});
        assert_eq!(
            verdicts(&deny),
            [Denied, Denied, Silent, Denied, Denied, Denied]
        );
    }
}
