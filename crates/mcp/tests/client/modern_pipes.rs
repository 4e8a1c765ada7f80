//! A modern server over pipes.

use std::time::Duration;

use mcp::client::{RequestError, RequestOptions};
use serde_json::json;

use crate::support::{connect_modern, deadline, options, raw, response};

#[tokio::test]
async fn requests_stand_by_themselves_and_tools_come_as_they_are() {
    deadline(async {
        let (client, mut peer) = connect_modern(()).await;
        let tools = r#"{"tools": [{"name":"t","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}"#;
        let serving = async {
            let list = peer.read().await;
            let meta = &list["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
            let id = &list["id"];
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{tools}}}"#);
            peer.write_line(&line).await;
        };
        let (listed, ()) = tokio::join!(client.request("tools/list", None, options()), serving);
        // Only HTTP has headers that a tool could ask for wrongly.
        assert_eq!(listed.unwrap().get(), tools);
    })
    .await;
}

#[tokio::test]
async fn giving_up_is_announced() {
    deadline(async {
        let (client, mut peer) = connect_modern(()).await;
        let brief = RequestOptions {
            timeout: Some(Duration::from_millis(20)),
            ..options()
        };
        let outcome = client.request("tools/call", Some(raw("{}")), brief).await;
        assert!(matches!(outcome, Err(RequestError::Timeout { .. })));
        let call = peer.read().await;
        let cancelled = peer.read().await;
        assert_eq!(cancelled["method"], "notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
        assert_eq!(cancelled["params"]["reason"], "timed out after 20 ms");

        tokio::select! {
            _ = client.request("tools/call", None, options()) => panic!("nobody answered"),
            call = peer.read() => assert_eq!(call["method"], "tools/call"),
        }
        let cancelled = peer.read().await;
        assert_eq!(cancelled["method"], "notifications/cancelled");
    })
    .await;
}

#[tokio::test]
async fn closing_ends_the_servers_input() {
    deadline(async {
        let (client, mut peer) = connect_modern(()).await;
        client.close().await;
        assert!(peer.try_read().await.is_none());
        let outcome = client.request("tools/list", None, options()).await;
        assert!(matches!(outcome, Err(RequestError::NotSent(_))));
    })
    .await;
}

#[tokio::test]
async fn a_ping_is_a_question_that_such_a_server_knows() {
    deadline(async {
        let (client, mut peer) = connect_modern(()).await;
        let serving = async {
            let asked = peer.read().await;
            assert_eq!(asked["method"], "server/discover");
            peer.write(&response(&asked["id"], &json!({}))).await;
        };
        let (pong, ()) = tokio::join!(client.request("ping", None, options()), serving);
        assert_eq!(pong.unwrap().get(), "{}");
    })
    .await;
}
