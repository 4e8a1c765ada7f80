//! `mcpproxy connect` and `mcpproxy upstream import`: other programs' files, from the command line.

use serde_json::json;
use testkit::{Home, TestDaemon};

use crate::support::home;

fn place(home: &Home, name: &str, text: &str) {
    let file = home.path().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn read(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path().join(name)).unwrap()
}

#[tokio::test]
async fn a_client_is_connected_previewed_and_disconnected() {
    let home = home();
    let before = "{\n  // mine\n  \"mcpServers\": {}\n}\n";
    place(&home, ".cursor/mcp.json", before);
    let preview = home.cli(["connect", "cursor", "--dry-run"]).await;
    preview.succeeded();
    assert!(
        preview.stdout.contains("+    \"mcpproxy\": {"),
        "{}",
        preview.stdout
    );
    assert!(
        preview.stdout.contains("http://127.0.0.1:8080/mcp"),
        "{}",
        preview.stdout
    );
    assert!(
        preview.stdout.ends_with("nothing was changed\n"),
        "{}",
        preview.stdout
    );
    assert_eq!(read(&home, ".cursor/mcp.json"), before);
    home.cli(["connect", "cursor", "--yes"]).await.succeeded();
    assert!(read(&home, ".cursor/mcp.json").contains("mcpproxy"));
    assert_eq!(read(&home, ".cursor/mcp.json.before-mcpproxy"), before);
    let again = home.cli(["connect", "cursor"]).await;
    assert!(
        again.succeeded().stdout.contains("already"),
        "{}",
        again.stdout
    );
    home.cli(["connect", "cursor", "--undo", "--yes"])
        .await
        .succeeded();
    assert_eq!(read(&home, ".cursor/mcp.json"), before);
    assert!(
        !home
            .path()
            .join(".cursor/mcp.json.before-mcpproxy")
            .exists()
    );
    home.cli(["connect", "cursor", "--undo", "--yes"])
        .await
        .ended_with(6);
}

#[tokio::test]
async fn the_address_is_that_of_the_running_daemon() {
    let daemon = TestDaemon::with_servers(home(), json!({})).await;
    let home = &daemon.home;
    let output = home
        .cli([
            "connect",
            "claude-code",
            "--approve",
            "read",
            "--yes",
            "-o",
            "json",
        ])
        .await;
    let report = output.succeeded().json();
    assert_eq!(report["applied"], true);
    assert_eq!(report["files"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["files"][0]["change"], "create");
    let state: serde_json::Value = serde_json::from_str(&read(home, ".claude.json")).unwrap();
    assert_eq!(state["mcpServers"]["mcpproxy"]["url"], daemon.url("/mcp"));
}

#[tokio::test]
async fn a_program_that_is_started_is_told_which_config_to_use() {
    let home = home();
    place(&home, "elsewhere.json", "{}");
    let file = home.path().join("elsewhere.json");
    let file = file.to_str().unwrap();
    home.cli(["connect", "gemini", "--stdio", "--yes", "--config", file])
        .await
        .succeeded();
    let settings: serde_json::Value =
        serde_json::from_str(&read(&home, ".gemini/settings.json")).unwrap();
    let entry = &settings["mcpServers"]["mcpproxy"];
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_mcpproxy"));
    assert_eq!(entry["args"], json!(["stdio", "--config", file]));
}

#[tokio::test]
async fn a_script_must_say_yes() {
    let home = home();
    let output = home.cli(["connect", "cursor"]).await;
    output.ended_with(2);
    assert!(output.stderr.contains("--yes"), "{}", output.stderr);
    assert!(!home.path().join(".cursor").exists());
}

#[tokio::test]
async fn bad_input_is_told_and_nothing_is_written() {
    let home = home();
    let unknown = home.cli(["connect", "curser", "--yes"]).await;
    unknown.ended_with(6);
    assert!(
        unknown.stderr.contains("did you mean 'cursor'?"),
        "{}",
        unknown.stderr
    );
    assert!(unknown.stderr.contains("windsurf"), "{}", unknown.stderr);
    place(&home, ".cursor/mcp.json", "{\n  \"mcpServers\": {\n");
    let broken = home.cli(["connect", "cursor", "--yes"]).await;
    broken.ended_with(1);
    assert!(
        broken.stderr.contains(".cursor/mcp.json:2:17"),
        "{}",
        broken.stderr
    );
    assert_eq!(read(&home, ".cursor/mcp.json"), "{\n  \"mcpServers\": {\n");
    home.write_config(&json!({"require_mcp_auth": true}));
    let key = home.cli(["connect", "cline", "--yes"]).await;
    key.ended_with(2);
    assert!(
        key.stderr.contains("mcpproxy connect cline --stdio"),
        "{}",
        key.stderr
    );
}

#[tokio::test]
async fn all_clients_are_listed_with_their_state() {
    let home = home();
    home.cli(["connect", "codex", "--yes"]).await.succeeded();
    place(&home, ".gemini/settings.json", "{}");
    place(&home, ".cursor/mcp.json", "{");
    let list = home.cli(["connect", "-o", "json"]).await.succeeded().json();
    let state = |name: &str| {
        let clients = list["clients"].as_array().unwrap();
        clients.iter().find(|it| it["client"] == name).unwrap()["state"].clone()
    };
    assert_eq!(state("codex"), "connected");
    assert_eq!(state("gemini"), "not connected");
    assert_eq!(state("cursor"), "unreadable");
    assert_eq!(state("windsurf"), "no config");
    let table = home.cli(["connect"]).await;
    assert!(
        table.succeeded().stdout.starts_with("CLIENT"),
        "{}",
        table.stdout
    );
}

#[tokio::test]
async fn secrets_beside_a_change_are_masked_in_the_preview() {
    let home = home();
    place(
        &home,
        ".cursor/mcp.json",
        "{\n \"mcpServers\": {\n  \"a\": {\"url\": \"https://a/\",\n   \"headers\": {\"K\": \"canary-4711\"}}\n }\n}\n",
    );
    for format in ["table", "json"] {
        let output = home
            .cli(["connect", "cursor", "--dry-run", "-o", format])
            .await;
        assert!(
            !output.succeeded().stdout.contains("canary-4711"),
            "{}",
            output.stdout
        );
        assert!(output.stdout.contains("[REDACTED]"), "{}", output.stdout);
    }
}

#[tokio::test]
async fn servers_of_other_clients_are_imported_and_their_files_stay() {
    let home = home();
    let upstream = home.upstream(
        "up",
        &testkit::Script::new([testkit::Tool::read_only("look")]),
    );
    let theirs = json!({"mcpServers": {
        "up": upstream.config(),
        "hosted": {"url": "https://example.invalid/mcp?key=canary-1", "headers": {"X": "canary-2"}},
        "flags": {"command": "srv", "args": ["--api-key", "canary-3", "--token=canary-4", "plain"], "env": {"E": "canary-5"}},
        "mcpproxy": {"url": "http://127.0.0.1:8080/mcp"}
    }})
    .to_string();
    place(&home, ".cursor/mcp.json", &theirs);
    place(
        &home,
        ".codex/config.toml",
        "[mcp_servers.up]\ncommand = \"another\"\n",
    );
    place(&home, ".gemini/settings.json", "{ broken");
    let preview = home.cli(["upstream", "import", "--dry-run"]).await;
    preview.succeeded();
    for word in ["up-codex", "--token=***", "mcpproxy itself", "plain"] {
        assert!(preview.stdout.contains(word), "{word}: {}", preview.stdout);
    }
    assert!(preview.stderr.contains("Gemini CLI"), "{}", preview.stderr);
    assert!(!home.config_file().exists());
    home.cli(["upstream", "import"]).await.ended_with(2);
    let import = home
        .cli(["upstream", "import", "--yes", "-o", "json"])
        .await;
    let report = import.succeeded().json();
    assert_eq!(report["imported"], true);
    for output in [&preview.stdout, &import.stdout, &import.stderr] {
        assert!(!output.contains("canary"), "{output}");
    }
    assert_eq!(read(&home, ".cursor/mcp.json"), theirs);
    let config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(home.config_file()).unwrap()).unwrap();
    let names: Vec<&String> = config["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["up", "hosted", "flags", "up-codex"]);
    let call = home.cli(["call", "tool-read", "up:look"]).await;
    call.succeeded();
    let again = home.cli(["upstream", "import"]).await;
    assert!(
        again.succeeded().stdout.contains("nothing to import"),
        "{}",
        again.stdout
    );
}

#[tokio::test]
async fn an_import_can_be_narrowed() {
    let home = home();
    place(
        &home,
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}"#,
    );
    place(
        &home,
        ".gemini/settings.json",
        r#"{"mcpServers": {"c": {"command": "c"}}}"#,
    );
    let names = async |arguments: &[&str]| {
        let base = ["upstream", "import", "--dry-run", "-o", "json"];
        let output = home.cli(base.iter().chain(arguments)).await;
        let servers = output.succeeded().json()["servers"]
            .as_array()
            .unwrap()
            .clone();
        servers
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["--from", "cursor"]).await, ["a", "b"]);
    assert_eq!(names(&["--server", "b", "--server", "c"]).await, ["b", "c"]);
    let unknown = home
        .cli(["upstream", "import", "--server", "x", "--yes"])
        .await;
    unknown.ended_with(6);
    home.cli(["upstream", "import", "--from", "emacs"])
        .await
        .ended_with(6);
}
