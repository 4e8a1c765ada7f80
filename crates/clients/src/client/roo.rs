//! Roo Code and Kilo Code, extensions of VS Code with one ancestor. What runs unasked is a list in
//! our own entry.

use serde_json::{Map, Value};

use super::Client;
use crate::adapter::{Adapter, Rules, ServerFile, http_entry, reading_tools, with_type};
use crate::document::path;
use crate::edit::Edit;
use crate::endpoint::Endpoint;
use crate::error::ClientFileError;
use crate::file;
use crate::permissions::{Permissions, Verdict};
use crate::places::Places;
use crate::references::Dialect;

const LIST: &str = "alwaysAllow";

pub(crate) const ROO: RooLike = RooLike {
    client: Client::Roo,
    extension: "rooveterinaryinc.roo-cline",
    project_file: ".roo/mcp.json",
};

pub(crate) const KILO: RooLike = RooLike {
    client: Client::Kilo,
    extension: "kilocode.kilo-code",
    project_file: ".kilocode/mcp.json",
};

pub(crate) struct RooLike {
    client: Client,
    extension: &'static str,
    project_file: &'static str,
}

impl Adapter for RooLike {
    fn main_file(&self, places: &Places) -> ServerFile {
        let folder = places
            .vs_code_user()
            .join("globalStorage")
            .join(self.extension);
        ServerFile::json(folder.join("settings/mcp_settings.json"), "mcpServers")
    }

    fn other_files(&self, places: &Places) -> Vec<ServerFile> {
        let file = places.in_project(self.project_file);
        let file = file.map(|file| ServerFile::json(file, "mcpServers").of_project());
        file.into_iter().collect()
    }

    fn dialect(&self) -> Dialect {
        Dialect::EDITOR
    }

    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError> {
        let reference = "${env:MCPPROXY_API_KEY}";
        let entry = http_entry("url", endpoint, self.client, Some(reference))?;
        Ok(match endpoint {
            Endpoint::Http { .. } => with_type("streamable-http", entry),
            Endpoint::Stdio { .. } => with_type("stdio", entry),
        })
    }

    fn approve_reads(&self, places: &Places) -> Result<Rules, ClientFileError> {
        Ok(list_in_entry(&self.main_file(places), LIST))
    }

    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError> {
        let files = [vec![self.main_file(places)], self.other_files(places)].concat();
        judge_by_list(&files, LIST)
    }
}

/// The names of our reading tools, in a list inside our entry.
pub(super) fn list_in_entry(file: &ServerFile, list: &str) -> Rules {
    let path = [file.own_entry(), path([list])].concat();
    let edits = reading_tools().map(|tool| Edit::Element {
        path: path.clone(),
        value: tool.into(),
    });
    Rules {
        entry: edits.collect(),
        notes: vec![
            "the list counts only while auto-approval of MCP tools is switched on in the extension"
                .to_owned(),
        ],
        ..Rules::default()
    }
}

pub(super) fn judge_by_list(
    files: &[ServerFile],
    list: &str,
) -> Result<Permissions, ClientFileError> {
    let mut listed: Vec<Value> = Vec::new();
    let mut read = Vec::new();
    for file in files {
        if let Some(document) = file::read_document(&file.path, file.syntax)? {
            let entry = document.get(&file.own_entry()).ok().flatten();
            let entry = entry.unwrap_or_default();
            listed.extend(entry[list].as_array().into_iter().flatten().cloned());
            read.push(file.path.clone());
        }
    }
    let permissions = Permissions::judge(|tool| {
        if listed.iter().any(|name| name == tool.name) {
            Verdict::Silent
        } else {
            Verdict::Asks
        }
    });
    Ok(permissions.read_from(read))
}
