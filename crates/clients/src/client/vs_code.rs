//! VS Code. A tool that says it only reads runs unasked, so our hints do what rules do elsewhere.

use serde_json::{Map, Value};

use super::Client;
use crate::adapter::{Adapter, Rules, ServerFile, http_entry, with_type};
use crate::document::Syntax;
use crate::endpoint::Endpoint;
use crate::error::ClientFileError;
use crate::file;
use crate::permissions::{Permissions, Verdict};
use crate::places::Places;
use crate::references::Dialect;

/// The switches that approve everything, as they are and as they were called.
const APPROVE_ALL: [&str; 2] = ["chat.tools.global.autoApprove", "chat.tools.autoApprove"];

pub(crate) struct VsCode;

impl Adapter for VsCode {
    fn main_file(&self, places: &Places) -> ServerFile {
        ServerFile::json(places.vs_code_user().join("mcp.json"), "servers")
    }

    fn other_files(&self, places: &Places) -> Vec<ServerFile> {
        let file = places.in_project(".vscode/mcp.json");
        let file = file.map(|file| ServerFile::json(file, "servers").of_project());
        file.into_iter().collect()
    }

    fn dialect(&self) -> Dialect {
        Dialect::EDITOR
    }

    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError> {
        let kind = match endpoint {
            Endpoint::Http { .. } => "http",
            Endpoint::Stdio { .. } => "stdio",
        };
        let reference = "${env:MCPPROXY_API_KEY}";
        let entry = http_entry("url", endpoint, Client::VsCode, Some(reference))?;
        Ok(with_type(kind, entry))
    }

    fn approve_reads(&self, _places: &Places) -> Result<Rules, ClientFileError> {
        Ok(Rules::note(
            "VS Code needs no rule: tools that say they only read run unasked, the others ask",
        ))
    }

    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError> {
        let files = [
            Some(places.vs_code_user().join("settings.json")),
            places.in_project(".vscode/settings.json"),
        ];
        let mut read = Vec::new();
        let mut switch = None;
        for file in files.into_iter().flatten() {
            if let Some(document) = file::read_document(&file, Syntax::Json)? {
                let settings = document.value();
                let on = APPROVE_ALL.into_iter().find(|name| settings[*name] == true);
                switch = switch.or(on);
                read.push(file);
            }
        }
        let permissions = Permissions::judge(|tool| {
            if tool.reads || switch.is_some() {
                Verdict::Silent
            } else {
                Verdict::Asks
            }
        });
        let note =
            switch.map(|name| format!("{name} is on: every tool of every server runs unasked"));
        Ok(permissions.read_from(read).noting(note))
    }
}
