//! Asking an upstream for its tools, page by page.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use catalog::ToolDefinition;
use mcp::client::{Client, RequestError, RequestOptions};
use mcp::{RawValue, codes};
use policy::ServerName;
use serde::Deserialize;

use crate::failure::ListingError;

/// More than any real server has; a guard against one that never stops.
const MAX_TOOLS: usize = 10_000;

#[derive(Deserialize)]
struct Page {
    tools: Vec<Box<RawValue>>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

/// All tools of the server, in its order. A tool that cannot be understood is left out and told
/// about in the log; the others are not made to suffer for it.
pub(crate) async fn list_tools(
    client: &Client,
    server: &ServerName,
    timeout: Duration,
) -> Result<Vec<Arc<ToolDefinition>>, ListingError> {
    let mut tools = Vec::new();
    let mut names = HashSet::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = match request_page(client, cursor.as_deref(), timeout).await {
            // A server that offers only prompts or resources is not broken.
            Err(ListingError::Request(RequestError::Rpc(error)))
                if error.code == codes::METHOD_NOT_FOUND =>
            {
                return Ok(tools);
            }
            page => page?,
        };
        if tools.len() + page.tools.len() > MAX_TOOLS {
            return Err(ListingError::TooMany { limit: MAX_TOOLS });
        }
        for raw in page.tools {
            match ToolDefinition::parse(server, raw) {
                Ok(tool) if names.insert(tool.id.tool().clone()) => tools.push(Arc::new(tool)),
                Ok(tool) => {
                    tracing::warn!(tool = %tool.id, "tool announced twice, the first one counts");
                }
                Err(error) => {
                    tracing::warn!(%server, error = crate::failure::chain(&error), "tool left out");
                }
            }
        }
        match page.next_cursor {
            None => return Ok(tools),
            Some(next) if !cursors.insert(next.clone()) => return Err(ListingError::CursorLoop),
            next => cursor = next,
        }
    }
}

async fn request_page(
    client: &Client,
    cursor: Option<&str>,
    timeout: Duration,
) -> Result<Page, ListingError> {
    let params = cursor
        .map(|cursor| serde_json::value::to_raw_value(&serde_json::json!({ "cursor": cursor })))
        .transpose()
        .map_err(ListingError::Shape)?;
    let options = RequestOptions {
        timeout: Some(timeout),
        ..RequestOptions::default()
    };
    let result = client
        .request("tools/list", params, options)
        .await
        .map_err(ListingError::Request)?;
    serde_json::from_str(result.get()).map_err(ListingError::Shape)
}
