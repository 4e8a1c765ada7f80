//! `/events`: what happens, as it happens, as server-sent events.
//!
//! Activity events carry the sequence of the hash chain as their id, so that a watcher that comes
//! back with `Last-Event-ID` gets what it missed. One that begins is first told the id of the last
//! entry, in an event that has nothing else and that browsers therefore keep to themselves: without
//! it, a watcher whose connection breaks before anything happens would not know its place.
//!
//! The other events say that something changed and is worth looking at again; they have no id,
//! because a later look shows all there is.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use activity::{Event as ActivityEvent, Filter, Follow, FollowError, StoreError};
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::activity::{borrowed, parse_pairs};
use super::parameters::FilterParameters;
use super::{ApiError, ErrorBody};
use crate::engine::Engine;
use crate::http::AppState;

const HEARTBEAT: Duration = Duration::from_secs(15);

/// What a watcher is sent next.
struct Watch {
    follow: Follow,
    filter: Filter,
    fleet: watch::Receiver<u64>,
    engine: Arc<Engine>,
    /// The number of tools last told of.
    tools: usize,
    pending: Vec<Event>,
    stopping: CancellationToken,
}

/// Streams events, from now on or from after `Last-Event-ID`, that match the filters of the list.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    tag = "activity",
    params(
        FilterParameters,
        ("Last-Event-ID" = Option<u64>, Header, description = "The id of the last event that was seen"),
    ),
    responses(
        (status = 200, description = "Server-sent events, without an end.", body = String, content_type = "text/event-stream"),
        (status = 400, description = "A filter or the id is not understood.", body = ErrorBody),
    ),
)]
pub(super) async fn watch(
    State(state): State<AppState>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let pairs = parse_pairs(query.as_deref())?;
    let filter = Filter::from_pairs(borrowed(&pairs))?;
    let after = headers.get("last-event-id").map(|id| {
        let id = id.to_str().ok().and_then(|id| id.parse().ok());
        id.ok_or_else(|| {
            ApiError::bad_request("Last-Event-ID is not the id of an event")
                .hint("send the id of the last event as it was, or leave the header out")
        })
    });
    let activity = state.engine.activity();
    let (place, pending) = match after.transpose()? {
        Some(place) => (Some(place), Vec::new()),
        None => match activity.head().await {
            Ok(head) => {
                let id = head.sequence.to_string();
                (Some(head.sequence), vec![Event::default().id(id)])
            }
            // What happens from now on can be told all the same.
            Err(error) => {
                tracing::warn!(%error, "a watcher of events does not learn its place");
                (None, Vec::new())
            }
        },
    };
    let watch = Watch {
        follow: activity.follow(place),
        filter,
        fleet: state.engine.fleet().changes(),
        tools: state.engine.current().await.catalog.len(),
        engine: Arc::clone(&state.engine),
        pending,
        stopping: state.stopping.clone(),
    };
    let events = stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((Ok(event), watch))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

impl Watch {
    /// The next event; none when there will be no more.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pending.pop() {
                return Some(event);
            }
            tokio::select! {
                () = self.stopping.cancelled() => return None,
                event = self.follow.next() => match event {
                    Ok(event) if self.filter.matches(&event.record) => return Some(encode(&event)),
                    Ok(_) => {}
                    Err(FollowError::PlaceLost) => return Some(place_lost()),
                    // A client that reconnects finds the log as it is then.
                    Err(FollowError::Closed | FollowError::Store(StoreError::Stale)) => return None,
                    Err(FollowError::Store(error)) => {
                        tracing::warn!(%error, "a watcher of events is let go");
                        return None;
                    }
                },
                changed = self.fleet.changed() => {
                    changed.ok()?;
                    self.note_changes().await;
                }
            }
        }
    }

    async fn note_changes(&mut self) {
        let tools = self.engine.current().await.catalog.len();
        if tools != self.tools {
            self.tools = tools;
            self.pending.push(
                Event::default()
                    .event("tools.changed")
                    .data(json!({"tools": tools}).to_string()),
            );
        }
        let servers = self.engine.upstreams().len();
        self.pending.push(
            Event::default()
                .event("servers.changed")
                .data(json!({"servers": servers}).to_string()),
        );
    }
}

fn encode(event: &ActivityEvent) -> Event {
    let data = serde_json::to_string(&event.record).unwrap_or_default();
    Event::default()
        .id(event.sequence.to_string())
        .event(event.name())
        .data(data)
}

/// The watcher was too slow or away for too long: it has to look at the log itself.
fn place_lost() -> Event {
    let message = "events were missed; look at GET /api/v1/activity for what happened meanwhile";
    Event::default()
        .event("place_lost")
        .data(json!({"message": message}).to_string())
}
