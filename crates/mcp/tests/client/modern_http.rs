//! A modern server over HTTP: what requests carry, and what becomes of the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use futures_util::stream;
use mcp::client::{CallId, Client, CloseReason, Era, Origin, RequestError, RequestOptions};
use serde_json::{Value, json};

use crate::support::{
    Heard, Seen, Server, deadline, discovered, error, event, eventually, hello_in, json_answer,
    options, raw, recorder, response, sse_answer, with_status,
};

const META: &str = "io.modelcontextprotocol/";

fn meta<'a>(seen: &'a Seen, name: &str) -> &'a Value {
    &seen.message["params"]["_meta"][format!("{META}{name}")]
}

/// A modern server that answers every call with an empty result.
async fn server() -> Server {
    Server::start(|seen| {
        discovered(seen).unwrap_or_else(|| json_answer(&response(seen.id(), &json!({}))))
    })
    .await
}

fn last(server: &Server) -> Seen {
    server.seen().pop().unwrap()
}

#[tokio::test]
async fn every_request_stands_by_itself() {
    deadline(async {
        let server = server().await;
        let mut endpoint = server.endpoint();
        for (name, value) in [
            ("authorization", "Bearer token"),
            ("mcp-method", "forged"),
            ("mcp-name", "forged"),
            ("mcp-param-region", "forged"),
            ("mcp-session-id", "forged"),
        ] {
            endpoint.headers.insert(name, value.parse().unwrap());
        }
        let mut hello = hello_in(Some(Era::Modern));
        hello.capabilities = raw(r#"{"roots":{}}"#);
        let client = Client::connect_http(endpoint, hello, ()).await.unwrap();
        let calls = [
            (
                "tools/call",
                r#"{"name":"add","arguments":{}}"#,
                Some("add"),
            ),
            (
                "prompts/get",
                r#"{"name":"großartig"}"#,
                Some("=?base64?Z3Jvw59hcnRpZw==?="),
            ),
            (
                "resources/read",
                r#"{"uri":"file:///a b"}"#,
                Some("file:///a b"),
            ),
            ("tools/list", "{}", None),
            ("vendor/own", r#"{"name":"n"}"#, None),
        ];
        for (method, params, name) in calls {
            let params = Some(raw(params));
            client.request(method, params, options()).await.unwrap();
            let seen = last(&server);
            assert_eq!(seen.header("mcp-method"), Some(method));
            assert_eq!(seen.header("mcp-name"), name, "{method}");
        }
        client.close().await;
        assert!(matches!(*client.closed().await, CloseReason::Requested));
        for seen in server.seen() {
            assert_eq!(seen.http_method, Method::POST);
            assert_eq!(seen.header("authorization"), Some("Bearer token"));
            assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
            assert_eq!(seen.header("mcp-session-id"), None);
            assert_eq!(seen.header("mcp-param-region"), None);
            assert_eq!(meta(&seen, "protocolVersion"), "2026-07-28");
            assert_eq!(meta(&seen, "clientCapabilities"), &json!({"roots": {}}));
            let info = json!({"name": "tester", "version": "1.0"});
            assert_eq!(meta(&seen, "clientInfo"), &info);
        }
    })
    .await;
}

#[tokio::test]
async fn capabilities_and_log_level_are_those_of_the_request() {
    deadline(async {
        let server = server().await;
        let client = server.connect_modern(()).await;
        let with = |capabilities: &str| RequestOptions {
            capabilities: Some(raw(capabilities)),
            ..options()
        };
        client
            .request("a", None, with(r#"{"sampling":{}}"#))
            .await
            .unwrap();
        assert_eq!(
            meta(&last(&server), "clientCapabilities"),
            &json!({"sampling": {}})
        );
        assert!(meta(&last(&server), "logLevel").is_null());

        let level = Some(raw(r#"{"level":"warning"}"#));
        let before = server.seen().len();
        let result = client.request("logging/setLevel", level, options()).await;
        assert_eq!(result.unwrap().get(), "{}");
        assert_eq!(server.seen().len(), before, "nothing is sent for that");
        client.request("a", None, options()).await.unwrap();
        assert_eq!(meta(&last(&server), "clientCapabilities"), &json!({}));
        assert_eq!(meta(&last(&server), "logLevel"), "warning");
        let own = raw(&format!(
            r#"{{"_meta":{{"{META}logLevel":"debug","progressToken":1}}}}"#
        ));
        client.request("a", Some(own), options()).await.unwrap();
        assert_eq!(meta(&last(&server), "logLevel"), "debug");
        assert_eq!(last(&server).message["params"]["_meta"]["progressToken"], 1);

        let wrong = client.request("logging/setLevel", None, options()).await;
        assert!(matches!(wrong, Err(RequestError::Rpc(error)) if error.code == -32602));
        let wrong = client.request("a", Some(raw("[1]")), options()).await;
        assert!(matches!(wrong, Err(RequestError::Params(_))));
    })
    .await;
}

#[tokio::test]
async fn what_the_era_has_dropped_is_translated() {
    deadline(async {
        let server = server().await;
        let client = server.connect_modern(()).await;
        assert_eq!(
            client.request("ping", None, options()).await.unwrap().get(),
            "{}"
        );
        assert!(last(&server).is("server/discover"));
        let before = server.seen().len();
        for method in [
            "notifications/roots/list_changed",
            "notifications/initialized",
        ] {
            client.notify(method, None).await.unwrap();
        }
        assert_eq!(server.seen().len(), before);
        client
            .notify("notifications/own", Some(raw("{}")))
            .await
            .unwrap();
        assert_eq!(
            last(&server).header("mcp-method"),
            Some("notifications/own")
        );
    })
    .await;
}

fn tools() -> Value {
    json!({"resultType": "complete", "tools": [
        {"name": "deploy", "inputSchema": {"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
        }}},
        {"name": "broken", "inputSchema": {"type": "object", "properties": {
            "region": {"type": "number", "x-mcp-header": "Region"},
        }}},
        {"name": "plain", "inputSchema": {"type": "object"}},
    ]})
}

#[tokio::test]
async fn parameters_become_headers_and_impossible_tools_are_dropped() {
    deadline(async {
        let server = Server::start(|seen| {
            discovered(seen).unwrap_or_else(|| {
                let result = if seen.is("tools/list") {
                    tools()
                } else {
                    json!({})
                };
                json_answer(&response(seen.id(), &result))
            })
        })
        .await;
        let client = server.connect_modern(()).await;
        let listed = client.request("tools/list", None, options()).await.unwrap();
        let listed: Value = serde_json::from_str(listed.get()).unwrap();
        let tools = listed["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["deploy", "plain"]);

        let call = raw(r#"{"name":"deploy","arguments":{"region":" ü","count":null}}"#);
        client
            .request("tools/call", Some(call), options())
            .await
            .unwrap();
        let seen = last(&server);
        assert_eq!(seen.header("mcp-param-region"), Some("=?base64?IMO8?="));
        assert_eq!(seen.header("mcp-param-count"), None);
        let call = raw(r#"{"name":"plain","arguments":{"region":"x"}}"#);
        client
            .request("tools/call", Some(call), options())
            .await
            .unwrap();
        assert_eq!(last(&server).header("mcp-param-region"), None);
    })
    .await;
}

#[tokio::test]
async fn a_call_whose_headers_were_not_known_is_sent_again_with_them() {
    deadline(async {
        let server = Server::start(|seen| {
            discovered(seen).unwrap_or_else(|| {
                if seen.is("tools/list") {
                    return json_answer(&response(seen.id(), &tools()));
                }
                if seen.header("mcp-param-region") != Some("eu") {
                    return with_status(400, json_answer(&error(seen.id(), -32020, "header")));
                }
                json_answer(&response(seen.id(), &json!("done")))
            })
        })
        .await;
        let client = server.connect_modern(()).await;
        let call = || Some(raw(r#"{"name":"deploy","arguments":{"region":"eu"}}"#));
        let read = || RequestOptions {
            repeatable: true,
            ..options()
        };
        let result = client.request("tools/call", call(), read()).await.unwrap();
        assert_eq!(result.get(), "\"done\"");
        assert_eq!(server.count(|seen| seen.is("tools/call")), 2);
        // A mismatch that a list of tools does not explain stays one.
        let plain = Some(raw(r#"{"name":"plain"}"#));
        let outcome = client.request("tools/call", plain, read()).await;
        assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == -32020));
        assert_eq!(server.count(|seen| seen.is("tools/call")), 4);
        // One that may have had an effect is not sent again, but the next one has the headers.
        let client = server.connect_modern(()).await;
        let outcome = client.request("tools/call", call(), options()).await;
        assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == -32020));
        assert_eq!(server.count(|seen| seen.is("tools/call")), 5);
        client
            .request("tools/call", call(), options())
            .await
            .unwrap();
    })
    .await;
}

#[tokio::test]
async fn errors_are_those_in_the_body_unless_the_status_says_more() {
    deadline(async {
        let server = Server::start(|seen| {
            discovered(seen).unwrap_or_else(|| match seen.message["method"].as_str() {
                Some("unknown") => with_status(404, json_answer(&error(seen.id(), -32601, "?"))),
                Some("invalid") => with_status(400, json_answer(&error(seen.id(), -32602, "?"))),
                Some("locked") => with_status(401, json_answer(&error(seen.id(), -32000, "?"))),
                _ => StatusCode::NOT_FOUND.into_response(),
            })
        })
        .await;
        let client = server.connect_modern(()).await;
        for (method, code) in [("unknown", -32601), ("invalid", -32602)] {
            let outcome = client.request(method, None, options()).await;
            assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == code));
        }
        for (method, status) in [("locked", 401), ("nothing", 404)] {
            let failure = client.request(method, None, options()).await.unwrap_err();
            assert_eq!(failure.http_status().unwrap().as_u16(), status);
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_tells_of_its_call_and_is_not_taken_up_again() {
    deadline(async {
        let server = Server::start(|seen| {
            discovered(seen).unwrap_or_else(|| {
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/message",
                    "params": {"level": "info"}});
                let request = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
                let mut text = format!("id: 7\n{}{}", event(&progress), event(&request));
                if seen.is("whole") {
                    text += &event(&response(seen.id(), &json!("done")));
                }
                sse_answer(text)
            })
        })
        .await;
        let (events, mut heard) = recorder();
        let client = server.connect_modern(events).await;
        let call = CallId::fresh();
        let of_call = RequestOptions {
            call: Some(call),
            ..options()
        };
        let result = client.request("whole", None, of_call).await.unwrap();
        assert_eq!(result.get(), "\"done\"");
        let Some(Heard::Notification(_, origin)) = heard.recv().await else {
            panic!("no notification came");
        };
        assert_eq!(origin, Origin::Call(call));
        let cut = client.request("cut", None, options()).await;
        assert!(matches!(cut, Err(RequestError::StreamEnded)), "{cut:?}");
        // Neither did the stream lead to a GET nor the request on it to an answer.
        assert_eq!(server.seen().len(), 3);
        assert!(matches!(heard.recv().await, Some(Heard::Notification(..))));
        assert!(heard.try_recv().is_err());
    })
    .await;
}

/// Sets its flag when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_call_is_cancelled_by_hanging_up() {
    deadline(async {
        let (hung_up, calls) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let (flag, count) = (Arc::clone(&hung_up), Arc::clone(&calls));
        let server = Server::start(move |seen| {
            discovered(seen).unwrap_or_else(|| {
                count.fetch_add(1, Ordering::SeqCst);
                let held = Dropped(Arc::clone(&flag));
                let ticking = stream::unfold(held, |held| async {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                    Some((Ok::<_, std::io::Error>(": still here\n\n"), held))
                });
                sse_answer(Body::from_stream(ticking))
            })
        })
        .await;
        let client = server.connect_modern(()).await;
        tokio::select! {
            _ = client.request("slow", None, options()) => panic!("nobody answered"),
            () = eventually("the call arrived", || calls.load(Ordering::SeqCst) == 1) => {}
        }
        eventually("the server noticed", || hung_up.load(Ordering::SeqCst)).await;
        assert_eq!(server.count(|seen| seen.is("notifications/cancelled")), 0);
    })
    .await;
}
