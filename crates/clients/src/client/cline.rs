//! Cline, an extension of VS Code. What runs unasked is a list in our own entry.

use serde_json::{Map, Value};

use super::{Client, roo};
use crate::adapter::{Adapter, Rules, ServerFile, http_entry, with_type};
use crate::endpoint::Endpoint;
use crate::error::ClientFileError;
use crate::permissions::Permissions;
use crate::places::Places;
use crate::references::Dialect;

const LIST: &str = "autoApprove";

pub(crate) struct Cline;

impl Adapter for Cline {
    fn main_file(&self, places: &Places) -> ServerFile {
        let folder = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
        ServerFile::json(places.vs_code_user().join(folder), "mcpServers")
    }

    fn dialect(&self) -> Dialect {
        Dialect::LITERAL
    }

    fn entry(&self, endpoint: &Endpoint) -> Result<Map<String, Value>, ClientFileError> {
        let entry = http_entry("url", endpoint, Client::Cline, None)?;
        Ok(match endpoint {
            Endpoint::Http { .. } => with_type("streamableHttp", entry),
            Endpoint::Stdio { .. } => with_type("stdio", entry),
        })
    }

    fn approve_reads(&self, places: &Places) -> Result<Rules, ClientFileError> {
        Ok(roo::list_in_entry(&self.main_file(places), LIST))
    }

    fn permissions(&self, places: &Places) -> Result<Permissions, ClientFileError> {
        roo::judge_by_list(&[self.main_file(places)], LIST)
    }
}
