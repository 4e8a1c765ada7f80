//! Windsurf. What runs unasked is set in its own window.

use serde_json::{Map, Value};

use super::Client;
use crate::adapter::{Adapter, Rules, ServerFile, http_entry};
use crate::endpoint::Endpoint;
use crate::error::ClientFileError;
use crate::permissions::{Permissions, Verdict};
use crate::places::Places;
use crate::references::Dialect;

const WINDOW: &str = "Windsurf keeps permissions in its own window";

pub(crate) struct Windsurf;

impl Adapter for Windsurf {
    fn main_file(&self, places: &Places) -> ServerFile {
        let file = places.home.join(".codeium/windsurf/mcp_config.json");
        ServerFile::json(file, "mcpServers")
    }

    fn dialect(&self) -> Dialect {
        Dialect::EDITOR
    }

    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError> {
        http_entry(
            "serverUrl",
            endpoint,
            Client::Windsurf,
            Some("${env:MCPPROXY_API_KEY}"),
        )
    }

    fn approve_reads(&self, _places: &Places) -> Result<Rules, ClientFileError> {
        Ok(Rules::note(WINDOW))
    }

    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError> {
        let file = self.main_file(places).path;
        let permissions = Permissions::judge(|_| Verdict::Unknown);
        Ok(permissions
            .read_from(file.exists().then_some(file))
            .noting([WINDOW.to_owned()]))
    }
}
