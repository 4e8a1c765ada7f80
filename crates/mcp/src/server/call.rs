//! The way of one request through the service, and what becomes of notifications.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde::Deserialize;

use super::exchange::{Call, Exchange, Outcome};
use super::handshake::empty_object;
use super::legacy_form;
use super::outbound::Outbound;
use super::service::{Connection, RequestContext, Service};
use crate::{ErrorObject, Notification, Request, RequestId, Response, codes};

#[derive(Deserialize)]
struct Cancelled {
    #[serde(rename = "requestId")]
    request_id: RequestId,
}

/// Answers a request of a legacy session that has begun; `None` if it was cancelled meanwhile, for then the client
/// must not get an answer.
pub(super) async fn answer<S: Service>(
    service: &S,
    connection: Arc<Connection>,
    outbound: Outbound,
    call: Call,
    request: Request,
) -> Option<Response> {
    let id = request.id.clone();
    let outcome = match request.method.as_str() {
        "ping" => Ok(empty_object()),
        "initialize" => Err(ErrorObject::new(
            codes::INVALID_REQUEST,
            "Invalid request: this session is already initialized",
        )),
        _ => {
            let context = RequestContext {
                connection,
                request_id: id.clone(),
                outbound,
                cancelled: call.cancelled.clone(),
                log_level: None,
            };
            let legacy_form = legacy_form::of_results(&request.method);
            let outcome = run(service, request, context).await;
            outcome.map(|result| legacy_form.and_then(|of| of(&result)).unwrap_or(result))
        }
    };
    if call.cancelled.is_cancelled() {
        return None;
    }
    Some(Response {
        id: Some(id),
        outcome,
    })
}

/// Runs the service. A panic in there must cost this answer alone, not the connection or a stream
/// that never ends.
pub(super) async fn run<S: Service>(
    service: &S,
    request: Request,
    context: RequestContext,
) -> Outcome {
    let work = service.request(request, context);
    let caught = AssertUnwindSafe(work).catch_unwind().await;
    caught.unwrap_or_else(|_| Err(ErrorObject::internal("Internal error")))
}

/// Acts on the notifications that are the transport's own; the others are the service's.
pub(super) fn for_service(exchange: &Exchange, notification: Notification) -> Option<Notification> {
    match notification.method.as_str() {
        "notifications/initialized" => None,
        "notifications/cancelled" => {
            let cancelled = notification
                .params
                .and_then(|params| serde_json::from_str::<Cancelled>(params.get()).ok());
            if let Some(cancelled) = cancelled {
                exchange.cancel(&cancelled.request_id);
            }
            None
        }
        _ => Some(notification),
    }
}

/// Several answers as the one array that a batch is answered with.
pub(super) fn encode_batch(responses: &[Response]) -> Vec<u8> {
    let mut out = vec![b'['];
    for response in responses {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(&response.encode());
    }
    out.push(b']');
    out
}
