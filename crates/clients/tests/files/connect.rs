//! What `connect` writes, client by client.

use clients::{Approval, Client, ClientFileError, Endpoint, Platform, connect};
use serde_json::json;

use crate::support::{Home, endpoint_of, http, stdio};

const URL: &str = "http://127.0.0.1:8080/mcp";
const CODE: &str = ".config/Code/User";

#[test]
fn claude_code_gets_an_entry_and_rules_by_exact_name() {
    let home = Home::new();
    home.connect(Client::ClaudeCode, &http(), Approval::Read);
    let entry = &home.json(".claude.json")["mcpServers"]["mcpproxy"];
    assert_eq!(*entry, json!({"type": "http", "url": URL}));
    let rules = &home.json(".claude/settings.json")["permissions"];
    assert_eq!(
        *rules,
        json!({
            "allow": [
                "mcp__mcpproxy__retrieve_tools", "mcp__mcpproxy__describe_tool",
                "mcp__mcpproxy__call_tool_read", "mcp__mcpproxy__read_cache"
            ],
            "ask": ["mcp__mcpproxy__call_tool_write", "mcp__mcpproxy__call_tool_destructive"]
        })
    );
}

#[test]
fn codex_keeps_its_comments_and_gets_modes() {
    let home = Home::new();
    let before = "\
# my settings
model = \"o9\" # the big one

[mcp_servers.github] # hosted
command = \"github-server\"

[tui]
theme = \"dark\"
";
    home.write(".codex/config.toml", before);
    home.connect(Client::Codex, &http(), Approval::Read);
    let after = home.read(".codex/config.toml");
    for line in before.lines() {
        assert!(after.contains(line), "{line} is missing in\n{after}");
    }
    let ours = "\
[mcp_servers.mcpproxy]
url = \"http://127.0.0.1:8080/mcp\"
default_tools_approval_mode = \"writes\"

[mcp_servers.mcpproxy.tools.call_tool_write]
approval_mode = \"prompt\"

[mcp_servers.mcpproxy.tools.call_tool_destructive]
approval_mode = \"prompt\"
";
    assert!(after.contains(ours), "{after}");
}

#[test]
fn gemini_gets_one_rule_per_tool() {
    let home = Home::new();
    home.connect(Client::Gemini, &http(), Approval::Read);
    let entry = &home.json(".gemini/settings.json")["mcpServers"]["mcpproxy"];
    assert_eq!(*entry, json!({"httpUrl": URL}));
    let rules = home.read(".gemini/policies/mcpproxy.toml");
    assert_eq!(rules.matches("[[rule]]").count(), 6, "{rules}");
    let read = "[[rule]]\nmcpName = \"mcpproxy\"\ntoolName = \"call_tool_read\"\ndecision = \"allow\"\npriority = 200\n";
    let write = "[[rule]]\nmcpName = \"mcpproxy\"\ntoolName = \"call_tool_write\"\ndecision = \"ask_user\"\npriority = 300\n";
    assert!(rules.contains(read) && rules.contains(write), "{rules}");
}

#[test]
fn cursor_is_given_rules_only_where_it_has_a_file_of_them() {
    let home = Home::new();
    let plan = home.connect(Client::Cursor, &http(), Approval::Read);
    assert_eq!(
        home.json(".cursor/mcp.json"),
        json!({"mcpServers": {"mcpproxy": {"url": URL}}})
    );
    assert!(!home.path(".cursor/permissions.json").exists());
    assert!(
        plan.notes[0].contains("mcpproxy:call_tool_read"),
        "{:?}",
        plan.notes
    );
    home.write(
        ".cursor/permissions.json",
        "{\n  // mine\n  \"mcpAllowlist\": [\"notes:*\"]\n}\n",
    );
    home.connect(Client::Cursor, &http(), Approval::Read);
    let rules = home.read(".cursor/permissions.json");
    assert!(
        rules.contains("// mine") && rules.contains("\"notes:*\""),
        "{rules}"
    );
    assert!(rules.contains("\"mcpproxy:read_cache\""), "{rules}");
    assert!(!rules.contains("call_tool_write"), "{rules}");
}

#[test]
fn the_extensions_of_vs_code_get_a_list_in_the_entry() {
    let home = Home::new();
    let reads = json!([
        "retrieve_tools",
        "describe_tool",
        "call_tool_read",
        "read_cache"
    ]);
    for (client, file, kind, list) in [
        (
            Client::Cline,
            "saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            "streamableHttp",
            "autoApprove",
        ),
        (
            Client::Roo,
            "rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            "streamable-http",
            "alwaysAllow",
        ),
        (
            Client::Kilo,
            "kilocode.kilo-code/settings/mcp_settings.json",
            "streamable-http",
            "alwaysAllow",
        ),
    ] {
        home.connect(client, &http(), Approval::Read);
        let entry = &home.json(&format!("{CODE}/globalStorage/{file}"))["mcpServers"]["mcpproxy"];
        assert_eq!(
            *entry,
            json!({"type": kind, "url": URL, list: reads}),
            "{client}"
        );
    }
}

#[test]
fn clients_without_rules_in_files_get_the_entry_and_a_word() {
    let home = Home::new();
    for (client, file, entry) in [
        (
            Client::VsCode,
            ".config/Code/User/mcp.json",
            json!({"servers": {"mcpproxy": {"type": "http", "url": URL}}}),
        ),
        (
            Client::Windsurf,
            ".codeium/windsurf/mcp_config.json",
            json!({"mcpServers": {"mcpproxy": {"serverUrl": URL}}}),
        ),
        (
            Client::ClaudeDesktop,
            ".config/Claude/claude_desktop_config.json",
            json!({"mcpServers": {"mcpproxy": {"command": "/opt/mcpproxy", "args": ["stdio"]}}}),
        ),
    ] {
        let plan = home.connect(client, &endpoint_of(client), Approval::Read);
        assert_eq!(home.json(file), entry, "{client}");
        assert!(!plan.notes.is_empty(), "{client}");
    }
}

#[test]
fn places_differ_by_platform_and_can_be_moved() {
    let mut home = Home::new();
    home.places.platform = Platform::MacOs;
    home.connect(Client::ClaudeDesktop, &stdio(), Approval::AsItIs);
    assert!(
        home.path("Library/Application Support/Claude/claude_desktop_config.json")
            .exists()
    );
    let moved = home.path("elsewhere");
    let places = home.places.clone();
    home.places =
        places.with_environment(|name| (name == "CODEX_HOME").then(|| moved.clone().into()));
    home.connect(Client::Codex, &http(), Approval::AsItIs);
    assert!(home.path("elsewhere/config.toml").exists());
}

#[test]
fn the_second_time_nothing_changes() {
    for client in Client::ALL {
        let home = Home::new();
        home.write(".cursor/permissions.json", "{\"mcpAllowlist\": []}");
        home.connect(client, &endpoint_of(client), Approval::Read);
        let files = home.files();
        let plan = home.connect(client, &endpoint_of(client), Approval::Read);
        assert!(plan.changes.is_empty(), "{client}: {:?}", plan.changes);
        assert_eq!(home.files(), files, "{client}");
    }
}

#[test]
fn another_endpoint_replaces_the_first_and_leaves_the_rest() {
    let home = Home::new();
    home.connect(Client::Cursor, &http(), Approval::AsItIs);
    let text = home.read(".cursor/mcp.json");
    let text = text.replace("\"url\"", "\"note\": \"mine\", \"url\"");
    home.write(".cursor/mcp.json", &text);
    home.connect(Client::Cursor, &stdio(), Approval::AsItIs);
    let entry = &home.json(".cursor/mcp.json")["mcpServers"]["mcpproxy"];
    assert_eq!(
        *entry,
        json!({"note": "mine", "command": "/opt/mcpproxy", "args": ["stdio"]})
    );
}

#[test]
fn a_key_is_referred_to_and_never_written() {
    let endpoint = Endpoint::Http {
        url: URL.into(),
        needs_key: true,
    };
    for (client, file, reference) in [
        (
            Client::ClaudeCode,
            ".claude.json",
            "Bearer ${MCPPROXY_API_KEY}",
        ),
        (
            Client::Cursor,
            ".cursor/mcp.json",
            "Bearer ${env:MCPPROXY_API_KEY}",
        ),
        (
            Client::Gemini,
            ".gemini/settings.json",
            "Bearer $MCPPROXY_API_KEY",
        ),
        (
            Client::Codex,
            ".codex/config.toml",
            "bearer_token_env_var = \"MCPPROXY_API_KEY\"",
        ),
    ] {
        let home = Home::new();
        let plan = home.connect(client, &endpoint, Approval::AsItIs);
        assert!(home.read(file).contains(reference), "{}", home.read(file));
        assert!(
            plan.notes[0].contains("MCPPROXY_API_KEY"),
            "{:?}",
            plan.notes
        );
    }
    let home = Home::new();
    let error = connect(
        Client::Cline,
        &home.places,
        &endpoint,
        Approval::AsItIs,
        &[],
    )
    .unwrap_err();
    assert!(
        matches!(error, ClientFileError::KeyNeeded { .. }),
        "{error}"
    );
    assert!(error.advice().contains("--stdio"), "{}", error.advice());
}

#[test]
fn comments_order_and_form_survive() {
    let home = Home::new();
    let before = "\
{
    // what I work with
    \"theme\": \"dark\",   /* not light */
    \"mcpServers\": {
        \"b\": {\"command\": \"b\", \"args\": [ 1.0, 2e3 ]}, // odd, but mine
        \"a\": {\"command\": \"a\"},
    },
    \"last\": true
}
";
    home.write(".cursor/mcp.json", before);
    home.connect(Client::Cursor, &http(), Approval::AsItIs);
    let after = home.read(".cursor/mcp.json");
    let kept: String = after
        .lines()
        .filter(|line| !line.contains("mcpproxy") && !line.contains(URL))
        .map(|line| format!("{line}\n"))
        .collect();
    let ours = after.lines().count() - kept.lines().count();
    assert_eq!(ours, 2, "{after}");
    for line in before.lines() {
        assert!(after.contains(line), "{line} is missing in\n{after}");
    }
}

#[cfg(unix)]
#[test]
fn modes_and_links_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = Home::new();
    let file = home.write("dotfiles/mcp.json", "{}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir_all(home.path(".cursor")).unwrap();
    symlink(&file, home.path(".cursor/mcp.json")).unwrap();
    home.connect(Client::Cursor, &http(), Approval::AsItIs);
    assert!(home.path(".cursor/mcp.json").is_symlink());
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert!(home.read("dotfiles/mcp.json").contains("mcpproxy"));
    let backup = home.path(".cursor/mcp.json.before-mcpproxy");
    assert_eq!(std::fs::read_to_string(backup).unwrap(), "{}");
}
