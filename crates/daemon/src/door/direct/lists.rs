//! Lists of several upstreams as one: every page of every upstream, in the order of their names.

use std::sync::Arc;

use futures_util::future::join_all;
use mcp::client::ListingOverrun;
use mcp::server::RequestContext;
use mcp::{ErrorObject, RawValue, codes};
use policy::ServerName;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;
use upstream::{OnBehalf, Upstream};

use crate::door::passage::forward;

/// An element of a list, and whose it is.
pub(super) struct Item {
    pub server: ServerName,
    pub raw: Box<RawValue>,
}

/// All elements of all upstreams. One that does not answer costs the others nothing.
pub(super) async fn gather(
    upstreams: &[Arc<Upstream>],
    method: &str,
    member: &str,
    client: &OnBehalf,
    context: &RequestContext,
) -> Vec<Item> {
    let listing = upstreams.iter().map(|upstream| async move {
        let listed = list(upstream, method, member, client, context).await;
        let elements = listed.unwrap_or_else(|error| {
            // A server that offers none of these is not broken.
            if error.code != codes::METHOD_NOT_FOUND {
                tracing::warn!(server = %upstream.name(), method, %error, "a list is left out");
            }
            Vec::new()
        });
        let server = upstream.name();
        let items = elements.into_iter().map(|raw| Item {
            server: server.clone(),
            raw,
        });
        items.collect::<Vec<_>>()
    });
    join_all(listing).await.into_iter().flatten().collect()
}

async fn list(
    upstream: &Upstream,
    method: &str,
    member: &str,
    client: &OnBehalf,
    context: &RequestContext,
) -> Result<Vec<Box<RawValue>>, ErrorObject> {
    #[derive(Deserialize)]
    struct Cursor {
        #[serde(rename = "nextCursor")]
        next_cursor: Option<String>,
    }

    let unreadable = |error: serde_json::Error| ErrorObject::internal(error.to_string());
    let overrun = |error: ListingOverrun| ErrorObject::internal(error.to_string());
    let mut elements: Vec<Box<RawValue>> = Vec::new();
    let mut listing = upstream.listing();
    let mut params = None;
    loop {
        let left = listing.time_left().map_err(overrun)?;
        let asking = forward(upstream, method, params.take(), client, context);
        let page = tokio::time::timeout(left, asking)
            .await
            .unwrap_or_else(|_| Err(overrun(listing.late())))?;
        let members = mcp::Members::parse(&page).map_err(unreadable)?;
        let Some(listed) = members.get(member) else {
            break;
        };
        let listed: Vec<Box<RawValue>> = serde_json::from_str(listed.get()).map_err(unreadable)?;
        let new = listed.len();
        elements.extend(listed);
        let Cursor { next_cursor } = serde_json::from_str(page.get()).map_err(unreadable)?;
        let bytes = page.get().len();
        match listing.turn(bytes, new, next_cursor).map_err(overrun)? {
            Some(next) => {
                params = Some(to_raw_value(&json!({ "cursor": next })).map_err(unreadable)?);
            }
            None => break,
        }
    }
    Ok(elements)
}
