//! `--move`: servers leave the clients' own files when mcpproxy has them, and come back.

use serde_json::{Value, json};
use testkit::{Home, Script, TestDaemon, Tool};

use crate::cli_terminal::on_terminal;
use crate::support::home;

fn place(home: &Home, name: &str, text: &str) {
    let file = home.path().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn read(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path().join(name)).unwrap()
}

fn names(home: &Home, file: &str) -> Vec<String> {
    let state: Value = serde_json::from_str(&read(home, file)).unwrap();
    let servers = state["mcpServers"].as_object().unwrap();
    servers.keys().cloned().collect()
}

fn ours(home: &Home) -> Vec<String> {
    names(home, ".mcpproxy/mcp_config.json")
}

/// The codes of doctor's warnings and problems about clients.
async fn client_codes(home: &Home) -> Vec<String> {
    let report = home.cli(["doctor", "-o", "json"]).await.json();
    let checks = report["checks"].as_array().unwrap().iter();
    let of_clients = checks.filter(|check| check["check"] == "client");
    of_clients
        .filter_map(|check| check["code"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn doctor_warns_until_the_servers_have_moved_and_undo_brings_them_back() {
    let home = home();
    let upstream = home.upstream("up", &Script::new([Tool::read_only("look")]));
    let theirs = json!({"numStartups": 3, "mcpServers": {"up": upstream.config()}}).to_string();
    place(&home, ".claude.json", &theirs);
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    let home = &daemon.home;
    home.cli(["connect", "claude-code", "--yes"])
        .await
        .succeeded();
    let report = home.cli(["doctor", "-o", "json"]).await.json();
    let checks = report["checks"].as_array().unwrap();
    let twice = checks.iter().find(|it| it["code"] == "CLIENT_SERVER_TWICE");
    let twice = twice.unwrap_or_else(|| panic!("{report}"));
    assert!(
        twice["cause"].as_str().unwrap().ends_with("log: up"),
        "{twice}"
    );
    // The fix as it is printed, said yes to.
    let fix = twice["fix"].as_str().unwrap().strip_prefix("mcpproxy ");
    let fix: Vec<&str> = fix.unwrap().split(' ').chain(["--yes"]).collect();
    home.cli(fix).await.succeeded();
    assert_eq!(names(home, ".claude.json"), ["mcpproxy"]);
    assert_eq!(client_codes(home).await, [""; 0]);
    home.cli(["connect", "claude-code", "--undo", "--yes"])
        .await
        .succeeded();
    assert_eq!(read(home, ".claude.json"), theirs);
}

#[tokio::test]
async fn connect_imports_what_is_new_and_says_what_stays() {
    let home = home();
    let theirs = json!({"mcpServers": {
        "plain": {"command": "plain", "env": {"TOKEN": "canary-1"}, "trust": true},
        "needs": {"command": "needs", "env": {"K": "$MOVE_TEST_UNSET"}},
        "nothing": {"note": "neither command nor url"},
    }})
    .to_string();
    place(&home, ".gemini/settings.json", &theirs);
    let preview = home.cli(["connect", "gemini", "--move", "--dry-run"]).await;
    assert!(preview.succeeded().stdout.contains("nothing was changed"));
    assert_eq!(read(&home, ".gemini/settings.json"), theirs);
    assert!(!home.config_file().exists());
    home.cli(["connect", "gemini", "--move"])
        .await
        .ended_with(2);
    assert!(!home.config_file().exists());
    let output = home.cli(["connect", "gemini", "--move", "--yes"]).await;
    output.succeeded();
    for word in [
        "'nothing' stays: it has neither a command nor a url",
        "'plain': not taken over: trust",
        "MOVE_TEST_UNSET is not set",
        "2 servers of Gemini CLI moved into mcpproxy",
    ] {
        let told = format!("{}{}", output.stdout, output.stderr);
        assert!(told.contains(word), "{word}: {told}");
    }
    for text in [&preview.stdout, &output.stdout, &output.stderr] {
        assert!(!text.contains("canary-1"), "{text}");
    }
    assert_eq!(ours(&home), ["plain", "needs"]);
    assert_eq!(
        names(&home, ".gemini/settings.json"),
        ["nothing", "mcpproxy"]
    );
    home.cli(["connect", "gemini", "--undo", "--yes"])
        .await
        .succeeded();
    assert_eq!(read(&home, ".gemini/settings.json"), theirs);
    assert_eq!(ours(&home), ["plain", "needs"]);
}

#[tokio::test]
async fn an_import_moves_from_every_client_and_connects_it() {
    let home = home();
    let cursor = r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}"#;
    let codex = "[mcp_servers.a]\ncommand = \"a\"\n";
    place(&home, ".cursor/mcp.json", cursor);
    place(&home, ".codex/config.toml", codex);
    let plain = home.cli(["upstream", "import", "--yes"]).await;
    assert!(
        plain.succeeded().stderr.contains("import --move"),
        "{}",
        plain.stderr
    );
    assert_eq!(read(&home, ".cursor/mcp.json"), cursor);
    let output = home
        .cli(["upstream", "import", "--move", "--yes", "-o", "json"])
        .await;
    let report = output.succeeded().json();
    assert_eq!(report["moved"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!(ours(&home), ["a", "b"]);
    assert_eq!(names(&home, ".cursor/mcp.json"), ["mcpproxy"]);
    let after = read(&home, ".codex/config.toml");
    assert!(
        after.contains("mcp_servers.mcpproxy") && !after.contains("\"a\""),
        "{after}"
    );
    for client in ["cursor", "codex"] {
        home.cli(["connect", client, "--undo", "--yes"])
            .await
            .succeeded();
    }
    assert_eq!(read(&home, ".cursor/mcp.json"), cursor);
    assert_eq!(read(&home, ".codex/config.toml"), codex);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_keeps_everything_as_it_was() {
    let home = home();
    let theirs = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    place(&home, ".cursor/mcp.json", theirs);
    let file = home.path().join(".cursor/mcp.json");
    let mut mode = std::fs::metadata(&file).unwrap().permissions();
    mode.set_readonly(true);
    std::fs::set_permissions(&file, mode).unwrap();
    for command in [["connect", "cursor"], ["upstream", "import"]] {
        let output = home
            .cli(command.into_iter().chain(["--move", "--yes"]))
            .await;
        output.ended_with(1);
        assert!(output.stderr.contains("read-only"), "{}", output.stderr);
        assert!(!home.config_file().exists(), "{command:?}");
    }
    assert_eq!(read(&home, ".cursor/mcp.json"), theirs);
}

#[tokio::test]
async fn a_server_that_is_switched_off_here_stays_there() {
    let home = home();
    home.write_config(&json!({"mcpServers": {"a": {"command": "a", "enabled": false}}}));
    place(
        &home,
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "a"}}}"#,
    );
    let output = home.cli(["connect", "cursor", "--move", "--yes"]).await;
    assert!(
        output.succeeded().stderr.contains("upstream enable a"),
        "{}",
        output.stderr
    );
    assert_eq!(names(&home, ".cursor/mcp.json"), ["a", "mcpproxy"]);
    assert!(
        !client_codes(&home)
            .await
            .contains(&"CLIENT_SERVER_TWICE".to_owned())
    );
}

#[tokio::test]
async fn a_person_is_asked_whether_imported_servers_are_to_move() {
    let home = home();
    let theirs = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    place(&home, ".cursor/mcp.json", theirs);
    let (shown, code) = on_terminal(&home, &["upstream", "import"], &[], "y\nn\n").await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("out of the files of Cursor too?"), "{shown}");
    assert_eq!(read(&home, ".cursor/mcp.json"), theirs);
    let (shown, code) = on_terminal(&home, &["upstream", "import"], &[], "y\n").await;
    assert_eq!(code, 0, "{shown}");
    assert_eq!(names(&home, ".cursor/mcp.json"), ["mcpproxy"], "{shown}");
}
