//! Lists of several upstreams as one: every page of every upstream, in the order of the config.

use std::collections::HashSet;
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

use crate::endpoint::relay::forward;

/// An element of a list, and whose it is.
pub(super) struct Item {
    pub server: ServerName,
    pub raw: Box<RawValue>,
}

/// What several upstreams announce.
#[derive(Default)]
pub(super) struct Listing {
    pub items: Vec<Item>,
    /// The upstreams that gave their whole list, be it empty.
    pub answered: HashSet<ServerName>,
}

/// What is listed, and for whom.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub method: &'a str,
    pub member: &'a str,
    pub client: &'a OnBehalf,
    pub context: &'a RequestContext,
}

/// All elements of all upstreams. One that does not answer costs the others nothing.
pub(super) async fn gather(upstreams: &[Arc<Upstream>], wanted: Wanted<'_>) -> Listing {
    let listing = upstreams.iter().map(|upstream| async move {
        let listed = list(upstream, wanted).await;
        (upstream.name(), listed)
    });
    let mut gathered = Listing::default();
    for (server, listed) in join_all(listing).await {
        match listed {
            Ok(elements) => {
                gathered.answered.insert(server.clone());
                gathered.items.extend(elements.into_iter().map(|raw| Item {
                    server: server.clone(),
                    raw,
                }));
            }
            // A server that offers none of these is not broken.
            Err(error) if error.code == codes::METHOD_NOT_FOUND => {
                gathered.answered.insert(server.clone());
            }
            Err(error) => {
                tracing::warn!(%server, method = wanted.method, %error, "a list is left out");
            }
        }
    }
    gathered
}

async fn list(upstream: &Upstream, wanted: Wanted<'_>) -> Result<Vec<Box<RawValue>>, ErrorObject> {
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
    let Wanted { method, client, .. } = wanted;
    loop {
        let left = listing.time_left().map_err(overrun)?;
        let asking = forward(upstream, method, params.take(), client, wanted.context);
        let page = tokio::time::timeout(left, asking)
            .await
            .unwrap_or_else(|_| Err(overrun(listing.late())))?;
        let members = mcp::Members::parse(&page).map_err(unreadable)?;
        let Some(listed) = members.get(wanted.member) else {
            return Ok(elements);
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
            None => return Ok(elements),
        }
    }
}
