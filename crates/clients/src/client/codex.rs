//! Codex. It goes by our hints unless an entry says otherwise, for the server or for one tool.

use serde_json::{Map, Value};

use super::Client;
use crate::adapter::{Adapter, Rules, ServerFile, changing_tools, http_entry, object};
use crate::document::{Syntax, path};
use crate::edit::Edit;
use crate::endpoint::{Endpoint, KEY_VARIABLE};
use crate::error::ClientFileError;
use crate::file;
use crate::permissions::{OwnTool, Permissions, Verdict};
use crate::places::Places;
use crate::references::Dialect;
use crate::servers::Scope;

const SERVERS: &str = "mcp_servers";
const DEFAULT_MODE: &str = "default_tools_approval_mode";
const TOOLS: &str = "tools";
const TOOL_MODE: &str = "approval_mode";

pub(crate) struct Codex;

impl Adapter for Codex {
    fn main_file(&self, places: &Places) -> ServerFile {
        ServerFile {
            path: places.codex_folder().join("config.toml"),
            syntax: Syntax::Toml,
            servers: path([SERVERS]),
            scope: Scope::User,
        }
    }

    fn other_files(&self, places: &Places) -> Vec<ServerFile> {
        let file = places
            .in_project(".codex/config.toml")
            .map(|file| ServerFile {
                path: file,
                ..self.main_file(places).of_project()
            });
        file.into_iter().collect()
    }

    fn dialect(&self) -> Dialect {
        Dialect::LITERAL
    }

    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError> {
        match endpoint {
            Endpoint::Http { url, needs_key } => {
                let mut entry = object([("url", url.as_str().into())]);
                if *needs_key {
                    entry.insert("bearer_token_env_var".into(), KEY_VARIABLE.into());
                }
                Ok(entry)
            }
            Endpoint::Stdio { .. } => http_entry("url", endpoint, Client::Codex, None),
        }
    }

    fn approve_reads(&self, places: &Places) -> Result<Rules, ClientFileError> {
        let entry = self.main_file(places).own_entry();
        let default = Edit::Entry {
            path: entry.clone(),
            set: object([(DEFAULT_MODE, "writes".into())]),
            unset: Vec::new(),
        };
        let tools = changing_tools().map(|tool| Edit::Entry {
            path: [entry.as_slice(), &path([TOOLS, tool])].concat(),
            set: object([(TOOL_MODE, "prompt".into())]),
            unset: Vec::new(),
        });
        Ok(Rules {
            entry: std::iter::once(default).chain(tools).collect(),
            ..Rules::default()
        })
    }

    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError> {
        let mut entry = Value::Null;
        let mut read = Vec::new();
        for file in [vec![self.main_file(places)], self.other_files(places)].concat() {
            if let Some(document) = file::read_document(&file.path, file.syntax)? {
                let found = document.get(&file.own_entry()).ok().flatten();
                // The project's entry, read later, takes the place of the user's.
                entry = found.unwrap_or(entry);
                read.push(file.path);
            }
        }
        Ok(Permissions::judge(|tool| verdict(&entry, tool)).read_from(read))
    }
}

fn verdict(entry: &Value, tool: OwnTool) -> Verdict {
    let own = entry[TOOLS][tool.name][TOOL_MODE].as_str();
    match own.or(entry[DEFAULT_MODE].as_str()) {
        Some("approve") => Verdict::Silent,
        Some("prompt") => Verdict::Asks,
        // `auto`, which is what applies when nothing is said, and `writes` go by our hints.
        _ if tool.reads => Verdict::Silent,
        _ => Verdict::Asks,
    }
}
