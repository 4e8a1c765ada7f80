//! Gemini CLI. Servers are in its settings, rules in a folder of policies, where the highest
//! priority wins. A server that is trusted is never asked about.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::Client;
use crate::SERVER_NAME;
use crate::adapter::{
    Adapter, FileEdits, Rules, ServerFile, changing_tools, http_entry, object, reading_tools,
};
use crate::document::{Syntax, path};
use crate::edit::Edit;
use crate::endpoint::Endpoint;
use crate::error::ClientFileError;
use crate::file;
use crate::permissions::{OwnTool, Permissions, Verdict};
use crate::places::Places;
use crate::references::Dialect;

const POLICIES: &str = ".gemini/policies";
const ALLOW_PRIORITY: u16 = 200;
const ASK_PRIORITY: u16 = 300;

pub(crate) struct Gemini;

impl Adapter for Gemini {
    fn main_file(&self, places: &Places) -> ServerFile {
        ServerFile::json(places.home.join(".gemini/settings.json"), "mcpServers")
    }

    fn other_files(&self, places: &Places) -> Vec<ServerFile> {
        let file = places.in_project(".gemini/settings.json");
        let file = file.map(|file| ServerFile::json(file, "mcpServers").of_project());
        file.into_iter().collect()
    }

    fn dialect(&self) -> Dialect {
        Dialect::SHELL
    }

    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError> {
        http_entry(
            "httpUrl",
            endpoint,
            Client::Gemini,
            Some("$MCPPROXY_API_KEY"),
        )
    }

    fn approve_reads(&self, places: &Places) -> Result<Rules, ClientFileError> {
        let allow = reading_tools().map(|tool| rule(tool, "allow", ALLOW_PRIORITY));
        let ask = changing_tools().map(|tool| rule(tool, "ask_user", ASK_PRIORITY));
        Ok(Rules {
            files: vec![FileEdits {
                path: places.home.join(POLICIES).join("mcpproxy.toml"),
                syntax: Syntax::Toml,
                edits: allow.chain(ask).collect(),
            }],
            ..Rules::default()
        })
    }

    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError> {
        let mut read = Vec::new();
        let mut trusted = false;
        for file in [vec![self.main_file(places)], self.other_files(places)].concat() {
            if let Some(document) = file::read_document(&file.path, file.syntax)? {
                let entry = document.get(&file.own_entry()).ok().flatten();
                trusted |= entry.is_some_and(|entry| entry["trust"] == true);
                read.push(file.path);
            }
        }
        let mut rules: Vec<Value> = Vec::new();
        for file in policy_files(places) {
            if let Some(document) = file::read_document(&file, Syntax::Toml)? {
                rules.extend(
                    document.value()["rule"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .cloned(),
                );
                read.push(file);
            }
        }
        let permissions = Permissions::judge(|tool| {
            if trusted {
                Verdict::Silent
            } else {
                verdict(&rules, tool)
            }
        });
        let trust = trusted.then(|| "trust is true: every tool runs unasked".to_owned());
        let conditional = rules
            .iter()
            .any(|rule| speaks_of_us(rule) && is_conditional(rule));
        let conditional =
            conditional.then(|| "rules that look at the arguments are not counted here".to_owned());
        Ok(permissions
            .read_from(read)
            .noting(trust)
            .noting(conditional))
    }
}

/// One rule per tool: several in one rule are not documented for tools of a server.
fn rule(tool: &str, decision: &str, priority: u16) -> Edit {
    Edit::Element {
        path: path(["rule"]),
        value: Value::Object(object([
            ("mcpName", SERVER_NAME.into()),
            ("toolName", tool.into()),
            ("decision", decision.into()),
            ("priority", priority.into()),
        ])),
    }
}

/// In the order of their names. A folder that is not there has none.
fn policy_files(places: &Places) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(places.home.join(POLICIES));
    let entries = folder.into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    files
}

fn verdict(rules: &[Value], tool: OwnTool) -> Verdict {
    let fitting = rules
        .iter()
        .filter(|rule| fits(rule, tool) && !is_conditional(rule));
    let strongest = fitting.max_by_key(|rule| rule["priority"].as_i64().unwrap_or_default());
    match strongest.and_then(|rule| rule["decision"].as_str()) {
        Some("allow") => Verdict::Silent,
        Some("deny") => Verdict::Denied,
        _ => Verdict::Asks,
    }
}

fn speaks_of_us(rule: &Value) -> bool {
    let is_it = |name: &Value| name == SERVER_NAME || name == "*";
    match &rule["mcpName"] {
        Value::Array(names) => names.iter().any(is_it),
        name => is_it(name),
    }
}

fn fits(rule: &Value, tool: OwnTool) -> bool {
    let is_it = |name: &Value| name == tool.name || name == "*";
    let by_name = match &rule["toolName"] {
        Value::Null => true,
        Value::Array(names) => names.iter().any(is_it),
        name => is_it(name),
    };
    let by_hints = match &rule["toolAnnotations"]["readOnlyHint"] {
        Value::Bool(reads) => *reads == tool.reads,
        _ => true,
    };
    speaks_of_us(rule) && by_name && by_hints
}

fn is_conditional(rule: &Value) -> bool {
    ["argsPattern", "commandPrefix", "commandRegex", "modes"]
        .iter()
        .any(|condition| !rule[*condition].is_null())
}
