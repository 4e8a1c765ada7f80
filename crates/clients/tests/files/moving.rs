//! `connect --move`: servers leave the client's own file, and come back.

use clients::{Approval, Client, ClientFileError, Origin, Places, connect, survey, take_out, undo};
use serde_json::json;

use crate::support::{Home, endpoint_of, http};

/// Every client's main file with two servers, one with a secret and a setting of the client's own.
const FILES: [(Client, &str, &str); 10] = [
    (
        Client::ClaudeCode,
        ".claude.json",
        "{\"numStartups\":3,\r\n\t\"mcpServers\" : {\"a\":{\"command\":\"a\",\"env\":{\"K\":\"s-1\"}}, \"b\":{\"url\":\"https://b/mcp\"}} }",
    ),
    (
        Client::ClaudeDesktop,
        ".config/Claude/claude_desktop_config.json",
        "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"a\", \"args\": [\"x\"]}, \"b\": {\"command\": \"b\"}}}\n",
    ),
    (
        Client::Cursor,
        ".cursor/mcp.json",
        "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}, // first\n    \"b\": {\"url\": \"https://b/\"},\n  },\n}\n",
    ),
    (
        Client::VsCode,
        ".config/Code/User/mcp.json",
        "{\"inputs\": [], \"servers\": {\"a\": {\"command\": \"a\"}, \"b\": {\"command\": \"b\"}}}",
    ),
    (
        Client::Codex,
        ".codex/config.toml",
        "model='o9'\n[mcp_servers.a] # mine\ncommand = 'a'\n[mcp_servers.a.env]\nK = 's-1'\n\n[mcp_servers.b]\nurl = \"https://b/\"\n[tui]\nx = 1\n",
    ),
    (
        Client::Gemini,
        ".gemini/settings.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"a\", \"trust\": true}, \"b\": {\"httpUrl\": \"https://b/\"}}, \"theme\": 1.50}",
    ),
    (
        Client::Windsurf,
        ".codeium/windsurf/mcp_config.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"a\"}, \"b\": {\"serverUrl\": \"https://b/\", \"disabled\": true}}}",
    ),
    (
        Client::Cline,
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"a\", \"autoApprove\": [\"x\"]}, \"b\": {\"command\": \"b\"}}}",
    ),
    (
        Client::Roo,
        ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"a\"}, \"b\": {\"command\": \"b\"}}}",
    ),
    (
        Client::Kilo,
        ".config/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"a\"}, \"b\": {\"command\": \"b\"}}}",
    ),
];

fn origins(client: Client, places: &Places) -> Vec<Origin> {
    let survey = survey([client], places);
    assert!(survey.failures.is_empty(), "{:?}", survey.failures);
    let found = survey.found.into_iter();
    found
        .map(|found| found.origin)
        .filter(|origin| origin.name != "mcpproxy")
        .collect()
}

fn connect_and_move(home: &Home, client: Client) {
    let leaving = origins(client, &home.places);
    let endpoint = endpoint_of(client);
    let plan = connect(client, &home.places, &endpoint, Approval::Read, &leaving).unwrap();
    plan.apply(&home.receipts).unwrap();
}

fn names(home: &Home, client: Client) -> Vec<String> {
    let found = survey([client], &home.places).found.into_iter();
    let mut names: Vec<String> = found.map(|found| found.origin.name).collect();
    names.sort();
    names
}

#[test]
fn the_servers_of_every_client_leave_and_come_back_byte_for_byte() {
    for (client, file, text) in FILES {
        let home = Home::new();
        home.write(file, text);
        let before = home.files();
        assert_eq!(names(&home, client), ["a", "b"], "{client}");
        connect_and_move(&home, client);
        assert_eq!(names(&home, client), ["mcpproxy"], "{client}");
        home.undo(client);
        assert_eq!(home.files(), before, "{client}");
    }
}

#[test]
fn in_a_file_that_was_edited_since_all_entries_come_back() {
    for (client, file, text) in FILES {
        let home = Home::new();
        home.write(file, text);
        let written = |home: &Home| {
            let found = survey([client], &home.places).found.into_iter();
            let entries = found.map(|found| format!("{:?}", found.origin));
            let mut entries: Vec<String> = entries.collect();
            entries.sort();
            entries
        };
        let before = written(&home);
        connect_and_move(&home, client);
        let comment = if file.ends_with("toml") {
            "# seen"
        } else {
            "// seen"
        };
        home.write(file, &format!("{}\n{comment}\n", home.read(file)));
        home.undo(client);
        assert_eq!(written(&home), before, "{client}");
        assert!(home.read(file).contains(comment), "{client}");
    }
}

#[test]
fn a_server_that_took_the_name_since_stays_and_the_other_is_told() {
    let home = Home::new();
    let file = ".cursor/mcp.json";
    home.write(file, "{\"mcpServers\": {\"a\": {\"command\": \"old\"}}}");
    connect_and_move(&home, Client::Cursor);
    let mut state = home.json(file);
    state["mcpServers"]["a"] = json!({"command": "new"});
    home.write(file, &state.to_string());
    let plan = home.undo(Client::Cursor);
    assert_eq!(
        home.json(file)["mcpServers"],
        json!({"a": {"command": "new"}})
    );
    assert!(
        plan.notes[0].contains("'a' stays in mcpproxy only"),
        "{:?}",
        plan.notes
    );
}

#[test]
fn servers_come_back_even_if_the_file_was_removed() {
    for (client, file, _) in [FILES[2], FILES[4]] {
        let home = Home::new();
        let (_, _, text) = FILES.into_iter().find(|it| it.0 == client).unwrap();
        home.write(file, text);
        connect_and_move(&home, client);
        std::fs::remove_file(home.path(file)).unwrap();
        home.undo(client);
        assert_eq!(names(&home, client), ["a", "b"], "{client}");
    }
}

#[test]
fn an_entry_that_changed_after_it_was_read_is_not_touched() {
    let home = Home::new();
    let file = ".cursor/mcp.json";
    home.write(file, "{\"mcpServers\": {\"a\": {\"command\": \"old\"}}}");
    let leaving = origins(Client::Cursor, &home.places);
    home.write(file, "{\"mcpServers\": {\"a\": {\"command\": \"new\"}}}");
    let plan = take_out(Client::Cursor, &leaving).unwrap();
    assert!(plan.changes.is_empty(), "{:?}", plan.changes);
}

#[test]
fn a_file_that_changed_after_the_plan_or_is_read_only_stays_as_it_is() {
    let home = Home::new();
    let file = ".cursor/mcp.json";
    let path = home.write(file, "{\"mcpServers\": {\"a\": {\"command\": \"a\"}}}");
    let leaving = origins(Client::Cursor, &home.places);
    let plan = take_out(Client::Cursor, &leaving).unwrap();
    home.write(file, "{\"mcpServers\": {\"a\": {\"command\": \"a\"}}} ");
    let error = plan.apply(&home.receipts).unwrap_err();
    assert!(
        matches!(error, ClientFileError::ChangedMeanwhile { .. }),
        "{error}"
    );
    let mut mode = std::fs::metadata(&path).unwrap().permissions();
    mode.set_readonly(true);
    std::fs::set_permissions(&path, mode).unwrap();
    let plan = take_out(Client::Cursor, &leaving).unwrap();
    let error = plan.check_writable().unwrap_err();
    assert!(matches!(error, ClientFileError::ReadOnly { .. }), "{error}");
    assert_eq!(names(&home, Client::Cursor), ["a"]);
    let nothing = undo(Client::Cursor, &home.receipts).unwrap_err();
    assert!(
        matches!(nothing, ClientFileError::NothingToUndo { .. }),
        "{nothing}"
    );
}

#[test]
fn a_connection_made_earlier_and_a_move_are_undone_together() {
    let home = Home::new();
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"a\"}}}\n";
    home.write(".cursor/mcp.json", text);
    home.connect(Client::Cursor, &http(), Approval::AsItIs);
    let leaving = origins(Client::Cursor, &home.places);
    let plan = take_out(Client::Cursor, &leaving).unwrap();
    plan.apply(&home.receipts).unwrap();
    assert_eq!(names(&home, Client::Cursor), ["mcpproxy"]);
    home.undo(Client::Cursor);
    assert_eq!(home.read(".cursor/mcp.json"), text);
}

#[test]
fn files_of_a_project_are_recognised_as_shared() {
    let home = Home::new();
    let project = home.path("project");
    let own =
        json!({"projects": {project.to_str().unwrap(): {"mcpServers": {"own": {"command": "o"}}}}});
    home.write(".claude.json", &own.to_string());
    home.write(
        "project/.mcp.json",
        "{\"mcpServers\": {\"team\": {\"command\": \"t\"}}}",
    );
    let shared: Vec<(String, bool)> = origins(Client::ClaudeCode, &home.places)
        .into_iter()
        .map(|origin| (origin.name, origin.shared))
        .collect();
    assert_eq!(
        shared,
        [("own".to_owned(), false), ("team".to_owned(), true)]
    );
}

#[test]
fn the_receipt_with_moved_secrets_is_the_owners_only() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let (client, file, text) = FILES[0];
    home.write(file, text);
    connect_and_move(&home, client);
    let receipt = home.path("data/connections/claude-code.json");
    let mode = std::fs::metadata(receipt).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
