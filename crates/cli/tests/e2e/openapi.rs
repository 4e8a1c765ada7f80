//! The OpenAPI document of a live daemon: valid by somebody else's judgement, and true.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use testkit::{Script, TestDaemon, Tool, http_client};
use tokio::process::Command;

use crate::support::{api_key, home, server_in};

/// A program that `scripts/test` installs.
fn program(name: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-tools/venv/bin");
    let path = tools.join(name);
    assert!(
        path.exists(),
        "{} is missing: run ./scripts/test setup to install it",
        path.display()
    );
    path
}

async fn daemon() -> TestDaemon {
    let home = home();
    let tools = [Tool::read_only("look"), Tool::destructive("wipe")];
    let up = home.upstream("up", &Script::new(tools));
    let config = json!({"mcpServers": {"up": up.config()}});
    let daemon = TestDaemon::start(home, config).await;
    server_in(&daemon, "up", "ready").await;
    daemon
}

/// Saves the document beside the daemon and returns its place.
async fn save_document(daemon: &TestDaemon) -> PathBuf {
    let url = daemon.url("/api/v1/openapi.json");
    let request = http_client().get(url).bearer_auth(api_key(&daemon.home));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json");
    let file = daemon.home.path().join("openapi.json");
    std::fs::write(&file, answer.text().await.unwrap()).unwrap();
    file
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program is killed when its handle is dropped"
)]
fn command(name: &str) -> Command {
    let mut command = Command::new(program(name));
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn succeeds(mut command: Command) {
    let output = command.output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
}

#[tokio::test]
async fn the_document_is_valid_by_an_independent_judge() {
    let daemon = daemon().await;
    let mut validator = command("openapi-spec-validator");
    validator.arg(save_document(&daemon).await);
    succeeds(validator).await;
}

/// Hundreds of requests, valid and not, made up from the document: no server error, no status and
/// no shape that the document does not have, and nothing invalid that is taken.
#[tokio::test]
async fn the_daemon_keeps_to_its_document() {
    let daemon = daemon().await;
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
    let mut schemathesis = command("schemathesis");
    schemathesis
        .arg("--config-file")
        .arg(peers.join("schemathesis.toml"))
        .arg("run")
        .arg(save_document(&daemon).await)
        .args(["--url", &daemon.url("")])
        .args(["--header", &format!("X-API-Key: {}", api_key(&daemon.home))])
        .env("SCHEMATHESIS_HOOKS", "schemathesis_hooks")
        .env("PYTHONPATH", &peers)
        .env("NO_COLOR", "1")
        .current_dir(daemon.home.path());
    succeeds(schemathesis).await;
    assert!(daemon.is_up().await);
}
