//! The client over streamable HTTP: what it sends, and every way in which an answer may come.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use futures_util::{StreamExt, stream};
use mcp::client::{
    Client, CloseReason, ConnectError, HttpEndpoint, Origin, ProtocolError, RequestError,
    RequestOptions,
};
use serde_json::json;

use crate::support::{
    Heard, Server, basics, deadline, event, eventually, hello, json_answer, options, raw, recorder,
    response, sse_answer,
};

#[tokio::test]
async fn requests_carry_the_headers_of_the_protocol_and_those_of_the_caller() {
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, Some("s-1"))
                .unwrap_or_else(|| json_answer(&response(seen.id(), &json!({}))))
        })
        .await;
        let mut endpoint = server.endpoint();
        for (name, value) in [
            ("authorization", "Bearer token"),
            ("accept", "text/html"),
            ("content-type", "text/plain"),
            ("mcp-session-id", "forged"),
            ("mcp-protocol-version", "1999-01-01"),
        ] {
            endpoint.headers.insert(name, value.parse().unwrap());
        }
        let client = Client::connect_http(endpoint, hello(), ()).await.unwrap();
        let outcome = client
            .request("tools/list", Some(raw("{ }")), options())
            .await;
        assert_eq!(outcome.unwrap().get(), "{}");
        client.close().await;
        assert!(matches!(*client.closed().await, CloseReason::Requested));

        let seen = server.seen();
        for request in &seen {
            assert_eq!(request.header("authorization"), Some("Bearer token"));
            assert_eq!(request.headers.get_all("mcp-session-id").iter().count(), {
                usize::from(!request.is("initialize"))
            });
        }
        let initialize = seen.iter().find(|it| it.is("initialize")).unwrap();
        assert_eq!(initialize.header("mcp-protocol-version"), None);
        let list = seen.iter().find(|it| it.is("tools/list")).unwrap();
        assert_eq!(
            list.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(list.header("content-type"), Some("application/json"));
        assert_eq!(list.header("mcp-session-id"), Some("s-1"));
        assert_eq!(list.header("mcp-protocol-version"), Some("2025-11-25"));
        let delete = seen
            .iter()
            .find(|it| it.http_method == Method::DELETE)
            .unwrap();
        assert_eq!(delete.header("mcp-session-id"), Some("s-1"));
    })
    .await;
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_not_asked_again() {
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, None).unwrap_or_else(|| json_answer(&response(seen.id(), &json!(1))))
        })
        .await;
        let client = server.connect(()).await;
        eventually("the stream was asked for", || {
            server.count(|seen| seen.http_method == Method::GET) == 1
        })
        .await;
        for _ in 0..3 {
            client.request("call", None, options()).await.unwrap();
        }
        assert_eq!(server.count(|seen| seen.http_method == Method::GET), 1);
        // There is no session to end.
        client.close().await;
        assert_eq!(server.count(|seen| seen.http_method == Method::DELETE), 0);
    })
    .await;
}

#[tokio::test]
async fn a_refusal_to_connect_keeps_its_status() {
    for status in [401, 403, 404, 410, 500] {
        deadline(async {
            let server = Server::start(move |_| {
                let status = StatusCode::from_u16(status).unwrap();
                (
                    status,
                    [("www-authenticate", "Bearer realm=\"x\"")],
                    "go away",
                )
                    .into_response()
            })
            .await;
            let error = Client::connect_http(server.endpoint(), hello(), ())
                .await
                .unwrap_err();
            assert_eq!(error.http_status().unwrap().as_u16(), status);
            let ConnectError::Initialize(RequestError::Http(failure)) = error else {
                panic!("{error:?}");
            };
            assert_eq!(failure.body, "go away");
            assert_eq!(failure.www_authenticate, ["Bearer realm=\"x\""]);
            assert_eq!(server.count(|seen| seen.http_method == Method::POST), 1);
        })
        .await;
    }
}

#[tokio::test]
async fn nobody_listening_is_a_transport_error() {
    deadline(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        drop(listener);
        let endpoint = HttpEndpoint::new(url.parse().unwrap());
        let error = Client::connect_http(endpoint, hello(), ())
            .await
            .unwrap_err();
        assert!(
            matches!(error, ConnectError::Initialize(RequestError::Transport(_))),
            "{error:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn answers_over_the_limit_are_refused_in_either_form() {
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, None).unwrap_or_else(|| {
                let huge = response(seen.id(), &json!("x".repeat(10_000)));
                if seen.is("stream") {
                    sse_answer(event(&huge))
                } else {
                    json_answer(&huge)
                }
            })
        })
        .await;
        let mut endpoint = server.endpoint();
        endpoint.body_limit = 5_000;
        let client = Client::connect_http(endpoint, hello(), ()).await.unwrap();
        for method in ["stream", "body"] {
            let outcome = client.request(method, None, options()).await;
            assert!(
                matches!(outcome, Err(RequestError::TooLarge { bytes }) if bytes > 5_000),
                "{method}: {outcome:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn answers_that_are_none_are_told_apart() {
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, None).unwrap_or_else(|| match seen.message["method"].as_str() {
                Some("page") => ([("content-type", "text/html")], "<html>").into_response(),
                Some("empty") => StatusCode::ACCEPTED.into_response(),
                Some("other") => json_answer(&response(&json!(4_711), &json!({}))),
                Some("broken") => sse_answer(format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},}}\n\n", seen.id())),
                _ => json_answer(&json!({
                    "jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "what?"},
                })),
            })
        })
        .await;
        let client = server.connect(()).await;
        let page = client.request("page", None, options()).await;
        assert!(matches!(
            page,
            Err(RequestError::Protocol(ProtocolError::ContentType { found })) if found == "text/html"
        ));
        for method in ["empty", "other"] {
            let outcome = client.request(method, None, options()).await;
            assert!(
                matches!(outcome, Err(RequestError::Protocol(ProtocolError::NoAnswer))),
                "{method}: {outcome:?}"
            );
        }
        let broken = client.request("broken", None, options()).await;
        assert!(matches!(broken, Err(RequestError::Protocol(ProtocolError::Message(_)))));
        let nameless = client.request("nameless", None, options()).await;
        assert!(matches!(nameless, Err(RequestError::Rpc(error)) if error.code == -32600));
    })
    .await;
}

#[tokio::test]
async fn a_batch_in_a_body_holds_the_answer() {
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, None).unwrap_or_else(|| {
                json_answer(&json!([
                    {"jsonrpc": "2.0", "method": "notifications/message"},
                    response(seen.id(), &json!("mine")),
                    {"jsonrpc": "2.0", "method": "notifications/message"},
                ]))
            })
        })
        .await;
        let (events, mut heard) = recorder();
        let client = server.connect(events).await;
        let outcome = client.request("call", None, options()).await;
        assert_eq!(outcome.unwrap().get(), "\"mine\"");
        for _ in 0..2 {
            assert!(matches!(
                heard.recv().await,
                Some(Heard::Notification(_, Origin::Connection))
            ));
        }
    })
    .await;
}

#[tokio::test]
async fn a_result_is_passed_on_as_it_was_written() {
    const RESULT: &str = "{\n  \"z\" : 1.0,\n  \"a\" : [ 1e400, \"\\u0041\" ], \"a\": -0\n}";
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, None).unwrap_or_else(|| {
                let body = format!(
                    "{{\"id\":{},\"jsonrpc\":\"2.0\",\"result\":{RESULT}}}",
                    seen.id()
                );
                if seen.is("stream") {
                    return sse_answer(format!("data: {}\n\n", body.replace('\n', "\ndata: ")));
                }
                ([("content-type", "application/json")], body).into_response()
            })
        })
        .await;
        let client = server.connect(()).await;
        for method in ["stream", "body"] {
            let outcome = client.request(method, None, options()).await;
            assert_eq!(outcome.unwrap().get(), RESULT, "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn dropping_a_call_and_timing_out_both_cancel() {
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, Some("s")).unwrap_or_else(|| {
                sse_answer(Body::from_stream(
                    stream::pending::<Result<String, std::io::Error>>().boxed(),
                ))
            })
        })
        .await;
        let client = server.connect(()).await;
        let timeout = Some(Duration::from_millis(50));
        let outcome = client
            .request(
                "slow",
                None,
                RequestOptions {
                    timeout,
                    ..options()
                },
            )
            .await;
        assert!(matches!(outcome, Err(RequestError::Timeout { .. })));
        tokio::select! {
            _ = client.request("slow", None, options()) => panic!("nobody answered"),
            () = eventually("the call arrived", || server.count(|it| it.is("slow")) == 2) => {}
        }
        eventually("both were cancelled", || {
            server.count(|it| it.is("notifications/cancelled")) == 2
        })
        .await;
        let params: Vec<_> = server
            .seen()
            .into_iter()
            .filter(|it| it.is("notifications/cancelled"))
            .map(|it| it.message["params"].clone())
            .collect();
        assert!(params.contains(&json!({"requestId": 2, "reason": "timed out after 50 ms"})));
        assert!(params.contains(&json!({"requestId": 3})));
    })
    .await;
}

#[tokio::test]
async fn closing_fails_the_calls_that_still_wait() {
    deadline(async {
        let server = Server::start(|seen| {
            basics(seen, None).unwrap_or_else(|| {
                sse_answer(Body::from_stream(stream::pending::<
                    Result<String, std::io::Error>,
                >()))
            })
        })
        .await;
        let client = server.connect(()).await;
        let closing = async {
            eventually("the call arrived", || server.count(|it| it.is("slow")) == 1).await;
            client.close().await;
        };
        let (outcome, ()) = tokio::join!(client.request("slow", None, options()), closing);
        assert!(matches!(outcome, Err(RequestError::Closed(_))));
    })
    .await;
}
