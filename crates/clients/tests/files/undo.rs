//! `connect --undo`: exactly what we put in goes, and nothing else.

use clients::{Approval, Client, ClientFileError, undo};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Home, endpoint_of, http, stdio};

#[test]
fn an_untouched_file_comes_back_byte_for_byte() {
    for client in Client::ALL {
        let home = Home::new();
        home.write(".claude.json", "{\"numStartups\":3,\"mcpServers\" : { } }");
        home.write(
            ".claude/settings.json",
            "// mine\r\n{\r\n\t\"permissions\": {\"allow\": [\"Bash(ls)\"]},\r\n}",
        );
        home.write(
            ".codex/config.toml",
            "model='o9'\n[mcp_servers]\nx.command='y' # z\n",
        );
        home.write(".cursor/mcp.json", "");
        home.write(".cursor/permissions.json", "{}");
        home.write(
            ".gemini/settings.json",
            "{\"mcpServers\": {\"mcpproxy\": {\"httpUrl\": \"http://old/\", \"trust\": false}}}",
        );
        let before = home.files();
        home.connect(client, &endpoint_of(client), Approval::AsItIs);
        home.connect(client, &endpoint_of(client), Approval::Read);
        assert_ne!(home.files(), before, "{client}");
        home.undo(client);
        assert_eq!(home.files(), before, "{client}");
        let again = undo(client, &home.receipts).unwrap_err();
        assert!(
            matches!(again, ClientFileError::NothingToUndo { .. }),
            "{again}"
        );
    }
}

#[test]
fn what_others_changed_since_stays() {
    let home = Home::new();
    home.write(
        ".claude/settings.json",
        "{\"permissions\": {\"allow\": [\"mcp__mcpproxy__call_tool_read\"]}}",
    );
    home.connect(Client::ClaudeCode, &http(), Approval::Read);
    let text = home.read(".claude/settings.json");
    home.write(
        ".claude/settings.json",
        &text.replacen('{', "{\"model\": \"opus\",", 1),
    );
    let state = home.json(".claude.json");
    let mut state = state.as_object().unwrap().clone();
    state["mcpServers"]["other"] = json!({"command": "o"});
    home.write(".claude.json", &json!(state).to_string());
    home.undo(Client::ClaudeCode);
    // The rule that was there before us stays; those that we added are gone.
    assert_eq!(
        home.json(".claude/settings.json"),
        json!({"model": "opus", "permissions": {"allow": ["mcp__mcpproxy__call_tool_read"]}})
    );
    assert_eq!(
        home.json(".claude.json"),
        json!({"mcpServers": {"other": {"command": "o"}}})
    );
}

#[test]
fn a_former_entry_comes_back() {
    let home = Home::new();
    let former = json!({"command": "old", "args": ["x"], "timeout": 5});
    home.write(
        ".cursor/mcp.json",
        &json!({"mcpServers": {"mcpproxy": former}}).to_string(),
    );
    home.connect(Client::Cursor, &http(), Approval::AsItIs);
    let text = home.read(".cursor/mcp.json");
    home.write(".cursor/mcp.json", &format!("{text}// seen\n"));
    home.undo(Client::Cursor);
    let text = home.read(".cursor/mcp.json");
    assert!(text.ends_with("// seen\n"), "{text}");
    let text = text.trim_end().trim_end_matches("// seen");
    let back: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(back["mcpServers"]["mcpproxy"], former);
}

#[test]
fn toml_that_others_changed_keeps_their_changes() {
    let home = Home::new();
    home.connect(Client::Codex, &http(), Approval::Read);
    home.connect(Client::Gemini, &http(), Approval::Read);
    let text = home.read(".codex/config.toml");
    home.write(
        ".codex/config.toml",
        &format!("model = \"o9\" # mine\n{text}"),
    );
    let rules = home.read(".gemini/policies/mcpproxy.toml");
    home.write(
        ".gemini/policies/mcpproxy.toml",
        &format!("{rules}\n[[rule]]\ntoolName = \"ls\"\n"),
    );
    home.undo(Client::Codex);
    home.undo(Client::Gemini);
    assert_eq!(
        home.read(".codex/config.toml").trim(),
        "model = \"o9\" # mine"
    );
    let rules = home.read(".gemini/policies/mcpproxy.toml");
    assert_eq!(rules.trim(), "[[rule]]\ntoolName = \"ls\"");
}

#[test]
fn a_change_of_endpoints_is_undone_to_the_very_first_state() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{ \"mcpServers\": {} }\n");
    home.connect(Client::Cursor, &http(), Approval::AsItIs);
    home.connect(Client::Cursor, &stdio(), Approval::AsItIs);
    home.undo(Client::Cursor);
    assert_eq!(home.read(".cursor/mcp.json"), "{ \"mcpServers\": {} }\n");
    assert_eq!(home.files().len(), 1, "{:?}", home.files());
}

/// A value as somebody may have written it, with as many names that matter as possible.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i32>().prop_map(serde_json::Value::from),
        "[a-z\"\\\\\u{e9} /*#]{0,8}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = prop_oneof!["[a-z /*]{1,6}", Just("mcpproxy2".to_owned())];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(name, inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    // Every case waits for the disk a few times.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever else is in a file, it is there afterwards, and after an undo as after an edit.
    #[test]
    fn nothing_else_is_touched(
        servers in proptest::collection::btree_map("[a-z]{1,6}", value(), 0..4),
        rest in proptest::collection::btree_map("[A-Z]{1,6}", value(), 0..4),
        compact in any::<bool>(),
    ) {
        let home = Home::new();
        let mut file = json!(rest);
        file["mcpServers"] = json!(servers);
        let text = if compact { file.to_string() } else { format!("{file:#}\n") };
        home.write(".cursor/mcp.json", &text);
        home.connect(Client::Cursor, &http(), Approval::AsItIs);
        let mut with_us = home.json(".cursor/mcp.json");
        with_us["mcpServers"].as_object_mut().unwrap().remove("mcpproxy").unwrap();
        prop_assert_eq!(&with_us, &file);
        // Somebody looks at it with an editor that adds a newline.
        let edited = home.read(".cursor/mcp.json") + "\n";
        home.write(".cursor/mcp.json", &edited);
        home.undo(Client::Cursor);
        prop_assert_eq!(home.json(".cursor/mcp.json"), file);
    }
}
