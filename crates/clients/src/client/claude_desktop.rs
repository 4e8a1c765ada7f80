//! Claude Desktop. Its file knows only programs to start, and what runs unasked is set in its own
//! window.

use serde_json::{Map, Value};

use super::Client;
use crate::adapter::{Adapter, Rules, ServerFile, stdio_entry};
use crate::endpoint::Endpoint;
use crate::error::ClientFileError;
use crate::permissions::{Permissions, Verdict};
use crate::places::Places;
use crate::references::Dialect;

const WINDOW: &str = "Claude Desktop keeps permissions in its own window: allow the read-only group of mcpproxy there";

pub(crate) struct ClaudeDesktop;

impl Adapter for ClaudeDesktop {
    fn main_file(&self, places: &Places) -> ServerFile {
        let file = places
            .applications()
            .join("Claude/claude_desktop_config.json");
        ServerFile::json(file, "mcpServers")
    }

    fn dialect(&self) -> Dialect {
        Dialect::LITERAL
    }

    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError> {
        match endpoint {
            Endpoint::Stdio { command, args } => Ok(stdio_entry(command, args)),
            Endpoint::Http { .. } => Err(ClientFileError::OnlyStdio {
                client: Client::ClaudeDesktop,
            }),
        }
    }

    fn approve_reads(&self, _places: &Places) -> Result<Rules, ClientFileError> {
        Ok(Rules::note(WINDOW))
    }

    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError> {
        let permissions = Permissions::judge(|_| Verdict::Unknown);
        let file = self.main_file(places).path;
        Ok(permissions
            .read_from(file.exists().then_some(file))
            .noting([WINDOW.to_owned()]))
    }
}
