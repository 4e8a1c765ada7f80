//! What an endpoint refuses, with which status and which words.

use mcp::server::HttpOptions;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::wire::{Endpoint, body, call, hello, notification, request, soon};

async fn refused(request: RequestBuilder, status: StatusCode) -> Value {
    let response = soon(request.send()).await.unwrap();
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["content-type"], "application/json");
    let answer = body(response).await;
    assert_eq!(answer["jsonrpc"], "2.0");
    answer["error"].clone()
}

#[tokio::test]
async fn a_post_must_take_both_kinds_of_answer() {
    let endpoint = Endpoint::open().await;
    for accept in ["application/json", "text/event-stream", "text/html"] {
        let request = endpoint
            .request(Method::POST)
            .header("content-type", "application/json")
            .header("accept", accept)
            .body(hello("2025-06-18"));
        let error = refused(request, StatusCode::NOT_ACCEPTABLE).await;
        assert!(error["message"].as_str().unwrap().contains("Accept"));
    }
    for accept in [
        "*/*",
        "application/*, text/*",
        "application/json;q=0.1, text/event-stream",
    ] {
        let request = endpoint
            .request(Method::POST)
            .header("content-type", "application/json; charset=utf-8")
            .header("accept", accept)
            .body(hello("2025-06-18"));
        assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_post_must_be_json() {
    let endpoint = Endpoint::open().await;
    for content_type in ["text/plain", "application/jsonp", ""] {
        let request = endpoint
            .request(Method::POST)
            .header("content-type", content_type)
            .header("accept", "*/*")
            .body(hello("2025-06-18"));
        refused(request, StatusCode::UNSUPPORTED_MEDIA_TYPE).await;
    }
}

#[tokio::test]
async fn a_listener_must_take_events() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let request = endpoint
        .request(Method::GET)
        .header("accept", "application/json")
        .header("mcp-session-id", &session.id);
    refused(request, StatusCode::NOT_ACCEPTABLE).await;
}

#[tokio::test]
async fn other_methods_are_not_allowed() {
    let endpoint = Endpoint::open().await;
    for method in [Method::PUT, Method::PATCH] {
        let response = endpoint.request(method).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()["allow"], "GET, POST, DELETE");
    }
}

#[tokio::test]
async fn a_session_must_be_named_and_known() {
    let endpoint = Endpoint::open().await;
    let list = request(7, "tools/list", &json!({})).to_string();
    let response = endpoint.post(list.clone()).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let answer = body(response).await;
    assert_eq!(answer["id"], 7);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("initialize")
    );

    let unknown = endpoint
        .post(list)
        .header("mcp-session-id", "0123456789abcdef");
    let error = refused(unknown, StatusCode::NOT_FOUND).await;
    assert_eq!(error["code"], -32001);
    for method in [Method::GET, Method::DELETE] {
        refused(
            endpoint.request(method.clone()),
            StatusCode::METHOD_NOT_ALLOWED,
        )
        .await;
        let unknown = endpoint
            .request(method)
            .header("mcp-session-id", "nonsense");
        refused(unknown, StatusCode::NOT_FOUND).await;
    }
}

#[tokio::test]
async fn an_unknown_version_is_refused_and_a_missing_one_is_not() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-06-18").await;
    let ping = request(1, "ping", &json!({})).to_string();
    let plain = |version: Option<&str>| {
        let request = endpoint
            .post(ping.clone())
            .header("mcp-session-id", &session.id);
        match version {
            Some(version) => request.header("mcp-protocol-version", version),
            None => request,
        }
    };
    let error = refused(plain(Some("1999-12-31")), StatusCode::BAD_REQUEST).await;
    assert!(error["message"].as_str().unwrap().contains("2025-11-25"));
    for version in [None, Some("2025-06-18"), Some("2025-03-26")] {
        let answer = body(plain(version).send().await.unwrap()).await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    }
}

#[tokio::test]
async fn what_is_not_json_rpc_is_refused_with_its_code() {
    let endpoint = Endpoint::open().await;
    let table = [
        ("{", -32700),
        ("", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0"}"#, -32600),
    ];
    for (message, code) in table {
        let error = refused(endpoint.post(message), StatusCode::BAD_REQUEST).await;
        assert_eq!(error["code"], code, "{message}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_whether_or_not_it_says_its_size() {
    let endpoint = Endpoint::with(HttpOptions {
        max_body_bytes: 2_000,
        ..HttpOptions::default()
    })
    .await;
    let session = endpoint.session("2025-06-18").await;
    let large = call(1, "echo", &json!({"text": "x".repeat(2_000)})).to_string();
    let error = refused(endpoint.post(large.clone()), StatusCode::PAYLOAD_TOO_LARGE).await;
    assert!(error["message"].as_str().unwrap().contains("2000"));

    let pieces = large
        .into_bytes()
        .chunks(100)
        .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
        .collect::<Vec<_>>();
    let unsized_body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    refused(endpoint.post(unsized_body), StatusCode::PAYLOAD_TOO_LARGE).await;

    let small = session
        .call(2, "echo", &json!({"text": "x".repeat(1_000)}))
        .await;
    assert_eq!(small.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_service_may_refuse_a_client() {
    let endpoint = Endpoint::open().await;
    let unwelcome = hello("2025-06-18").replace("wire", "unwelcome");
    let response = endpoint.post(unwelcome).send().await.unwrap();
    assert!(!response.headers().contains_key("mcp-session-id"));
    assert_eq!(body(response).await["error"]["message"], "not you");
    assert_eq!(endpoint.server.session_count(), 0);
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_the_newest_and_a_broken_hello_with_an_error() {
    let endpoint = Endpoint::open().await;
    let response = endpoint.post(hello("2099-01-01")).send().await.unwrap();
    let answer = body(response).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let broken = request(0, "initialize", &json!([])).to_string();
    let answer = body(endpoint.post(broken).send().await.unwrap()).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn batches_are_for_the_versions_that_have_them() {
    let endpoint = Endpoint::open().await;
    let batch = json!([
        request(1, "ping", &json!({})),
        notification("notifications/roots/list_changed", &json!({})),
        call(2, "echo", &json!({"a": 1})),
        request(3, "nothing/like/it", &json!({})),
    ]);
    let old = endpoint.session("2025-03-26").await;
    let answers = body(old.send(&batch).await).await;
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(answers[1]["result"], json!({"a": 1}));
    assert_eq!(answers[2]["error"]["code"], -32601);
    endpoint
        .script
        .until(|events| events.notifications == ["notifications/roots/list_changed"])
        .await;
    let quiet = json!([notification("notifications/initialized", &json!({}))]);
    assert_eq!(old.send(&quiet).await.status(), StatusCode::ACCEPTED);

    let new = endpoint.session("2025-06-18").await;
    refused(new.post(&batch), StatusCode::BAD_REQUEST).await;
}
