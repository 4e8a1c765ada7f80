//! What clients do with our tools, read back from their files.

use clients::Verdict::{Asks, Denied, Silent, Unknown};
use clients::{Approval, Client, OWN_TOOLS, Verdict, permissions};

use crate::support::{Home, endpoint_of};

/// The verdicts on the three lanes.
fn lanes(home: &Home, client: Client) -> [Verdict; 3] {
    let found = permissions(client, &home.places).unwrap();
    ["call_tool_read", "call_tool_write", "call_tool_destructive"].map(|tool| found.verdict(tool))
}

#[test]
fn what_approve_read_writes_is_read_back_as_reads_silent_others_asked() {
    for client in Client::ALL {
        let home = Home::new();
        home.write(".cursor/permissions.json", "{}");
        let before = permissions(client, &home.places).unwrap();
        assert!(!before.connected, "{client}");
        home.connect(client, &endpoint_of(client), Approval::Read);
        let found = permissions(client, &home.places).unwrap();
        assert!(found.connected, "{client}");
        assert!(!found.changes_silently(), "{client}");
        let in_its_window = matches!(client, Client::ClaudeDesktop | Client::Windsurf);
        for (tool, verdict) in OWN_TOOLS.iter().zip(found.verdicts) {
            let expected = match (in_its_window, tool.reads) {
                (true, _) => Unknown,
                (false, true) => Silent,
                (false, false) => Asks,
            };
            assert_eq!(verdict, expected, "{client} {}", tool.name);
        }
    }
}

#[test]
fn without_rules_clients_ask_or_go_by_hints() {
    let home = Home::new();
    for (client, expected) in [
        (Client::ClaudeCode, [Asks, Asks, Asks]),
        (Client::Codex, [Silent, Asks, Asks]),
        (Client::VsCode, [Silent, Asks, Asks]),
        (Client::Gemini, [Asks, Asks, Asks]),
        (Client::Cline, [Asks, Asks, Asks]),
        (Client::Cursor, [Unknown, Unknown, Unknown]),
    ] {
        assert_eq!(lanes(&home, client), expected, "{client}");
    }
}

#[test]
fn switches_that_approve_everything_are_seen() {
    let home = Home::new();
    home.write(
        ".config/Code/User/settings.json",
        "{ /* fast */ \"chat.tools.autoApprove\": true, }",
    );
    home.write(
        ".gemini/settings.json",
        "{\"mcpServers\": {\"mcpproxy\": {\"httpUrl\": \"x\", \"trust\": true}}}",
    );
    home.write(
        ".claude/settings.json",
        "{\"permissions\": {\"allow\": [\"mcp__mcpproxy\"]}}",
    );
    home.write(
        ".codex/config.toml",
        "[mcp_servers.mcpproxy]\nurl = \"x\"\ndefault_tools_approval_mode = \"approve\"\n",
    );
    home.write(
        ".cursor/permissions.json",
        "{\"mcpAllowlist\": [\"mcpproxy:*\"]}",
    );
    for client in [
        Client::VsCode,
        Client::Gemini,
        Client::ClaudeCode,
        Client::Codex,
        Client::Cursor,
    ] {
        assert_eq!(lanes(&home, client), [Silent; 3], "{client}");
        assert!(
            permissions(client, &home.places)
                .unwrap()
                .changes_silently(),
            "{client}"
        );
    }
}

#[test]
fn gemini_goes_by_priority_and_hints() {
    let home = Home::new();
    home.write(
        ".gemini/policies/a.toml",
        "[[rule]]\nmcpName = \"mcpproxy\"\ntoolAnnotations = { readOnlyHint = true }\ndecision = \"allow\"\npriority = 100\n\
         [[rule]]\nmcpName = \"*\"\ntoolName = [\"call_tool_destructive\"]\ndecision = \"deny\"\npriority = 900\n\
         [[rule]]\nmcpName = \"mcpproxy\"\ndecision = \"allow\"\npriority = 50\nargsPattern = \"x\"\n",
    );
    assert_eq!(lanes(&home, Client::Gemini), [Silent, Asks, Denied]);
    let notes = permissions(Client::Gemini, &home.places).unwrap().notes;
    assert!(notes[0].contains("arguments"), "{notes:?}");
}

#[test]
fn rules_of_the_project_and_of_the_administrator_count() {
    let home = Home::new();
    home.write(
        "project/.claude/settings.json",
        "{\"permissions\": {\"allow\": [\"mcp__mcpproxy__*\"]}}",
    );
    home.write(
        "system/etc/claude-code/managed-settings.json",
        "{\"permissions\": {\"deny\": [\"mcp__mcpproxy__call_tool_destructive\"]}}",
    );
    assert_eq!(lanes(&home, Client::ClaudeCode), [Silent, Silent, Denied]);
}

#[test]
fn a_broken_file_is_an_error_and_not_a_guess() {
    let home = Home::new();
    home.write(".claude/settings.json", "{\"permissions\": {");
    assert!(permissions(Client::ClaudeCode, &home.places).is_err());
}
