//! `activity`, of a log in which every kind of end occurs.

use serde_json::json;
use testkit::{Script, TestDaemon};

use super::{Scene, note_tools};
use crate::support::home;

/// What happened before anybody looks.
const CALLS: [&str; 5] = [
    "call tool-read notes:list_notes --reason 'looking around'",
    "call tool-write notes:create_note --args {\"title\":\"Ideas\"} --sensitivity private",
    "call tool-write notes:archive_note --args {\"id\":7}",
    "call tool-destructive notes:purge_note --args {\"id\":7}",
    "call tool-read notes:purge_note",
];

const ACTIVITY: &str = "
    activity_list                activity list --server notes --source cli
    activity_list_json           activity list --tool create_note -o json
    activity_list_yaml           activity list --tool create_note -o yaml
    activity_list_jsonl          activity list --tool create_note -o jsonl
    activity_list_page           activity list --source cli --limit 1
    activity_list_nothing        activity list --tool nothing
    activity_list_bad_status     activity list --status failed
    activity_list_bad_limit      activity list --limit 1000
    activity_list_bad_cursor     activity list --cursor nonsense
    activity_show                activity show CREATED
    activity_show_json           activity show CREATED -o json
    activity_show_refused        activity show REFUSED
    activity_show_unknown        activity show 01JD0000000000000000000000
    activity_show_bad_id         activity show nonsense
    activity_summary             activity summary
    activity_summary_by_tool     activity summary --by tool
    activity_summary_by_intent   activity summary --by intent
    activity_summary_json        activity summary --by status -o json
    activity_summary_bad_period  activity summary --period 2w
    activity_summary_bad_group   activity summary --by colour
    activity_export              activity export --tool create_note --format json
    activity_export_bodies       activity export --tool create_note --format jsonl --include-bodies
    activity_export_csv          activity export --server notes --source cli --format csv
    activity_export_file         activity export --tool create_note --output calls.json
    activity_export_bad_format   activity export --format xml
    activity_export_bad_place    activity export --output nowhere/calls.json
    activity_simulate            activity simulate --set tool_overrides.notes:*=destructive
    activity_simulate_json       activity simulate --set tool_overrides.notes:*=destructive -o json
    activity_simulate_same       activity simulate
    activity_simulate_no_value   activity simulate --set intent_declaration
    activity_simulate_unknown    activity simulate --set intent_declaration.colour=red
    activity_simulate_bad_value  activity simulate --set intent_declaration.unannotated=maybe
    activity_verify              activity verify
    activity_verify_json         activity verify -o json
    activity_verify_other_head   activity verify --head 0000
";

#[tokio::test]
async fn commands_about_activity() {
    let home = home();
    let upstream = home.upstream("notes", &Script::new(note_tools()));
    let daemon = TestDaemon::with_servers(home, json!({"notes": upstream.config()})).await;
    daemon.wait_for_server("notes").await;
    for line in CALLS {
        daemon
            .home
            .cli(super::words(line).collect::<Vec<_>>())
            .await;
    }
    let of = async |filter: &str| {
        let page = daemon.api(&format!("/activity?{filter}")).await;
        page["activities"][0]["id"].as_str().unwrap().to_owned()
    };
    let scene = Scene::new(&daemon.home)
        .naming("CREATED", of("tool=create_note").await)
        .naming("REFUSED", of("status=blocked").await);
    scene.pin(ACTIVITY).await;
}
