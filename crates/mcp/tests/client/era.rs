//! Finding out which era a server speaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use mcp::client::{Client, CloseReason, ConnectError, Era, RequestError};
use serde_json::{Value, json};

use crate::support::{
    LINE_LIMIT, Peer, Seen, Server, basics, deadline, discover_result, discovered, error, hello_in,
    initialize_result, json_answer, options, pipes, response, with_status,
};

/// Connects over pipes without knowing the era.
fn connecting(patience: Duration) -> (impl Future<Output = Result<Client, ConnectError>>, Peer) {
    let (reader, writer, peer) = pipes();
    let mut hello = hello_in(None);
    hello.probe_timeout = patience;
    let connecting = Client::connect_lines(reader, writer, LINE_LIMIT, hello, ());
    (connecting, peer)
}

const PATIENT: Duration = Duration::from_secs(15);
const IMPATIENT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn a_modern_server_is_asked_once_and_not_greeted() {
    deadline(async {
        let (connecting, mut peer) = connecting(PATIENT);
        let (client, ()) = tokio::join!(connecting, peer.accept_modern());
        let client = client.unwrap();
        assert_eq!(client.era(), Era::Modern);
        let handshake = client.handshake();
        assert_eq!(handshake.server.name, "scripted");
        assert_eq!(handshake.instructions.as_deref(), Some("be brief"));
        assert_eq!(handshake.supported_versions, ["2026-07-28"]);
        assert!(handshake.offers_tools() && !handshake.offers_prompts());
        let serving = async {
            let call = peer.read().await;
            assert_eq!(call["method"], "tools/list");
            peer.write(&response(&call["id"], &json!({"tools": []})))
                .await;
        };
        let (listed, ()) = tokio::join!(client.request("tools/list", None, options()), serving);
        listed.unwrap();
    })
    .await;
}

#[tokio::test]
async fn whatever_a_legacy_server_answers_it_is_greeted() {
    let answers: [fn(&Value) -> Value; 4] = [
        |id| error(id, -32601, "Method not found"),
        |id| error(id, -32602, "Invalid params"),
        |id| error(id, 0, "not initialized"),
        |id| response(id, &json!({})),
    ];
    for answer in answers {
        deadline(async {
            let (connecting, mut peer) = connecting(PATIENT);
            let serving = async {
                let discover = peer.read().await;
                assert_eq!(discover["method"], "server/discover");
                peer.write(&answer(&discover["id"])).await;
                peer.accept().await;
            };
            let (client, ()) = tokio::join!(connecting, serving);
            assert_eq!(client.unwrap().era(), Era::Legacy);
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_greeted_after_a_while() {
    deadline(async {
        let (connecting, mut peer) = connecting(IMPATIENT);
        let serving = async {
            assert_eq!(peer.read().await["method"], "server/discover");
            peer.accept().await;
        };
        let (client, ()) = tokio::join!(connecting, serving);
        let client = client.unwrap();
        assert_eq!(
            (client.era(), client.next_era()),
            (Era::Legacy, Era::Legacy)
        );
    })
    .await;
}

#[tokio::test]
async fn a_modern_server_that_starts_slowly_is_recognised_by_its_late_answer() {
    deadline(async {
        let (connecting, mut peer) = connecting(IMPATIENT);
        let serving = async {
            let discover = peer.read().await;
            let initialize = peer.read().await;
            assert_eq!(initialize["method"], "initialize");
            peer.write(&response(&discover["id"], &discover_result()))
                .await;
            peer.write(&error(&initialize["id"], -32022, "2026-07-28 only"))
                .await;
        };
        let (client, ()) = tokio::join!(connecting, serving);
        assert_eq!(client.unwrap().era(), Era::Modern);
    })
    .await;
}

#[tokio::test]
async fn a_server_of_both_eras_that_starts_slowly_keeps_to_its_greeting_for_now() {
    deadline(async {
        let (connecting, mut peer) = connecting(IMPATIENT);
        let serving = async {
            let discover = peer.read().await;
            let initialize = peer.read().await;
            peer.write(&response(&discover["id"], &discover_result()))
                .await;
            peer.write(&response(&initialize["id"], &initialize_result()))
                .await;
            assert_eq!(peer.read().await["method"], "notifications/initialized");
        };
        let (client, ()) = tokio::join!(connecting, serving);
        let client = client.unwrap();
        assert_eq!(client.era(), Era::Legacy);
        assert_eq!(client.next_era(), Era::Modern);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_ends_over_the_question_is_told_apart() {
    deadline(async {
        let (connecting, mut peer) = connecting(PATIENT);
        let serving = async {
            peer.read().await;
            drop(peer);
        };
        let (client, ()) = tokio::join!(connecting, serving);
        let failure = client.unwrap_err();
        assert!(
            matches!(&failure, ConnectError::Probe(RequestError::Closed(reason))
                if matches!(**reason, CloseReason::Ended { .. })),
            "{failure:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn an_era_that_is_known_is_not_asked_for() {
    deadline(async {
        let (reader, writer, mut peer) = pipes();
        let hello = hello_in(Some(Era::Legacy));
        let connecting = Client::connect_lines(reader, writer, LINE_LIMIT, hello, ());
        let (client, ()) = tokio::join!(connecting, peer.accept());
        assert_eq!(client.unwrap().era(), Era::Legacy);

        let (reader, writer, mut peer) = pipes();
        let hello = hello_in(Some(Era::Modern));
        let connecting = Client::connect_lines(reader, writer, LINE_LIMIT, hello, ());
        let refusing = async {
            let discover = peer.read().await;
            peer.write(&error(&discover["id"], -32601, "unknown")).await;
        };
        let (client, ()) = tokio::join!(connecting, refusing);
        assert!(matches!(
            client.unwrap_err(),
            ConnectError::Discover(RequestError::Rpc(error)) if error.code == -32601
        ));
    })
    .await;
}

/// A server that answers `server/discover` as told and everything else as a legacy one.
async fn legacy_server(refusal: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Server {
    Server::start(move |seen| {
        if seen.is("server/discover") {
            return refusal(seen);
        }
        basics(seen, None).unwrap_or_else(|| json_answer(&response(seen.id(), &json!("done"))))
    })
    .await
}

#[tokio::test]
async fn over_http_a_refusal_that_no_modern_server_gives_leads_to_a_greeting() {
    let refusals: [fn(&Seen) -> Response; 9] = [
        |_| StatusCode::BAD_REQUEST.into_response(),
        |_| StatusCode::NOT_FOUND.into_response(),
        |_| StatusCode::METHOD_NOT_ALLOWED.into_response(),
        |_| StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        |_| StatusCode::ACCEPTED.into_response(),
        |_| with_status(400, json_answer(&error(&Value::Null, -32000, "No session"))),
        |seen| with_status(404, json_answer(&error(seen.id(), -32601, "unknown"))),
        |seen| json_answer(&error(seen.id(), -32602, "not initialized")),
        |seen| {
            let data = json!({"supported": ["2025-11-25", "2025-06-18"]});
            let refusal = json!({"code": -32022, "message": "version", "data": data});
            let message = json!({"jsonrpc": "2.0", "id": seen.id(), "error": refusal});
            with_status(400, json_answer(&message))
        },
    ];
    for (number, refusal) in refusals.into_iter().enumerate() {
        deadline(async {
            let server = legacy_server(refusal).await;
            let connecting = Client::connect_http(server.endpoint(), hello_in(None), ());
            let client = connecting.await.unwrap();
            assert_eq!(client.era(), Era::Legacy, "refusal {number}");
            let result = client.request("call", None, options()).await.unwrap();
            assert_eq!(result.get(), "\"done\"");
            assert_eq!(server.count(|seen| seen.is("server/discover")), 1);
            let call = server.seen().into_iter().find(|seen| seen.is("call"));
            let call = call.unwrap();
            assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
            assert_eq!(call.header("mcp-method"), None);
            assert_eq!(call.message.get("params"), None);
        })
        .await;
    }
}

#[tokio::test]
async fn over_http_a_refusal_that_concerns_us_is_not_taken_for_an_era() {
    let refusals: [fn(&Seen) -> Response; 4] = [
        |_| StatusCode::UNAUTHORIZED.into_response(),
        |_| StatusCode::FORBIDDEN.into_response(),
        |seen| with_status(400, json_answer(&error(seen.id(), -32020, "header"))),
        |seen| with_status(400, json_answer(&error(seen.id(), -32021, "capability"))),
    ];
    for refusal in refusals {
        deadline(async {
            let server = legacy_server(refusal).await;
            let connecting = Client::connect_http(server.endpoint(), hello_in(None), ());
            let failure = connecting.await.unwrap_err();
            assert!(matches!(failure, ConnectError::Discover(_)), "{failure:?}");
            assert_eq!(server.seen().len(), 1);
        })
        .await;
    }
}

#[tokio::test]
async fn over_http_a_server_that_answers_too_late_is_greeted() {
    deadline(async {
        let server = legacy_server(|_| {
            let never = futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>();
            crate::support::sse_answer(axum::body::Body::from_stream(never))
        })
        .await;
        let mut hello = hello_in(None);
        hello.probe_timeout = Duration::from_millis(100);
        let client = Client::connect_http(server.endpoint(), hello, ()).await;
        assert_eq!(client.unwrap().era(), Era::Legacy);
    })
    .await;
}

#[tokio::test]
async fn a_version_that_is_refused_and_supported_is_tried_once_more() {
    deadline(async {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let server = Server::start(move |seen| {
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                let data = json!({"supported": ["2026-07-28"], "requested": "?"});
                let refusal = json!({"code": -32022, "message": "version", "data": data});
                let message = json!({"jsonrpc": "2.0", "id": seen.id(), "error": refusal});
                return with_status(400, json_answer(&message));
            }
            discovered(seen).unwrap_or_else(|| json_answer(&response(seen.id(), &json!({}))))
        })
        .await;
        let client = Client::connect_http(server.endpoint(), hello_in(None), ()).await;
        assert_eq!(client.unwrap().era(), Era::Modern);
        let ids: Vec<_> = server.seen().iter().map(|seen| seen.id().clone()).collect();
        assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
    })
    .await;
}
