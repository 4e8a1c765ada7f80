//! Cursor. Its list of what runs unasked may be in a file; where there is one, the list in its
//! window no longer counts, so the file is not made for anybody who has none.

use serde_json::{Map, Value};

use super::Client;
use crate::SERVER_NAME;
use crate::adapter::{Adapter, FileEdits, Rules, ServerFile, http_entry, reading_tools};
use crate::document::{Syntax, path};
use crate::edit::Edit;
use crate::endpoint::Endpoint;
use crate::error::ClientFileError;
use crate::file;
use crate::permissions::{Permissions, Verdict};
use crate::places::Places;
use crate::references::Dialect;

const LIST: &str = "mcpAllowlist";
const PERMISSIONS: &str = ".cursor/permissions.json";

pub(crate) struct Cursor;

impl Adapter for Cursor {
    fn main_file(&self, places: &Places) -> ServerFile {
        ServerFile::json(places.home.join(".cursor/mcp.json"), "mcpServers")
    }

    fn other_files(&self, places: &Places) -> Vec<ServerFile> {
        let file = places.in_project(".cursor/mcp.json");
        let file = file.map(|file| ServerFile::json(file, "mcpServers").of_project());
        file.into_iter().collect()
    }

    fn dialect(&self) -> Dialect {
        Dialect::EDITOR
    }

    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError> {
        http_entry(
            "url",
            endpoint,
            Client::Cursor,
            Some("${env:MCPPROXY_API_KEY}"),
        )
    }

    fn approve_reads(&self, places: &Places) -> Result<Rules, ClientFileError> {
        let file = places.home.join(PERMISSIONS);
        let allowed = || reading_tools().map(|tool| format!("{SERVER_NAME}:{tool}"));
        if !file.exists() {
            let snippet = Value::Array(allowed().map(Value::from).collect());
            return Ok(Rules::note(format!(
                "Cursor's list is in its window. To keep it in a file instead, which then replaces \
                 that list, write {{\"{LIST}\": {snippet}}} into {}",
                file.display()
            )));
        }
        let edits = allowed().map(|entry| Edit::Element {
            path: path([LIST]),
            value: entry.into(),
        });
        Ok(Rules {
            files: vec![FileEdits {
                path: file,
                syntax: Syntax::Json,
                edits: edits.collect(),
            }],
            ..Rules::default()
        })
    }

    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError> {
        let mut lists: Option<Vec<String>> = None;
        let mut read = Vec::new();
        let files = [
            Some(places.home.join(PERMISSIONS)),
            places.in_project(PERMISSIONS),
        ];
        for file in files.into_iter().flatten() {
            let Some(document) = file::read_document(&file, Syntax::Json)? else {
                continue;
            };
            if let Some(listed) = document.value()[LIST].as_array() {
                let listed = listed.iter().filter_map(Value::as_str).map(str::to_owned);
                lists.get_or_insert_default().extend(listed);
            }
            read.push(file);
        }
        let permissions = match lists {
            Some(listed) => Permissions::judge(|tool| {
                let is_ours = |entry: &String| fits(entry, tool.name);
                if listed.iter().any(is_ours) {
                    Verdict::Silent
                } else {
                    Verdict::Asks
                }
            }),
            None => Permissions::judge(|_| Verdict::Unknown).noting([
                "Cursor's list is in its window, and no file says what is in it".to_owned(),
            ]),
        };
        Ok(permissions.read_from(read))
    }
}

fn fits(entry: &str, tool: &str) -> bool {
    let Some((server, name)) = entry.split_once(':') else {
        return false;
    };
    (server == SERVER_NAME || server == "*") && (name == tool || name == "*")
}
