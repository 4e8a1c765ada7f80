//! Values of configured env and headers, and tokens known by their shape, are nowhere in what the
//! daemon writes, exports, sends or prints.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::{HttpUpstream, Script, TestDaemon, Tool};

use crate::support::{Proxy, api_key, home, rest_text};
use crate::wire::Events;

const IN_ENVIRONMENT: &str = "canary-env-7f3a9c21";
const IN_HEADER: &str = "canary-header-b84d11e0";
/// Never alone in the config: behind a scheme, in a line, beside a variable that is not set.
const BEHIND_SCHEME: &str = "canary-scheme-90be77d3";
const IN_LINE: &str = "canary-line-3c55ef08";
const BESIDE_UNSET: &str = "canary-beside-6d1204fb";

/// Put together here, so that no scanner takes this file for a leak.
fn shapes() -> Vec<String> {
    let letters = "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4f";
    vec![
        format!("ghp_{letters}"),
        format!("sk-ant-{letters}"),
        format!("AKIA{}", "ABCDEFGHIJ234567"),
        format!("xoxb-{}-{letters}", "123456789012"),
        format!("eyJhbGciOiJIUzI1NiJ9.{letters}.{letters}"),
    ]
}

/// What must not be found anywhere.
fn canaries() -> Vec<String> {
    let mut canaries = shapes();
    canaries.extend(
        [
            IN_ENVIRONMENT,
            IN_HEADER,
            BEHIND_SCHEME,
            IN_LINE,
            BESIDE_UNSET,
        ]
        .map(ToOwned::to_owned),
    );
    canaries
}

async fn start() -> (Proxy, HttpUpstream) {
    let home = home();
    let leak = format!("the token is {IN_ENVIRONMENT} and {}", shapes()[0]);
    let content = json!({"content": [{"type": "text", "text": leak}], "isError": true});
    let fails = Tool::read_only("fails").returns(content.to_string());
    let upstream = home.upstream("up", &Script::new([Tool::read_only("look"), fails]));
    let script = Script::new([Tool::read_only("look")]);
    let remote = HttpUpstream::start(home.path(), "remote", script).await;
    let mut remote_config = remote.config();
    remote_config["headers"] =
        json!({"Authorization": format!("Custom {BEHIND_SCHEME}"), "X-Key": IN_HEADER});
    let lines = format!("first line\n{IN_LINE}\nlast line");
    let servers = json!({
        "up": upstream.config_with(&json!({"env": {"API_TOKEN": IN_ENVIRONMENT, "LINES": lines}})),
        "remote": remote_config,
        // Its secrets are secrets although it cannot be started.
        "half": {"command": "nothing", "env": {"A": BESIDE_UNSET, "B": "${env:MCPPROXY_UNSET}"}},
    });
    let record = upstream.record();
    let daemon = TestDaemon::with_servers(home, servers).await;
    daemon.session_with(&["up:look", "remote:look"]).await;
    (Proxy { daemon, record }, remote)
}

/// Calls that carry every canary in arguments, reasons, names, results and errors.
async fn leak(proxy: &Proxy) {
    let mut client = proxy.client().await;
    for canary in canaries() {
        let text = format!("before {canary} after");
        let intent = json!({"operation_type": "read", "reason": text});
        let nested = json!({"deep": [{"key": text, canary.clone(): "as a key"}], "plain": canary});
        for server in ["up", "remote"] {
            let arguments =
                json!({"name": format!("{server}:look"), "args": nested, "intent": intent});
            let result = client.call("call_tool_read", &arguments).await.unwrap();
            // The call itself is not touched: the upstream gets, and returns, what was sent.
            assert!(result.to_string().contains(&canary), "{result}");
        }
        let args_json = nested.to_string();
        for name in ["up:fails", &format!("up:{canary}"), &canary] {
            let arguments = json!({"name": name, "args_json": args_json, "intent": intent});
            client.call("call_tool_read", &arguments).await.unwrap();
        }
    }
}

#[track_caller]
fn assert_clean(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for canary in canaries() {
        if let Some(place) = text.find(&canary) {
            let around: String = text[..place].chars().rev().take(80).collect();
            let around: String = around.chars().rev().collect();
            panic!("{canary} is in {what} after {around:?}");
        }
    }
}

/// Every file under the folder but the config, which is where the secrets come from.
fn assert_files_clean(folder: &Path) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += assert_files_clean(&path);
        } else if path.is_file() && !path.ends_with("mcp_config.json") {
            assert_clean(&path.display().to_string(), &fs::read(&path).unwrap());
            files += 1;
        }
    }
    files
}

#[tokio::test]
async fn secrets_are_nowhere() {
    let (proxy, _remote) = start().await;
    let key = api_key(&proxy.daemon.home);
    leak(&proxy).await;

    for format in ["json", "jsonl", "csv"] {
        let path = format!("/activity/export?include_bodies=true&format={format}");
        let (status, export) = rest_text(&proxy.daemon, &path).await;
        assert_eq!(status, 200);
        assert!(export.contains("[REDACTED]"), "{export}");
        assert_clean(&path, export.as_bytes());
    }
    let mut events = Events::watch(proxy.daemon.address(), &key, "", Some(0))
        .await
        .ok()
        .unwrap();
    let mut client = proxy.client().await;
    let last =
        json!({"name": "up:look", "args": {"n": "last"}, "intent": {"operation_type": "read"}});
    client.call("call_tool_read", &last).await.unwrap();
    loop {
        let event = events.next().await.unwrap();
        assert_clean("an event", event.data.to_string().as_bytes());
        if event.data["arguments"]["n"] == "last" {
            break;
        }
    }
    let searched = proxy.data("/activity?q=canary").await;
    assert_eq!(searched["total"], 0, "{searched}");

    assert_clean("the output", proxy.daemon.log().as_bytes());
    let folder = proxy.daemon.home.path().join(".mcpproxy");
    assert!(
        assert_files_clean(&folder) >= 4,
        "the log and its companions"
    );
    let (home, _) = proxy.daemon.stop().await;
    assert_files_clean(&home.path().join(".mcpproxy"));
    let shown = home.cli(["activity", "list", "-o", "yaml"]).await;
    assert_clean("a list", shown.succeeded().stdout.as_bytes());
}

#[tokio::test]
async fn a_secret_that_is_configured_later_is_struck_out_from_then_on() {
    let (proxy, _remote) = start().await;
    let secret = "canary-later-55aa77cc";
    let mut config: Value =
        serde_json::from_slice(&fs::read(proxy.daemon.home.config_file()).unwrap()).unwrap();
    config["mcpServers"]["up"]["env"]["SECOND"] = secret.into();
    proxy.daemon.reconfigure(config);
    testkit::wait_until("the config is applied", testkit::DEADLINE, async || {
        !proxy.list("?type=config_change").await.is_empty()
    })
    .await;
    let session = proxy.daemon.session_with(&["up:look"]).await;
    let call =
        json!({"name": "up:look", "args": {"n": secret}, "intent": {"operation_type": "read"}});
    session.call("call_tool_read", &call).await;
    let record = &proxy.list("?tool=look&limit=1").await[0];
    assert_eq!(record["arguments"]["n"], "[REDACTED]", "{record}");
}
