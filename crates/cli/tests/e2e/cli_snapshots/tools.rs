//! `tools`, `call` and `audit`, in front of a server with tools of every kind.

use serde_json::json;
use testkit::{Script, TestDaemon};

use super::{Scene, note_tools};
use crate::support::home;

const TOOLS: &str = "
    tools_list                   tools list
    tools_list_json              tools list -o json
    tools_list_yaml              tools list --lane write -o yaml
    tools_list_jsonl             tools list --lane destructive -o jsonl
    tools_list_unknown_server    tools list --server note
    tools_search                 tools search 'create a note'
    tools_search_json            tools search 'create a note' --limit 1 -o json
    tools_search_explained       tools search 'create a note' --explain
    tools_search_nothing         tools search zzzz
    tools_search_unknown_server  tools search note --server note
    tools_show                   tools show notes:list_notes
    tools_show_json              tools show notes:list_notes -o json
    tools_show_unknown           tools show notes:list_note
    tools_show_unknown_server    tools show note:list_notes
    tools_show_no_server         tools show list_notes
    override_list_empty          tools override list
    override_set                 tools override set notes:archive_note write
    override_set_json            tools override set notes:purge_* destructive -o json
    override_set_no_tool         tools override set notes:nothing write
    override_set_bad_pattern     tools override set 'no pattern' write
    override_list                tools override list
    override_list_json           tools override list -o json
    override_clear               tools override clear notes:archive_note
    override_clear_json          tools override clear notes:purge_* -o json
    override_clear_unknown       tools override clear notes:archive_note
";

const CALLS: &str = r#"
    call_read                      call tool-read notes:list_notes
    call_read_json                 call tool-read notes:list_notes -o json
    call_read_yaml                 call tool-read notes:list_notes -o yaml
    call_write                     call tool-write notes:create_note --args '{"title": "Ideas"}'
    call_write_json                call tool-write notes:create_note -o json
    call_fails                     call tool-write notes:archive_note --args {"id":7}
    call_fails_json                call tool-write notes:archive_note --args {"id":7} -o json
    call_destructive               call tool-destructive notes:purge_note --args {"id":7}
    call_destructive_json          call tool-destructive notes:purge_note --args {"id":7} -o json
    call_refused                   call tool-read notes:purge_note
    call_refused_json              call tool-read notes:purge_note -o json
    call_write_refused             call tool-write notes:purge_note
    call_destructive_unknown_tool  call tool-destructive notes:purge_notes
    call_unknown_tool              call tool-read notes:list_note
    call_unknown_server            call tool-read note:list_notes
    call_no_server                 call tool-read list_notes
    call_bad_arguments             call tool-read notes:list_notes --args {limit}
    call_no_object                 call tool-read notes:list_notes --args [1]
    call_missing_file              call tool-read notes:list_notes --args @nowhere.json
    call_bad_sensitivity           call tool-read notes:list_notes --sensitivity secret
    call_failed_server             call tool-read gone:anything
    call_disabled_server           call tool-read off:anything
"#;

const AUDITS: &str = "
    audit                  audit --server notes
    audit_json             audit --server notes -o json
    audit_all              audit --fail-on none
    audit_markdown         audit --server notes --format markdown
    audit_saved            audit --tools saved.json
    audit_saved_junit      audit --tools saved.json --format junit
    audit_write_manifest   audit --tools saved.json --write-manifest tiers.json
    audit_manifest         audit --tools saved.json --manifest tiers.json
    audit_other_manifest   audit --tools saved.json --manifest other.json
    audit_unknown_server   audit --server note
    audit_strange_server   audit --server 'no & such'
    audit_missing_file     audit --tools nowhere.json
    audit_not_a_list       audit --tools .mcpproxy/mcp_config.json
    audit_broken_manifest  audit --tools saved.json --manifest saved.json
    audit_no_address       audit --url notes.example
    audit_no_program       audit -- no-such-program-anywhere
";

async fn daemon() -> TestDaemon {
    let home = home();
    let upstream = home.upstream("notes", &Script::new(note_tools()));
    let saved = json!({"tools": [
        {"name": "delete_all", "description": "Deletes everything.", "inputSchema": {"type": "object"},
         "annotations": {"readOnlyHint": true}},
        {"name": "read_file", "description": "Reads a file.", "inputSchema": {"type": "object"}},
    ]});
    std::fs::write(home.path().join("saved.json"), saved.to_string()).unwrap();
    let other = json!({"version": 1, "tools": {"write": ["saved:read_file"]}});
    std::fs::write(home.path().join("other.json"), other.to_string()).unwrap();
    let servers = json!({
        "notes": upstream.config(),
        "gone": {"command": "no-such-program-anywhere"},
        "off": {"command": "not-started", "enabled": false},
    });
    let daemon = TestDaemon::with_servers(home, servers).await;
    daemon.session_with(&["notes:list_notes"]).await;
    crate::support::server_in(&daemon, "gone", "failed").await;
    daemon
}

#[tokio::test]
async fn commands_about_tools() {
    let daemon = daemon().await;
    Scene::new(&daemon.home).pin(TOOLS).await;
}

#[tokio::test]
async fn calls() {
    let daemon = daemon().await;
    Scene::new(&daemon.home).pin(CALLS).await;
}

#[tokio::test]
async fn audits() {
    let daemon = daemon().await;
    Scene::new(&daemon.home).pin(AUDITS).await;
}
