//! `upstream`, `status` and `doctor`, with servers that are well, changed, failed and off.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use testkit::{DEADLINE, Outcome, Script, TestDaemon, Tool, wait_until};

use super::{Scene, note_tools};
use crate::support::{home, server_in};

const LOOKS: &str = "
    status                  status
    status_json             status -o json
    status_yaml             status -o yaml
    upstream_list           upstream list
    upstream_list_json      upstream list -o json
    upstream_list_jsonl     upstream list -o jsonl
    upstream_logs           upstream logs notes
    upstream_logs_json      upstream logs notes -o json
    upstream_logs_jsonl     upstream logs notes -o jsonl
    upstream_logs_nothing   upstream logs off
    upstream_logs_unknown   upstream logs note
    upstream_logs_too_many  upstream logs notes --lines 501
    doctor                  doctor
    doctor_json             doctor -o json
    serve_twice             serve
";

const HEALTHY: &str = "
    doctor_healthy       doctor
    doctor_healthy_json  doctor -o json
";

const CHANGES: &str = "
    upstream_diff                     upstream diff notes
    upstream_diff_json                upstream diff notes -o json
    upstream_diff_unknown             upstream diff note
    upstream_diff_unknown_tool        upstream diff notes list_note
    upstream_list_held                upstream list
    tools_list_held                   tools list --server notes
    tools_show_held                   tools show notes:list_notes
    call_held                         call tool-read notes:list_notes
    upstream_approve                  upstream approve notes list_notes
    upstream_approve_nothing          upstream approve notes
    upstream_approve_json             upstream approve notes -o json
    upstream_approve_unknown          upstream approve note
    upstream_approve_unknown_tool     upstream approve notes list_note
    upstream_diff_nothing             upstream diff notes
    upstream_quarantine               upstream quarantine notes upgrade
    upstream_quarantine_all           upstream quarantine notes
    upstream_quarantine_json          upstream quarantine notes upgrade -o json
    upstream_quarantine_unknown       upstream quarantine note
    upstream_quarantine_unknown_tool  upstream quarantine notes nothing
    upstream_diff_quarantined         upstream diff notes upgrade
";

const EDITS: &str = "
    upstream_add               upstream add more -- PROGRAM ~/more.script.json ~/more.record.jsonl
    upstream_add_json          upstream add most -o json -- PROGRAM ~/more.script.json ~/more.record.jsonl
    upstream_add_present       upstream add more -- PROGRAM ~/more.script.json ~/more.record.jsonl
    upstream_add_unchecked     upstream add later --no-check --url https://notes.example/mcp
    upstream_add_no_program    upstream add bad -- no-such-program-anywhere
    upstream_add_bad_name      upstream add 'a b' -- program
    upstream_add_bad_url       upstream add bad --url notes.example
    upstream_add_bad_timeout   upstream add bad --timeout soon -- program
    upstream_add_bad_variable  upstream add bad --env TOKEN -- program
    upstream_disable           upstream disable more
    upstream_disable_json      upstream disable more -o json
    upstream_disable_unknown   upstream disable mor
    upstream_enable            upstream enable off
    upstream_enable_no_wait    upstream enable off --no-wait
    upstream_enable_json       upstream enable off --no-wait -o json
    upstream_enable_unknown    upstream enable mor
    upstream_restart           upstream restart notes
    upstream_restart_json      upstream restart notes -o json
    upstream_restart_disabled  upstream restart more
    upstream_restart_unknown   upstream restart note
    upstream_remove            upstream remove more
    upstream_remove_json       upstream remove most -o json
    upstream_remove_unknown    upstream remove more
";

/// `notes` says something on its stderr, and offers other tools once `upgrade` was called.
async fn daemon() -> (TestDaemon, String) {
    let home = home();
    let changed = Tool::read_only("list_notes");
    let upgrade = Tool::read_only("upgrade").outcome(Outcome::ReplaceTools(vec![
        changed,
        Tool::read_only("upgrade"),
    ]));
    let [list, ..] = note_tools();
    home.upstream("more", &Script::new(note_tools()));
    let mut notes = home
        .upstream("notes", &Script::new([list, upgrade]))
        .config_with(&json!({"trust": "pin"}));
    let program = notes["command"].as_str().unwrap().to_owned();
    let speaking = ["-c", "echo 'two notes found' >&2; exec \"$@\"", "sh"].map(Into::into);
    let arguments = notes["args"].as_array_mut().unwrap();
    arguments.insert(0, program.as_str().into());
    arguments.splice(0..0, speaking);
    notes["command"] = "sh".into();
    let servers = json!({
        "notes": notes,
        "gone": {"command": "no-such-program-anywhere"},
        "off": {"command": "no-such-program-either", "enabled": false},
    });
    let daemon = TestDaemon::with_servers(home, servers).await;
    daemon.session_with(&["notes:upgrade"]).await;
    server_in(&daemon, "gone", "failed").await;
    (daemon, program)
}

#[tokio::test]
async fn looks_at_servers() {
    let (daemon, program) = daemon().await;
    let scene = Scene::new(&daemon.home)
        .naming("PROGRAM", program)
        .naming("127.0.0.1:PORT", daemon.address());
    wait_until("the log has a line", DEADLINE, async || {
        daemon.api("/servers/notes/logs").await["lines"][0].is_string()
    })
    .await;
    scene.pin(LOOKS).await;
}

#[tokio::test]
async fn nothing_is_wrong() {
    let home = home();
    let upstream = home.upstream("notes", &Script::new(note_tools()));
    let daemon = TestDaemon::with_servers(home, json!({"notes": upstream.config()})).await;
    daemon.wait_for_server("notes").await;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(daemon.home.config_file(), mode).unwrap();
    let scene = Scene::new(&daemon.home).naming("127.0.0.1:PORT", daemon.address());
    scene.pin(HEALTHY).await;
}

#[tokio::test]
async fn servers_whose_tools_change() {
    let (daemon, _) = daemon().await;
    let upgrade = ["call", "tool-read", "notes:upgrade"];
    daemon.home.cli(upgrade).await.succeeded();
    wait_until("the change is seen", DEADLINE, async || {
        daemon.api("/servers/notes").await["held"] == 1
    })
    .await;
    Scene::new(&daemon.home).pin(CHANGES).await;
}

#[tokio::test]
async fn changes_of_servers() {
    let (daemon, program) = daemon().await;
    let scene = Scene::new(&daemon.home).naming("PROGRAM", program);
    scene.unsettled().pin(EDITS).await;
}
