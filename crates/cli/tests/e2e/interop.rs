//! Clients that others wrote, at the endpoints for one upstream and for all: each lists, calls,
//! prompts, reads and completes, in every era that it speaks.

use std::path::Path;

use rmcp::model::{
    CallToolRequestParams, ContentBlock, GetPromptRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use testkit::conformance::{Eras, Fixture};
use testkit::{TestDaemon, http_client};

use crate::peers::{command, json_output, node, tool};
use crate::support::home;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

const CALLED: &str = "This is a simple text response for testing.";
const PROMPTED: &str = "Prompt with arguments: arg1='one', arg2='two'";
const READ: &str = "This is the content of the static text resource.";

/// A daemon in front of two fixtures: a legacy one over stdio and a modern one over HTTP.
struct Endpoints {
    daemon: TestDaemon,
    _fixture: Fixture,
}

/// Where a client is sent, and what the names of tools and prompts begin with there.
struct Endpoint {
    url: String,
    prefix: &'static str,
}

impl Endpoints {
    async fn open() -> Self {
        let home = home();
        let fixture = Fixture::http(0, Eras::Modern).await.unwrap();
        let servers = json!({
            "pipe": home.conformance_upstream(Eras::Legacy),
            "web": fixture.config(),
        });
        let daemon = TestDaemon::with_servers(home, servers).await;
        for server in ["pipe", "web"] {
            daemon.wait_for_server(server).await;
        }
        Self {
            daemon,
            _fixture: fixture,
        }
    }

    /// Both upstreams as themselves, and both of them through the endpoint for all.
    fn all(&self) -> [Endpoint; 4] {
        let endpoint = |path: &str, prefix| Endpoint {
            url: self.daemon.url(path),
            prefix,
        };
        [
            endpoint("/mcp/server/pipe", ""),
            endpoint("/mcp/server/web", ""),
            endpoint("/mcp/direct", "pipe__"),
            endpoint("/mcp/direct", "web__"),
        ]
    }

    /// One upstream by each endpoint, for clients that take long to start.
    fn one_each(&self) -> [Endpoint; 2] {
        let [pipe, _, _, web] = self.all();
        [pipe, web]
    }
}

impl Endpoint {
    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Checks what a client reports of its visit.
    fn check(&self, report: &Value, protocol: &str) {
        let tools = report["tools"].as_array().unwrap();
        assert!(
            tools.contains(&json!(self.name("test_simple_text"))),
            "{report}"
        );
        assert_eq!(report["call"], CALLED, "{report}");
        assert_eq!(report["prompt"], PROMPTED, "{report}");
        assert_eq!(report["resource"], READ, "{report}");
        assert_eq!(report["completion"], json!(["test", "testing"]), "{report}");
        assert_eq!(report["protocol"], protocol, "{report}");
    }
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peers")
        .join(name)
}

#[tokio::test]
async fn the_python_sdk_uses_both_endpoints_in_both_eras() {
    let endpoints = Endpoints::open().await;
    for endpoint in endpoints.one_each() {
        for (mode, protocol) in [("auto", MODERN), ("legacy", LEGACY)] {
            let mut command = command(tool("venv/bin").join("python"), &endpoints.daemon.home);
            command
                .arg(script("python_endpoint.py"))
                .args([&endpoint.url, endpoint.prefix, mode]);
            endpoint.check(&json_output(command).await, protocol);
        }
    }
}

#[tokio::test]
async fn the_typescript_sdk_uses_both_endpoints_in_both_eras() {
    let endpoints = Endpoints::open().await;
    let module = tool("node_modules/@modelcontextprotocol/client/dist/index.mjs");
    for endpoint in endpoints.one_each() {
        for (mode, protocol) in [("auto", MODERN), ("legacy", LEGACY)] {
            let mut command = command(node(), &endpoints.daemon.home);
            command
                .arg(script("typescript_endpoint.mjs"))
                .arg(&module)
                .args([&endpoint.url, endpoint.prefix, mode]);
            endpoint.check(&json_output(command).await, protocol);
        }
    }
}

/// Its command line knows no completions.
async fn inspect(endpoints: &Endpoints, endpoint: &Endpoint, era: &str) {
    let run = async |arguments: &[&str]| {
        let mut command = command(node(), &endpoints.daemon.home);
        command
            .arg(tool("node_modules/.bin/mcp-inspector"))
            .args([
                "--cli",
                &endpoint.url,
                "--transport",
                "http",
                "--format",
                "json",
            ])
            .args(["-q", "--protocol-era", era, "--method"])
            .args(arguments);
        let mut answer = json_output(command).await;
        answer["result"].take()
    };
    let (text, prompt) = (
        endpoint.name("test_simple_text"),
        endpoint.name("test_prompt_with_arguments"),
    );
    let listed = run(&["tools/list"]).await;
    let names = listed["tools"].as_array().unwrap().iter();
    let mut names = names.map(|tool| &tool["name"]);
    assert!(names.any(|name| *name == text), "{era}: {listed}");
    let called = run(&["tools/call", "--tool-name", &text]).await;
    assert_eq!(called["content"][0]["text"], CALLED, "{era}: {called}");
    let arguments = ["--prompt-args", "arg1=one", "arg2=two"];
    let prompting = [&["prompts/get", "--prompt-name", &prompt], &arguments[..]].concat();
    let prompted = run(&prompting).await;
    let said = &prompted["messages"][0]["content"]["text"];
    assert_eq!(said, PROMPTED, "{era}: {prompted}");
    let read = run(&["resources/read", "--uri", "test://static-text"]).await;
    assert_eq!(read["contents"][0]["text"], READ, "{era}: {read}");
}

#[tokio::test]
async fn the_inspector_uses_both_endpoints_as_a_legacy_client() {
    let endpoints = Endpoints::open().await;
    for endpoint in endpoints.one_each() {
        inspect(&endpoints, &endpoint, "legacy").await;
    }
}

#[tokio::test]
async fn the_inspector_uses_both_endpoints_as_it_sees_fit() {
    let endpoints = Endpoints::open().await;
    for endpoint in endpoints.one_each() {
        inspect(&endpoints, &endpoint, "auto").await;
    }
}

#[tokio::test]
async fn the_inspector_uses_both_endpoints_as_a_modern_client() {
    let endpoints = Endpoints::open().await;
    for endpoint in endpoints.one_each() {
        inspect(&endpoints, &endpoint, "modern").await;
    }
}

#[tokio::test]
async fn rmcp_uses_both_endpoints_in_both_eras() {
    let endpoints = Endpoints::open().await;
    for endpoint in endpoints.all() {
        endpoint.check(
            &rmcp_report(&endpoint, ClientLifecycleMode::Initialize).await,
            LEGACY,
        );
        let modern = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::LATEST],
        };
        endpoint.check(&rmcp_report(&endpoint, modern).await, MODERN);
    }
}

async fn rmcp_report(endpoint: &Endpoint, lifecycle: ClientLifecycleMode) -> Value {
    let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
    let transport = StreamableHttpClientTransport::with_client(http_client(), config);
    let client = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
    let protocol = client.peer_info().unwrap().protocol_version.clone();
    let tools = client.list_all_tools().await.unwrap();
    let call = CallToolRequestParams::new(endpoint.name("test_simple_text"));
    let called = client.call_tool(call).await.unwrap();
    let prompt = endpoint.name("test_prompt_with_arguments");
    let arguments = json!({"arg1": "one", "arg2": "two"});
    let get =
        GetPromptRequestParams::new(&prompt).with_arguments(arguments.as_object().unwrap().clone());
    let prompted = client.get_prompt(get).await.unwrap();
    let read = ReadResourceRequestParams::new("test://static-text");
    let read = client.read_resource(read).await.unwrap();
    let completing = client.complete_prompt_simple(&prompt, "arg1", "te").await;
    let report = json!({
        "protocol": protocol.to_string(),
        "tools": tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(),
        "call": text(&called.content[0]),
        "prompt": text(&prompted.messages[0].content),
        "resource": match &read.contents[0] {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            other => panic!("not a text: {other:?}"),
        },
        "completion": completing.unwrap(),
    });
    client.cancel().await.unwrap();
    report
}

fn text(block: &ContentBlock) -> &str {
    &block.as_text().unwrap().text
}
