//! Files that are broken, closed or of another shape: nothing is written, and the place is told.

use clients::{Approval, Client, ClientFileError, connect};

use crate::support::{Home, http};

#[test]
fn a_file_that_does_not_parse_is_left_alone() {
    for (client, file, text, line, column) in [
        (
            Client::Cursor,
            ".cursor/mcp.json",
            "{\n  \"a\": tru\n}",
            2,
            8,
        ),
        (
            Client::Cursor,
            ".cursor/mcp.json",
            "{\"a\": 1 \"b\": 2}",
            1,
            8,
        ),
        (Client::Cursor, ".cursor/mcp.json", "{'a': 1}", 1, 2),
        (
            Client::Codex,
            ".codex/config.toml",
            "a = 1\nb = = 2\n",
            2,
            5,
        ),
    ] {
        let home = Home::new();
        home.write(file, text);
        let error = connect(client, &home.places, &http(), Approval::Read, &[]).unwrap_err();
        let ClientFileError::Malformed { path, source } = &error else {
            panic!("{error:?}");
        };
        assert!(path.ends_with(file));
        assert_eq!(
            (source.line, source.column),
            (line, column),
            "{text}: {source}"
        );
        assert!(
            error.to_string().contains(&format!(":{line}:{column}")),
            "{error}"
        );
        assert_eq!(home.read(file), text);
    }
}

#[test]
fn one_broken_file_of_two_keeps_both_as_they_were() {
    let home = Home::new();
    home.write(".claude.json", "{}");
    home.write(".claude/settings.json", "{");
    let error = connect(
        Client::ClaudeCode,
        &home.places,
        &http(),
        Approval::Read,
        &[],
    )
    .unwrap_err();
    assert!(
        matches!(error, ClientFileError::Malformed { .. }),
        "{error:?}"
    );
    assert_eq!(home.read(".claude.json"), "{}");
}

#[test]
fn another_shape_is_refused() {
    for text in [
        "[]",
        "7",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": {\"mcpproxy\": \"x\"}}",
        "{\"mcpServers\": {}, \"mcpServers\": {}}",
    ] {
        let home = Home::new();
        home.write(".cursor/mcp.json", text);
        let error =
            connect(Client::Cursor, &home.places, &http(), Approval::Read, &[]).unwrap_err();
        assert!(
            matches!(error, ClientFileError::Shape { .. }),
            "{text}: {error:?}"
        );
        assert_eq!(home.read(".cursor/mcp.json"), text);
    }
    let home = Home::new();
    home.write(".codex/config.toml", "mcp_servers = 3\n");
    let error = connect(Client::Codex, &home.places, &http(), Approval::Read, &[]).unwrap_err();
    assert!(matches!(error, ClientFileError::Shape { .. }), "{error:?}");
}

#[test]
fn a_read_only_file_and_one_that_changed_meanwhile_are_not_written() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", "{}");
    let plan = connect(Client::Cursor, &home.places, &http(), Approval::AsItIs, &[]).unwrap();
    home.write(".cursor/mcp.json", "{ }");
    let error = plan.apply(&home.receipts).unwrap_err();
    assert!(
        matches!(error, ClientFileError::ChangedMeanwhile { .. }),
        "{error:?}"
    );
    assert_eq!(home.read(".cursor/mcp.json"), "{ }");
    let mut permissions = std::fs::metadata(&file).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&file, permissions).unwrap();
    let plan = connect(Client::Cursor, &home.places, &http(), Approval::AsItIs, &[]).unwrap();
    let error = plan.apply(&home.receipts).unwrap_err();
    assert!(
        matches!(error, ClientFileError::ReadOnly { .. }),
        "{error:?}"
    );
    assert!(error.advice().contains("chmod"), "{}", error.advice());
    assert_eq!(home.read(".cursor/mcp.json"), "{ }");
}

#[test]
fn text_that_is_not_utf8_is_not_touched() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", "");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    let error = connect(Client::Cursor, &home.places, &http(), Approval::AsItIs, &[]).unwrap_err();
    assert!(
        matches!(error, ClientFileError::Unreadable { .. }),
        "{error:?}"
    );
}

#[test]
fn secrets_near_a_change_are_known_to_be_masked() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        r#"{"apiKey": "canary-1", "mcpServers": {
            "a": {"env": {"X": "canary-2"}, "args": ["--token", "canary-3", "--api-key=canary-4"]},
            "b": {"url": "https://user:canary-5@host/mcp?k=canary-6&canary-7", "headers": {"H": "canary-8"}}
        }}"#,
    );
    let plan = connect(Client::Cursor, &home.places, &http(), Approval::AsItIs, &[]).unwrap();
    let secrets = plan.changes[0].secrets();
    for number in 1..=8 {
        let canary = format!("canary-{number}");
        assert!(secrets.contains(&canary), "{canary}: {secrets:?}");
    }
    assert!(
        !secrets.iter().any(|it| it.contains("127.0.0.1")),
        "{secrets:?}"
    );
}
