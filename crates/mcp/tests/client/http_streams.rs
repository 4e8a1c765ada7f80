//! Answers and server messages that come on streams, which may be cut and taken up again.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use futures_util::{FutureExt, StreamExt, stream};
use mcp::client::{CallId, Origin, RequestError, RequestOptions};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Heard, Server, basics, deadline, event, eventually, options, recorder, response, sse_answer,
};

#[tokio::test]
async fn a_stream_may_prime_notify_and_ask_before_it_answers() {
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, None).unwrap_or_else(|| {
                let notification = json!({"jsonrpc": "2.0", "method": "notifications/message"});
                let request = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list", "params": {"a": 1}});
                let text = [
                    "id: 1\ndata:\n\n: keep-alive\n\n".to_owned(),
                    event(&notification),
                    event(&request),
                    event(&response(&json!(99_999), &json!("somebody else's"))),
                    event(&response(seen.id(), &json!("mine"))),
                ];
                sse_answer(text.concat())
            })
        })
        .await;
        let (events, mut heard) = recorder();
        let client = server.connect(events).await;
        let call = CallId::fresh();
        let options = RequestOptions { call: Some(call), ..options() };
        assert_eq!(client.request("call", None, options).await.unwrap().get(), "\"mine\"");
        let mut origins = Vec::new();
        for _ in 0..2 {
            match heard.recv().await.unwrap() {
                Heard::Notification(_, origin) => origins.push(origin),
                Heard::Request(request, origin) => {
                    assert_eq!(request.method, "roots/list");
                    origins.push(origin);
                }
                Heard::SessionReplaced => panic!("the session was not lost"),
            }
        }
        assert_eq!(origins, [Origin::Call(call), Origin::Call(call)]);
        eventually("the server's request was answered", || {
            server.count(|seen| {
                seen.message == json!({"jsonrpc": "2.0", "id": "q", "result": {"a": 1}})
            }) == 1
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_is_cut_is_resumed_where_it_was() {
    deadline(async {
        let server = Server::start(|seen| {
            if seen.http_method == Method::GET {
                return match seen.header("last-event-id") {
                    None => StatusCode::METHOD_NOT_ALLOWED.into_response(),
                    Some("a-1") => sse_answer("id: a-2\ndata:\n\n"),
                    Some("a-2") => StatusCode::BAD_GATEWAY.into_response(),
                    Some(other) => panic!("{other}"),
                };
            }
            basics(seen, None).unwrap_or_else(|| sse_answer("id: a-1\nretry: 10\ndata:\n\n"))
        })
        .await;
        let client = server.connect(()).await;
        let request = client.request("call", None, options());
        let outcome = request.await;
        // The server never gets better, so the client gives up in the end.
        assert!(
            matches!(outcome, Err(RequestError::StreamEnded)),
            "{outcome:?}"
        );
        let resumed =
            |id: &'static str| server.count(move |seen| seen.header("last-event-id") == Some(id));
        assert_eq!(resumed("a-1"), 1);
        assert!(resumed("a-2") > 5);
    })
    .await;
}

#[tokio::test]
async fn a_resumed_stream_brings_the_answer_after_the_time_the_server_asked_for() {
    deadline(async {
        let cut = CancellationToken::new();
        let server = Server::start({
            let cut = cut.clone();
            move |seen| {
                if seen.http_method == Method::GET {
                    return match seen.header("last-event-id") {
                        None => StatusCode::METHOD_NOT_ALLOWED.into_response(),
                        // The call was the second request, after `initialize`.
                        Some(_) => sse_answer(event(&response(&json!(2), &json!("at last")))),
                    };
                }
                basics(seen, None).unwrap_or_else(|| {
                    let notification = json!({"jsonrpc": "2.0", "method": "notifications/message"});
                    let begun =
                        format!("id: a-1\nretry: 300\n{}data: {{\"jso", event(&notification));
                    let cut = cut.clone().cancelled_owned();
                    let cut = cut.map(|()| Err(std::io::Error::other("cut")));
                    let body = stream::iter([Ok(begun)]).chain(stream::once(cut));
                    sse_answer(Body::from_stream(body))
                })
            }
        })
        .await;
        let (events, mut heard) = recorder();
        let client = server.connect(events).await;
        let begun = Instant::now();
        let cutting = async {
            assert!(matches!(heard.recv().await, Some(Heard::Notification(..))));
            cut.cancel();
        };
        let (outcome, ()) = tokio::join!(client.request("call", None, options()), cutting);
        assert_eq!(outcome.unwrap().get(), "\"at last\"");
        assert!(begun.elapsed() >= Duration::from_millis(300));
    })
    .await;
}

#[tokio::test]
async fn a_stream_without_a_place_to_resume_from_is_an_error() {
    deadline(async {
        let server =
            Server::start(|seen| basics(seen, None).unwrap_or_else(|| sse_answer(": nothing\n\n")))
                .await;
        let client = server.connect(()).await;
        let outcome = client.request("call", None, options()).await;
        assert!(matches!(outcome, Err(RequestError::StreamEnded)));
    })
    .await;
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_stream_that_ends_late() {
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, None).unwrap_or_else(|| {
                let answer = event(&response(seen.id(), &json!(1)));
                let end = tokio::time::sleep(Duration::from_millis(5)).map(|()| Ok(String::new()));
                let body = stream::iter([Ok::<_, std::io::Error>(answer)]).chain(stream::once(end));
                sse_answer(Body::from_stream(body))
            })
        })
        .await;
        let client = server.connect(()).await;
        for _ in 0..20 {
            client.request("call", None, options()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let connections: HashSet<_> = server.seen().iter().map(|seen| seen.connection).collect();
        assert!(connections.len() < 10, "{} connections", connections.len());
    })
    .await;
}

#[tokio::test]
async fn the_servers_own_stream_is_heard_and_taken_up_again() {
    deadline(async {
        let server = Server::start(|seen| {
            if seen.http_method == Method::GET {
                let method = match seen.header("last-event-id") {
                    None => "notifications/first",
                    Some("1") => "notifications/second",
                    Some(_) => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
                };
                let id = if method.ends_with("first") { 1 } else { 2 };
                let message = json!({"jsonrpc": "2.0", "method": method});
                return sse_answer(format!("id: {id}\nretry: 10\n{}", event(&message)));
            }
            basics(seen, Some("s")).unwrap()
        })
        .await;
        let (events, mut heard) = recorder();
        let _client = server.connect(events).await;
        for expected in ["notifications/first", "notifications/second"] {
            assert!(matches!(
                heard.recv().await,
                Some(Heard::Notification(notification, Origin::Connection))
                    if notification.method == expected
            ));
        }
    })
    .await;
}
