//! Both eras through a daemon.

use serde_json::json;
use testkit::{DEADLINE, wait_until};

use crate::client::{Client, ERAS, Era, Place};

#[tokio::test]
async fn a_client_of_either_era_lists_and_calls() {
    let place = Place::new(json!({})).await;
    for era in ERAS {
        let mut client = Client::start(&place.daemon.home, era).await;
        if era == Era::Modern {
            let discovered = client.request("server/discover", json!({})).await;
            let versions = &discovered["result"]["supportedVersions"];
            assert!(
                versions.as_array().unwrap().contains(&json!("2026-07-28")),
                "{discovered}"
            );
        }
        let list = client.request("tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 6);
        client.call_ok("look").await;
        let unknown = client.request("no/such/method", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601);
        let refused = json!({"name": "call_tool_read", "arguments": {
            "name": "up:look", "intent": {"operation_type": "write"}}});
        let refused = client.request("tools/call", refused).await;
        assert_eq!(
            refused["result"]["structuredContent"]["code"],
            "INTENT_MISMATCH"
        );
        client.close_stdin();
        assert!(client.ended().await.success());
    }
    // One upstream for all of them.
    assert_eq!(place.record.pids().len(), 1);
}

#[tokio::test]
async fn a_version_that_is_not_spoken_is_answered_with_those_that_are() {
    let place = Place::new(json!({})).await;
    let mut client = Client::start(&place.daemon.home, Era::Modern).await;
    let request = json!({"jsonrpc": "2.0", "id": "v", "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    client.write(&request.to_string()).await;
    let answer = client.next().await;
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    assert_eq!(answer["id"], "v");
}

#[tokio::test]
async fn cancellation_reaches_the_upstream_in_either_era() {
    for era in ERAS {
        let place = Place::new(json!({})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        let id = client.send_call("hang").await;
        place.until_called("hang", 1).await;
        let cancelled = json!({"requestId": id});
        client.notify("notifications/cancelled", &cancelled).await;
        wait_until("the upstream is told", DEADLINE, async || {
            !place.record.received("notifications/cancelled").is_empty()
        })
        .await;
        client.call_ok("look").await;
    }
}

#[tokio::test]
async fn subscriptions_are_acknowledged_and_do_not_hold_up_the_end() {
    let place = Place::new(json!({"shutdown_grace": 60})).await;
    let mut client = Client::start(&place.daemon.home, Era::Modern).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    client.send("subscriptions/listen", wanted).await;
    let first = client.next().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    client.call_ok("look").await;
    client.close_stdin();
    // Within less than the grace, which is for calls.
    assert!(client.ended().await.success());
}
