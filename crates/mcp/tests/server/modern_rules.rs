//! What a modern request must be like, and what happens to those that are not.

use mcp::server::HttpOptions;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::modern_wire::{VERSION, able, meta, modern, tool};
use crate::wire::{Endpoint, body, notification, request, soon};

async fn status_and_error(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    (status, body(response).await)
}

#[tokio::test]
async fn discovery_says_what_initialize_would() {
    let endpoint = Endpoint::open().await;
    let response = endpoint
        .modern(&modern(1, "server/discover", json!({})))
        .await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.headers().contains_key("mcp-session-id"));
    let answer = body(response).await;
    let result = &answer["result"];
    let versions = [
        VERSION,
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05",
    ];
    assert_eq!(result["supportedVersions"], json!(versions));
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["ttlMs"], 0);
    assert_eq!(result["cacheScope"], "private");
    let who = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(who["name"], "script");
    assert_eq!(endpoint.server.session_count(), 0);
}

#[tokio::test]
async fn a_service_may_refuse_to_be_discovered() {
    let endpoint = Endpoint::open().await;
    let mut unwelcome = modern(1, "server/discover", json!({}));
    let info = "io.modelcontextprotocol/clientInfo";
    unwelcome["params"]["_meta"][info]["name"] = "unwelcome".into();
    assert_eq!(
        endpoint.answer(&unwelcome).await["error"]["message"],
        "not you"
    );
}

#[tokio::test]
async fn a_request_that_does_not_say_enough_about_itself_is_refused() {
    let endpoint = Endpoint::open().await;
    let without = |member: &str| {
        let mut meta = meta(&able());
        meta.as_object_mut().unwrap().remove(member);
        json!({ "_meta": meta })
    };
    let with = |member: &str, value: Value| {
        let mut meta = meta(&able());
        meta[member] = value;
        json!({ "_meta": meta })
    };
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let table = [
        json!({}),
        json!({"_meta": null}),
        without("io.modelcontextprotocol/protocolVersion"),
        without(capabilities),
        with(capabilities, json!([])),
        with("io.modelcontextprotocol/logLevel", json!("loud")),
    ];
    for params in table {
        for method in ["server/discover", "tools/list"] {
            let message = request(7, method, &params);
            let (status, answer) = status_and_error(endpoint.modern(&message).await).await;
            assert_eq!(status, 400, "{message}");
            assert_eq!(answer["error"]["code"], -32602, "{message}");
            assert_eq!(answer["id"], 7);
        }
    }
    let anonymous = without("io.modelcontextprotocol/clientInfo");
    let answer = endpoint.answer(&request(8, "tools/list", &anonymous)).await;
    assert!(answer["result"].is_object());
}

#[tokio::test]
async fn a_version_that_nobody_speaks_is_answered_with_those_that_we_do() {
    let endpoint = Endpoint::open().await;
    for version in ["v999.0.0", "2025-11-25"] {
        let mut message = modern(1, "server/discover", json!({}));
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = version.into();
        let request = endpoint
            .post(message.to_string())
            .header("mcp-protocol-version", version)
            .header("mcp-method", "server/discover");
        let (status, answer) = status_and_error(request.send().await.unwrap()).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32022)));
        let data = &answer["error"]["data"];
        assert_eq!(*data, json!({"supported": [VERSION], "requested": version}));
    }
}

#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let endpoint = Endpoint::open().await;
    let call = tool(1, "echo", &json!({}));
    let table: &[(&[(&str, &str)], bool)] = &[
        (
            &[
                ("mcp-protocol-version", VERSION),
                ("mcp-method", "tools/call"),
                ("mcp-name", "echo"),
            ],
            true,
        ),
        (
            &[
                ("mcp-protocol-version", VERSION),
                ("MCP-METHOD", "tools/call"),
                ("Mcp-Name", "=?base64?ZWNobw==?="),
            ],
            true,
        ),
        (
            &[
                ("mcp-protocol-version", VERSION),
                ("mcp-method", "tools/call"),
            ],
            false,
        ),
        (
            &[("mcp-protocol-version", VERSION), ("mcp-name", "echo")],
            false,
        ),
        (&[("mcp-method", "tools/call"), ("mcp-name", "echo")], false),
        (
            &[
                ("mcp-protocol-version", "2025-11-25"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "echo"),
            ],
            false,
        ),
        (
            &[
                ("mcp-protocol-version", VERSION),
                ("mcp-method", "TOOLS/CALL"),
                ("mcp-name", "echo"),
            ],
            false,
        ),
        (
            &[
                ("mcp-protocol-version", VERSION),
                ("mcp-method", "tools/call"),
                ("mcp-name", "wait"),
            ],
            false,
        ),
        (
            &[
                ("mcp-protocol-version", VERSION),
                ("mcp-method", "tools/call"),
                ("mcp-name", "=?base64?ZWNobw?="),
            ],
            false,
        ),
        (
            &[
                ("mcp-protocol-version", VERSION),
                ("mcp-method", "tools/call"),
                ("mcp-name", "echo"),
                ("mcp-name", "wait"),
            ],
            false,
        ),
    ];
    for (headers, accepted) in table {
        let mut request = endpoint.post(call.to_string());
        for (name, value) in *headers {
            request = request.header(*name, *value);
        }
        let (status, answer) = status_and_error(request.send().await.unwrap()).await;
        if *accepted {
            assert_eq!(status, 200, "{headers:?} {answer}");
        } else {
            assert_eq!(status, 400, "{headers:?}");
            assert_eq!(answer["error"]["code"], -32020, "{headers:?}");
            assert_eq!(answer["id"], 1);
        }
    }
    assert_eq!(endpoint.script.events.borrow().begun, 2);
}

#[tokio::test]
async fn a_name_that_is_given_twice_is_refused_whatever_the_header_repeats() {
    let endpoint = Endpoint::open().await;
    let call = tool(1, "echo", &json!({})).to_string();
    let twice = call.replacen(r#""name":"echo""#, r#""name":"wait","name":"echo""#, 1);
    assert_ne!(call, twice);
    for name in ["echo", "wait"] {
        let request = endpoint
            .post(twice.clone())
            .header("mcp-protocol-version", VERSION)
            .header("mcp-method", "tools/call")
            .header("mcp-name", name);
        let (status, answer) = status_and_error(request.send().await.unwrap()).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32602)));
    }
    assert_eq!(endpoint.script.events.borrow().begun, 0);
}

#[tokio::test]
async fn arguments_that_a_tool_wants_in_headers_are_checked() {
    let endpoint = Endpoint::open().await;
    let call = tool(1, "regional", &json!({"region": "Hello"}));
    for (value, accepted) in [
        (Some("Hello"), true),
        (Some("=?base64?SGVsbG8=?="), true),
        (Some("=?base64?SGVsbG8?="), false),
        (Some("Goodbye"), false),
        (None, false),
    ] {
        let mut request = endpoint.modern_post(&call);
        if let Some(value) = value {
            request = request.header("Mcp-Param-Region", value);
        }
        let (status, answer) = status_and_error(request.send().await.unwrap()).await;
        assert_eq!(status == 200, accepted, "{value:?} {answer}");
        assert_eq!(answer["error"]["code"] == -32020, !accepted, "{value:?}");
    }
    let absent = tool(2, "regional", &json!({}));
    assert_eq!(endpoint.modern(&absent).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn methods_that_are_gone_or_never_were_are_not_found() {
    let endpoint = Endpoint::open().await;
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "unknown/method",
    ] {
        let message = modern(9, method, json!({"uri": "a"}));
        let (status, answer) = status_and_error(endpoint.modern(&message).await).await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (404, &json!(-32601)),
            "{method}"
        );
        assert_eq!(answer["id"], 9);
    }
    assert!(endpoint.script.events.borrow().subscriptions.is_empty());
    assert_eq!(endpoint.server.session_count(), 0);
}

#[tokio::test]
async fn without_a_session_there_is_nothing_to_get_or_delete() {
    let endpoint = Endpoint::open().await;
    for method in [Method::GET, Method::DELETE] {
        let request = endpoint
            .request(method)
            .header("accept", "text/event-stream")
            .header("mcp-protocol-version", VERSION);
        let response = soon(request.send()).await.unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn notifications_reach_the_service_and_responses_have_no_question() {
    let endpoint = Endpoint::open().await;
    let post = |message: &Value| {
        endpoint
            .post(message.to_string())
            .header("mcp-protocol-version", VERSION)
            .send()
    };
    let hello = notification("notifications/custom", &json!({}));
    assert_eq!(post(&hello).await.unwrap().status(), StatusCode::ACCEPTED);
    endpoint
        .script
        .until(|events| events.notifications == ["notifications/custom"])
        .await;
    let cancel = notification("notifications/cancelled", &json!({"requestId": 1}));
    assert_eq!(post(&cancel).await.unwrap().status(), StatusCode::ACCEPTED);
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    assert_eq!(
        post(&response).await.unwrap().status(),
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn both_eras_are_served_at_once() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-11-25").await;
    let list = endpoint.answer(&modern(1, "tools/list", json!({}))).await;
    assert_eq!(list["result"]["tools"][0]["name"], "echo");
    assert_eq!(list["result"]["resultType"], "complete");
    let legacy = body(session.send(&request(1, "tools/list", &json!({}))).await).await;
    let tools = json!([{"name": "echo", "inputSchema": {"type": "object"}}]);
    assert_eq!(legacy["result"], json!({ "tools": tools }));
    let ping = body(session.send(&request(2, "ping", &json!({}))).await).await;
    assert_eq!(ping["result"], json!({}));
    // The member of the modern era is no reason to leave a session.
    let odd = json!({"name": "echo", "arguments": {}, "_meta": meta(&able())});
    let odd = body(session.send(&request(3, "tools/call", &odd)).await).await;
    assert_eq!(odd["result"], json!({}));
}

#[tokio::test]
async fn a_resource_that_is_not_there_is_an_invalid_parameter_to_modern_clients_only() {
    let endpoint = Endpoint::open().await;
    let modern = endpoint
        .answer(&modern(1, "resources/read", json!({"uri": "test://x"})))
        .await;
    assert_eq!(modern["error"]["code"], -32602);
    assert_eq!(modern["error"]["data"], json!({"uri": "test://x"}));
    let session = endpoint.session("2025-11-25").await;
    let read = request(1, "resources/read", &json!({"uri": "test://x"}));
    let legacy = body(session.send(&read).await).await;
    assert_eq!(legacy["error"]["code"], -32002);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_anything_else() {
    let endpoint = Endpoint::with(HttpOptions {
        max_body_bytes: 500,
        ..HttpOptions::default()
    })
    .await;
    let large = tool(1, "echo", &json!({"text": "x".repeat(500)}));
    let response = endpoint.modern(&large).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}
