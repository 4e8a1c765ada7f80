//! What commands print, whole: tables, data and errors, pinned so that a change is seen.

use testkit::{Home, Output};

use crate::support::home;

/// Exit code, stdout and stderr, with the home directory as `~`.
fn transcript(home: &Home, output: &Output) -> String {
    let Output {
        stdout,
        stderr,
        code,
    } = output;
    let text = format!("exit code {code}\n--- stdout\n{stdout}--- stderr\n{stderr}");
    text.replace(home.path().to_str().unwrap(), "~")
}

fn place(home: &Home, name: &str, text: &str) {
    let file = home.path().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// A home whose files are always the same.
fn furnished() -> Home {
    let home = home();
    home.write_config_text("{\"mcpServers\": {\"notes\": {\"command\": \"notes\"}}, \"listn\": 1}");
    place(
        &home,
        ".cursor/mcp.json",
        "{\n  // mine\n  \"mcpServers\": {\n    \"notes\": {\"url\": \"https://n.example/mcp?key=secret\"}\n  }\n}\n",
    );
    place(
        &home,
        ".claude/settings.json",
        r#"{"permissions": {"allow": ["mcp__mcpproxy"]}}"#,
    );
    place(
        &home,
        ".claude.json",
        r#"{"mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:8080/mcp"}}}"#,
    );
    place(
        &home,
        ".codex/config.toml",
        "[mcp_servers.files]\ncommand = \"files\"\nargs = [\"--token\", \"secret\"]\n",
    );
    place(&home, ".gemini/settings.json", "{ broken");
    home
}

#[tokio::test]
async fn commands_print_what_they_always_printed() {
    let home = furnished();
    for (name, arguments) in [
        ("connect_list", &["connect"][..]),
        ("connect_list_json", &["connect", "-o", "json"]),
        ("connect_preview", &["connect", "cursor", "--dry-run"]),
        (
            "connect_preview_json",
            &["connect", "cursor", "--dry-run", "-o", "json"],
        ),
        ("connect_unknown_client", &["connect", "curser"]),
        ("connect_broken_file", &["connect", "gemini", "--yes"]),
        (
            "connect_nothing_to_undo",
            &["connect", "codex", "--undo", "--yes"],
        ),
        ("connect_without_consent", &["connect", "windsurf"]),
        ("import", &["upstream", "import", "--dry-run"]),
        (
            "import_json",
            &["upstream", "import", "--dry-run", "-o", "json"],
        ),
        (
            "import_unknown_server",
            &["upstream", "import", "--server", "x"],
        ),
        ("permissions", &["doctor", "permissions"]),
        ("permissions_yaml", &["doctor", "permissions", "-o", "yaml"]),
        ("config_path_jsonl", &["config", "path", "-o", "jsonl"]),
        ("config_check", &["config", "check"]),
        ("status_without_daemon", &["status"]),
        ("unknown_command", &["conect"]),
        ("unknown_format", &["connect", "-o", "xml"]),
    ] {
        let output = home.cli(arguments).await;
        insta::assert_snapshot!(name, transcript(&home, &output));
    }
}
