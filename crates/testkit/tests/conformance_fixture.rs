//! The fixture of the conformance suite itself: each transport answers in the eras it was told.
#![expect(clippy::expect_used, reason = "helpers of tests fail the test")]

use std::process::Stdio;

use mcp::client::{Client, Events, Hello, HttpEndpoint, Origin, RequestOptions};
use mcp::lines::DEFAULT_LINE_LIMIT;
use mcp::{ErrorObject, Notification, RawValue, Request};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use testkit::DEADLINE;
use testkit::conformance::{Eras, Fixture};
use tokio::process::{Child, Command};

/// Says its name to whoever asks.
struct Ada;

impl Events for Ada {
    fn notification(&self, _: Notification, _: Origin) {}

    async fn request(&self, _: Request, _: Origin) -> Result<Box<RawValue>, ErrorObject> {
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        to_raw_value(&answer).map_err(|error| ErrorObject::internal(error.to_string()))
    }
}

fn hello() -> Hello {
    let mut hello = Hello::new("kit", "1");
    hello.era = None;
    // A busy machine must not be taken for a legacy server.
    hello.probe_timeout = DEADLINE;
    hello.capabilities = to_raw_value(&json!({"elicitation": {}})).expect("JSON");
    hello
}

async fn over_http(url: &str) -> Client {
    let endpoint = HttpEndpoint::new(url.parse().expect("a URL"));
    let connecting = Client::connect_http(endpoint, hello(), Ada).await;
    connecting.expect("it connects")
}

#[expect(
    clippy::disallowed_methods,
    reason = "killed when the handle is dropped"
)]
async fn over_stdio(eras: Eras) -> (Client, Child) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_conformance-upstream"))
        .args(["--transport", "stdio", "--era", eras.as_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (stdin, stdout) = (stdin.expect("stdin"), stdout.expect("stdout"));
    let client = Client::connect_lines(stdout, stdin, DEFAULT_LINE_LIMIT, hello(), Ada).await;
    (client.expect("it connects"), child)
}

/// Whether it speaks the modern era; it has to have asked for a name on the way.
async fn is_modern(client: &Client) -> bool {
    let params = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
    let params = to_raw_value(&params).expect("JSON");
    let options = RequestOptions::default();
    let calling = client.request("tools/call", Some(params), options).await;
    let result: Value = serde_json::from_str(calling.expect("an answer").get()).expect("JSON");
    assert_eq!(result["content"][0]["text"], "Hello, \"Ada\"!");
    client.handshake().protocol.is_modern()
}

#[tokio::test]
async fn streamable_http_speaks_the_eras_it_was_told() {
    for (eras, modern) in [
        (Eras::Both, true),
        (Eras::Legacy, false),
        (Eras::Modern, true),
    ] {
        let fixture = Fixture::http(0, eras).await.expect("it listens");
        assert_eq!(
            is_modern(&over_http(fixture.url()).await).await,
            modern,
            "{eras:?}"
        );
    }
}

#[tokio::test]
async fn stdio_speaks_the_eras_it_was_told() {
    for (eras, modern) in [
        (Eras::Both, true),
        (Eras::Legacy, false),
        (Eras::Modern, true),
    ] {
        let (client, _child) = over_stdio(eras).await;
        assert_eq!(is_modern(&client).await, modern, "{eras:?}");
    }
}

#[tokio::test]
async fn the_transport_of_2024_is_found_and_speaks_the_eras_it_was_told() {
    for (eras, modern) in [
        (Eras::Both, true),
        (Eras::Legacy, false),
        (Eras::Modern, true),
    ] {
        let fixture = Fixture::sse(0, eras).await.expect("it listens");
        let client = over_http(fixture.url()).await;
        assert_eq!(is_modern(&client).await, modern, "{eras:?}");
    }
}
