//! The transport of 2024-11-05, asked for or found out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use mcp::client::{
    Client, CloseReason, ConnectError, Era, EventStreamError, HttpTransport, Origin, RequestError,
    RequestOptions,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{
    Heard, Seen, Server, deadline, discover_result, eventually, hello_in, initialize_result,
    options, recorder, response, sse_answer,
};

/// Where the server writes its events; gone when the stream is to end.
type Stream = Arc<Mutex<Option<mpsc::Sender<String>>>>;

/// A server of 2024-11-05 whose messages go to `endpoint`.
async fn server(stream: Stream, endpoint: &'static str) -> Server {
    Server::start(move |seen| match (&seen.http_method, seen.path.as_str()) {
        (&Method::GET, "/mcp") => open(&stream, endpoint),
        (&Method::POST, "/messages") => {
            take(&stream, seen);
            StatusCode::ACCEPTED.into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    })
    .await
}

fn open(stream: &Stream, endpoint: &str) -> Response {
    let (sender, receiver) = mpsc::channel::<String>(64);
    let first = format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n");
    *stream.lock().unwrap() = Some(sender);
    let later = stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    });
    let text = stream::iter([first]).chain(later);
    sse_answer(Body::from_stream(text.map(Ok::<_, std::io::Error>)))
}

fn take(stream: &Stream, seen: &Seen) {
    let result = match seen.message["method"].as_str() {
        Some("server/discover") => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let answer = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
            return say(stream, &answer);
        }
        Some("initialize") => {
            let mut result = initialize_result();
            result["protocolVersion"] = json!("2024-11-05");
            result
        }
        Some("echo") => seen.message["params"].clone(),
        _ => return,
    };
    say(stream, &response(seen.id(), &result));
}

fn say(stream: &Stream, message: &Value) {
    let event = format!("event: message\ndata: {message}\n\n");
    let stream = stream.lock().unwrap();
    stream.as_ref().unwrap().try_send(event).unwrap();
}

async fn connect(server: &Server) -> Result<Client, ConnectError> {
    let mut endpoint = server.endpoint();
    endpoint.transport = HttpTransport::Sse;
    Client::connect_http(endpoint, hello_in(None), ()).await
}

#[tokio::test]
async fn answers_come_on_the_stream_and_messages_go_where_it_says() {
    deadline(async {
        let stream = Stream::default();
        let server = server(Arc::clone(&stream), "/messages?session=7").await;
        let mut endpoint = server.endpoint();
        endpoint.transport = HttpTransport::Sse;
        let authorization = "Bearer token".parse().unwrap();
        endpoint.headers.insert("authorization", authorization);
        let (events, mut heard) = recorder();
        let client = Client::connect_http(endpoint, hello_in(None), events)
            .await
            .unwrap();
        assert_eq!(client.era(), Era::Legacy);
        assert_eq!(client.handshake().protocol.as_str(), "2024-11-05");
        let params = crate::support::raw(r#"{"a":1}"#);
        let echoed = client.request("echo", Some(params), options()).await;
        assert_eq!(echoed.unwrap().get(), r#"{"a":1}"#);

        say(
            &stream,
            &json!({"jsonrpc": "2.0", "method": "notifications/message"}),
        );
        let notified = heard.recv().await;
        assert!(matches!(
            notified,
            Some(Heard::Notification(_, Origin::Connection))
        ));
        say(
            &stream,
            &json!({"jsonrpc": "2.0", "id": "q", "method": "ask", "params": {"b": 2}}),
        );
        eventually("the server's request is answered", || {
            server.count(|seen| seen.message["result"] == json!({"b": 2})) == 1
        })
        .await;
        assert!(server.seen().iter().all(|seen| {
            seen.header("authorization") == Some("Bearer token")
                && seen.header("mcp-session-id").is_none()
        }));
        let asked = server
            .seen()
            .into_iter()
            .map(|seen| seen.message["method"].clone());
        let asked: Vec<_> = asked.filter(|method| !method.is_null()).collect();
        let expected = [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "echo",
        ];
        assert_eq!(asked, expected);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_takes_no_messages_at_its_address_is_tried_like_this() {
    for era in [None, Some(Era::Legacy)] {
        deadline(async {
            let server = server(Stream::default(), "messages").await;
            let connecting = Client::connect_http(server.endpoint(), hello_in(era), ());
            let client = connecting.await.unwrap();
            let result = client.request("echo", Some(crate::support::raw("{}")), options());
            assert_eq!(result.await.unwrap().get(), "{}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_modern_server_may_speak_over_it_asked_for_or_found_out() {
    for (transport, era) in [
        (HttpTransport::Sse, None),
        (HttpTransport::Sse, Some(Era::Modern)),
        (HttpTransport::Streamable, None),
        (HttpTransport::Streamable, Some(Era::Modern)),
    ] {
        deadline(async {
            let stream = Stream::default();
            let server = modern_server(Arc::clone(&stream)).await;
            let mut endpoint = server.endpoint();
            endpoint.transport = transport;
            let connecting = Client::connect_http(endpoint, hello_in(era), ());
            let client = connecting.await.unwrap();
            assert_eq!(client.era(), Era::Modern);
            let asked = Some(crate::support::raw(r#"{"a":1}"#));
            let echoed = client.request("echo", asked, options()).await.unwrap();
            let echoed: Value = serde_json::from_str(echoed.get()).unwrap();
            assert_eq!(echoed["a"], 1);
            let version = &echoed["_meta"]["io.modelcontextprotocol/protocolVersion"];
            assert_eq!(version, "2026-07-28");
            let greeted = |seen: &Seen| seen.path == "/messages" && seen.is("initialize");
            assert_eq!(server.count(greeted), 0);
        })
        .await;
    }
}

/// A server that knows the modern era only, behind the old transport.
async fn modern_server(stream: Stream) -> Server {
    Server::start(move |seen| match (&seen.http_method, seen.path.as_str()) {
        (&Method::GET, "/mcp") => open(&stream, "/messages"),
        (&Method::POST, "/messages") => {
            match seen.message["method"].as_str() {
                Some("server/discover") => say(&stream, &response(seen.id(), &discover_result())),
                Some("echo") => take(&stream, seen),
                _ => {}
            }
            StatusCode::ACCEPTED.into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    })
    .await
}

#[tokio::test]
async fn a_server_that_does_not_answer_the_question_for_its_era_is_a_legacy_one() {
    deadline(async {
        let stream = Stream::default();
        let server = Server::start(move |seen| match (&seen.http_method, seen.path.as_str()) {
            (&Method::GET, "/mcp") => open(&stream, "/messages"),
            (&Method::POST, "/messages") if seen.is("server/discover") => {
                StatusCode::BAD_REQUEST.into_response()
            }
            _ => {
                take(&stream, seen);
                StatusCode::ACCEPTED.into_response()
            }
        })
        .await;
        let client = connect(&server).await.unwrap();
        assert_eq!(client.era(), Era::Legacy);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_announced() {
    deadline(async {
        let server = server(Stream::default(), "/messages").await;
        let client = connect(&server).await.unwrap();
        let brief = RequestOptions {
            timeout: Some(Duration::from_millis(50)),
            ..options()
        };
        let outcome = client.request("slow", None, brief).await;
        assert!(matches!(outcome, Err(RequestError::Timeout { .. })));
        eventually("the server heard of it", || {
            server.count(|seen| seen.is("notifications/cancelled")) == 1
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    deadline(async {
        let stream = Stream::default();
        let server = server(Arc::clone(&stream), "/messages").await;
        let client = connect(&server).await.unwrap();
        let calling = client.request("slow", None, options());
        let ending = async {
            eventually("the call arrived", || {
                server.count(|seen| seen.is("slow")) == 1
            })
            .await;
            stream.lock().unwrap().take();
        };
        let (outcome, ()) = tokio::join!(calling, ending);
        assert!(
            matches!(outcome, Err(RequestError::Closed(_))),
            "{outcome:?}"
        );
        assert!(matches!(*client.closed().await, CloseReason::Ended { .. }));
        let later = client.notify("notifications/x", None).await;
        assert!(matches!(later, Err(RequestError::NotSent(_))));
    })
    .await;
}

#[tokio::test]
async fn closing_hangs_up() {
    deadline(async {
        let stream = Stream::default();
        let server = server(Arc::clone(&stream), "/messages").await;
        let client = connect(&server).await.unwrap();
        let sender = stream.lock().unwrap().take().unwrap();
        client.close().await;
        assert!(matches!(*client.closed().await, CloseReason::Requested));
        sender.closed().await;
    })
    .await;
}

#[tokio::test]
async fn messages_do_not_leave_the_origin() {
    deadline(async {
        for elsewhere in ["http://127.0.0.1:1/messages", "//example.com/messages"] {
            let server = server(Stream::default(), elsewhere).await;
            let failure = connect(&server).await.unwrap_err();
            assert!(
                matches!(
                    failure,
                    ConnectError::EventStream(EventStreamError::OtherOrigin { .. })
                ),
                "{failure:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_no_such_stream_is_told_apart() {
    deadline(async {
        let page = Server::start(|_| "hello".into_response()).await;
        let failure = connect(&page).await.unwrap_err();
        assert!(matches!(
            failure,
            ConnectError::EventStream(EventStreamError::NotAnEndpoint)
        ));
        let other = Server::start(|_| sse_answer("data: {}\n\n")).await;
        let failure = connect(&other).await.unwrap_err();
        assert!(matches!(
            failure,
            ConnectError::EventStream(EventStreamError::NotAnEndpoint)
        ));
        let empty = Server::start(|_| sse_answer("")).await;
        let failure = connect(&empty).await.unwrap_err();
        assert!(matches!(
            failure,
            ConnectError::EventStream(EventStreamError::Ended)
        ));
        let locked = Server::start(|_| StatusCode::UNAUTHORIZED.into_response()).await;
        let failure = connect(&locked).await.unwrap_err();
        assert_eq!(failure.http_status(), Some(StatusCode::UNAUTHORIZED));
    })
    .await;
}
