//! HTTP sessions that the server forgets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use mcp::client::{CloseReason, RequestError, RequestOptions};
use serde_json::json;

use crate::support::{
    Heard, Seen, Server, basics, deadline, eventually, initialize_result, json_answer, options,
    recorder, response,
};

/// A server that knows only the newest session it gave out, and forgets that one too when told.
#[derive(Clone, Default)]
struct Forgetful {
    given: Arc<AtomicUsize>,
    forgotten: Arc<AtomicUsize>,
}

impl Forgetful {
    fn forget(&self) {
        self.forgotten
            .store(self.given.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    fn knows(&self, seen: &Seen) -> bool {
        let session: usize = seen.header("mcp-session-id").unwrap().parse().unwrap();
        session > self.forgotten.load(Ordering::SeqCst)
    }

    /// What this server answers, with `lost` for a session it does not know.
    fn answer(&self, seen: &Seen, lost: impl Fn() -> Response) -> Response {
        if seen.is("initialize") {
            let session = self.given.fetch_add(1, Ordering::SeqCst) + 1;
            let mut result = initialize_result();
            result["serverInfo"]["version"] = json!(session.to_string());
            let mut answer = json_answer(&response(seen.id(), &result));
            let session = session.to_string().parse().unwrap();
            answer.headers_mut().insert("mcp-session-id", session);
            return answer;
        }
        if !self.knows(seen) {
            return lost();
        }
        basics(seen, None).unwrap_or_else(|| json_answer(&response(seen.id(), &json!("done"))))
    }
}

fn not_found() -> Response {
    StatusCode::NOT_FOUND.into_response()
}

/// What servers built on a widely copied example answer instead of 404.
fn no_valid_session() -> Response {
    let error = json!({"code": -32000, "message": "Bad Request: No valid session ID provided"});
    let mut answer = json_answer(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
    *answer.status_mut() = StatusCode::BAD_REQUEST;
    answer
}

#[tokio::test]
async fn a_lost_session_is_replaced_once_for_all_callers() {
    for lost in [not_found, no_valid_session] {
        deadline(async {
            let forgetful = Forgetful::default();
            let script = forgetful.clone();
            let server = Server::start(move |seen| script.answer(seen, lost)).await;
            let (events, mut heard) = recorder();
            let client = server.connect(events).await;
            assert_eq!(client.handshake().server.version, "1");
            forgetful.forget();

            let calls: Vec<_> = (0..20)
                .map(|_| {
                    let client = client.clone();
                    tokio::spawn(async move { client.request("call", None, options()).await })
                })
                .collect();
            for call in calls {
                assert_eq!(call.await.unwrap().unwrap().get(), "\"done\"");
            }
            assert_eq!(server.count(|seen| seen.is("initialize")), 2);
            assert_eq!(server.count(|seen| seen.is("notifications/initialized")), 2);
            assert_eq!(client.handshake().server.version, "2");
            assert!(matches!(heard.recv().await, Some(Heard::SessionReplaced)));
        })
        .await;
    }
}

#[tokio::test]
async fn a_call_is_retried_no_more_than_once() {
    deadline(async {
        let server = Server::start(|seen| {
            if seen.is("call") {
                return not_found();
            }
            basics(seen, Some("s")).unwrap()
        })
        .await;
        let client = server.connect(()).await;
        let outcome = client.request("call", None, options()).await;
        assert_eq!(
            outcome.unwrap_err().http_status(),
            Some(StatusCode::NOT_FOUND)
        );
        assert_eq!(server.count(|seen| seen.is("call")), 2);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_may_have_had_an_effect_is_not_sent_twice() {
    deadline(async {
        let forgetful = Forgetful::default();
        let script = forgetful.clone();
        let server = Server::start(move |seen| script.answer(seen, not_found)).await;
        let client = server.connect(()).await;
        forgetful.forget();
        let write = client.request("tools/call", None, options()).await;
        assert!(matches!(write, Err(RequestError::NotRepeated)), "{write:?}");
        assert_eq!(server.count(|seen| seen.is("tools/call")), 1);
        // The session is a new one all the same.
        client.request("tools/call", None, options()).await.unwrap();
        forgetful.forget();
        let read = RequestOptions {
            repeatable: true,
            ..options()
        };
        client.request("tools/call", None, read).await.unwrap();
        assert_eq!(server.count(|seen| seen.is("initialize")), 3);
        assert_eq!(server.count(|seen| seen.is("tools/call")), 4);
    })
    .await;
}

#[tokio::test]
async fn a_404_without_a_session_or_for_an_unknown_method_is_final() {
    deadline(async {
        let stateless = Server::start(|seen| basics(seen, None).unwrap_or_else(not_found)).await;
        let unknown = Server::start(|seen| {
            basics(seen, Some("s")).unwrap_or_else(|| {
                let error = json!({"code": -32601, "message": "unknown"});
                let mut answer =
                    json_answer(&json!({"jsonrpc": "2.0", "id": seen.id(), "error": error}));
                *answer.status_mut() = StatusCode::NOT_FOUND;
                answer
            })
        })
        .await;
        for server in [stateless, unknown] {
            let client = server.connect(()).await;
            let outcome = client.request("call", None, options()).await;
            assert_eq!(
                outcome.unwrap_err().http_status(),
                Some(StatusCode::NOT_FOUND)
            );
            assert_eq!(server.count(|seen| seen.is("initialize")), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_that_cannot_be_replaced_closes_the_client() {
    deadline(async {
        let forgetful = Forgetful::default();
        let script = forgetful.clone();
        let server = Server::start(move |seen| {
            if seen.is("initialize") && script.given.load(Ordering::SeqCst) > 0 {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            script.answer(seen, not_found)
        })
        .await;
        let client = server.connect(()).await;
        forgetful.forget();
        let error = client.request("call", None, options()).await.unwrap_err();
        assert!(matches!(error, RequestError::Closed(_)));
        assert_eq!(error.http_status(), Some(StatusCode::UNAUTHORIZED));
        assert!(matches!(
            *client.closed().await,
            CloseReason::SessionLost(_)
        ));
    })
    .await;
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_take_the_new_session_with_it() {
    deadline(async {
        let forgetful = Forgetful::default();
        let script = forgetful.clone();
        let server = Server::start(move |seen| script.answer(seen, not_found)).await;
        let client = server.connect(()).await;
        forgetful.forget();
        tokio::select! {
            biased;
            () = eventually("the new session is begun", || {
                server.count(|seen| seen.is("initialize")) == 2
            }) => {}
            _ = client.request("call", None, options()) => {}
        }
        eventually("the new session is in use", || {
            client.handshake().server.version == "2"
        })
        .await;
        client.request("call", None, options()).await.unwrap();
        assert_eq!(server.count(|seen| seen.is("initialize")), 2);
    })
    .await;
}

#[tokio::test]
async fn the_servers_own_stream_finds_out_too() {
    deadline(async {
        let forgetful = Forgetful::default();
        let script = forgetful.clone();
        let server = Server::start(move |seen| {
            // The session is lost before the first stream is opened.
            if seen.http_method == Method::GET && script.given.load(Ordering::SeqCst) == 1 {
                script.forget();
            }
            script.answer(seen, not_found)
        })
        .await;
        let (events, mut heard) = recorder();
        let client = server.connect(events).await;
        assert!(matches!(heard.recv().await, Some(Heard::SessionReplaced)));
        assert_eq!(client.handshake().server.version, "2");
    })
    .await;
}
