//! Asking an upstream for its tools, page by page.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::ToolDefinition;
use mcp::client::{Client, Listing, ListingBudget, RequestError, RequestOptions};
use mcp::{RawValue, codes};
use policy::ServerName;
use serde::Deserialize;
use serde_json::value::to_raw_value;

use crate::failure::ListingError;

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

/// All tools of the server, in its order. A tool that cannot be understood is left out and told
/// about in the log; the others are not made to suffer for it.
pub(crate) async fn list_tools(
    client: &Client,
    server: &ServerName,
    options: RequestOptions,
    limits: &config::Limits,
) -> Result<Vec<Arc<ToolDefinition>>, ListingError> {
    let mut tools = Vec::new();
    let mut names = HashSet::new();
    let mut listing = Listing::begin(budget(limits));
    let mut params = None;
    loop {
        let page = match request_page(client, &listing, params.take(), &options).await {
            // A server that offers only prompts or resources is not broken.
            Err(ListingError::Request(RequestError::Rpc(error)))
                if error.code == codes::METHOD_NOT_FOUND =>
            {
                return Ok(tools);
            }
            page => page?,
        };
        let Page {
            tools: listed,
            next_cursor,
        } = serde_json::from_str(page.get()).map_err(ListingError::Shape)?;
        let before = names.len();
        for raw in listed {
            let parsed = ToolDefinition::parse_within(server, raw.to_owned(), limits.schema_bytes);
            let tool = match parsed {
                Ok(tool) => tool,
                Err(error) => {
                    tracing::warn!(%server, error = crate::failure::chain(&error), "tool left out");
                    continue;
                }
            };
            if tools.len() >= limits.tools_per_server {
                tracing::warn!(%server, limit = limits.tools_per_server, "the server has more tools than limits.tools_per_server; the rest is left out");
                return Ok(tools);
            }
            if names.insert(tool.id.tool().clone()) {
                tools.push(Arc::new(tool));
            } else {
                tracing::warn!(tool = %tool.id, "tool announced twice, the first one counts");
            }
        }
        let new = names.len() - before;
        match listing.turn(page.get().len(), new, next_cursor)? {
            None => return Ok(tools),
            Some(cursor) => {
                let cursor = to_raw_value(&serde_json::json!({ "cursor": cursor }));
                params = Some(cursor.map_err(ListingError::Shape)?);
            }
        }
    }
}

/// What the limits allow for one listing.
pub(crate) fn budget(limits: &config::Limits) -> ListingBudget {
    ListingBudget {
        pages: limits.listing_pages,
        bytes: limits.listing_bytes,
        time: limits.listing_time.get(),
    }
}

async fn request_page(
    client: &Client,
    listing: &Listing,
    params: Option<Box<RawValue>>,
    options: &RequestOptions,
) -> Result<Box<RawValue>, ListingError> {
    let left = listing.time_left()?;
    let timeout = options.timeout.unwrap_or(left);
    let options = RequestOptions {
        timeout: Some(timeout.min(left)),
        ..options.clone()
    };
    match client.request("tools/list", params, options).await {
        Err(RequestError::Timeout { .. }) if left <= timeout => Err(listing.late().into()),
        page => page.map_err(ListingError::Request),
    }
}
