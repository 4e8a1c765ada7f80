//! Lists of several upstreams as one: every page of every upstream, in the order of the config.

use std::collections::HashSet;
use std::sync::Arc;

use config::Limits;

use futures_util::future::join_all;
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
    pub limits: &'a Limits,
}

/// All elements of all upstreams. One that does not answer costs the others nothing.
pub(super) async fn gather(upstreams: &[Arc<Upstream>], wanted: Wanted<'_>) -> Listing {
    let listing = upstreams.iter().map(|upstream| async move {
        let budget = wanted.limits.listing_time.get();
        let listed = tokio::time::timeout(budget, list(upstream, wanted)).await;
        let listed = listed.unwrap_or_else(|_| Err(over("listing_time")));
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

fn over(limit: &str) -> ErrorObject {
    ErrorObject::internal(format!("the list is longer than limits.{limit} lets it be"))
}

async fn list(upstream: &Upstream, wanted: Wanted<'_>) -> Result<Vec<Box<RawValue>>, ErrorObject> {
    #[derive(Deserialize)]
    struct Cursor {
        #[serde(rename = "nextCursor")]
        next_cursor: Option<String>,
    }

    let unreadable = |error: serde_json::Error| ErrorObject::internal(error.to_string());
    let mut elements: Vec<Box<RawValue>> = Vec::new();
    let mut seen = HashSet::new();
    let mut params = None;
    let mut bytes = 0;
    for _ in 0..wanted.limits.listing_pages {
        let Wanted { method, client, .. } = wanted;
        let page = forward(upstream, method, params.take(), client, wanted.context).await?;
        bytes += page.get().len();
        if bytes > wanted.limits.listing_bytes {
            return Err(over("listing_bytes"));
        }
        let members = mcp::Members::parse(&page).map_err(unreadable)?;
        let Some(listed) = members.get(wanted.member) else {
            return Ok(elements);
        };
        let listed: Vec<Box<RawValue>> = serde_json::from_str(listed.get()).map_err(unreadable)?;
        elements.extend(listed);
        let Cursor { next_cursor } = serde_json::from_str(page.get()).map_err(unreadable)?;
        match next_cursor {
            Some(next) if seen.insert(next.clone()) => {
                params = Some(to_raw_value(&json!({ "cursor": next })).map_err(unreadable)?);
            }
            _ => return Ok(elements),
        }
    }
    Err(over("listing_pages"))
}
