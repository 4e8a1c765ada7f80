//! Commands that read and write files and need no daemon.

use testkit::Home;

use super::Scene;
use crate::support::home;

const FURNISHED: &str = "
    connect_list             connect
    connect_list_json        connect -o json
    connect_preview          connect cursor --dry-run
    connect_preview_json     connect cursor --dry-run -o json
    connect_unknown_client   connect curser
    connect_broken_file      connect gemini --yes
    connect_nothing_to_undo  connect codex --undo --yes
    connect_without_consent  connect windsurf
    connect_approved         connect cursor --yes
    connect_again            connect cursor --yes
    connect_undone_json      connect cursor --undo --yes -o json
    import                   upstream import --dry-run
    import_json              upstream import --dry-run -o json
    import_unknown_server    upstream import --server x
    import_unknown_client    upstream import --from curser
    import_taken             upstream import --server files --yes
    permissions              doctor permissions
    permissions_json         doctor permissions -o json
    permissions_yaml         doctor permissions -o yaml
    config_path              config path
    config_path_json         config path -o json
    config_path_jsonl        config path -o jsonl
    config_check             config check
    config_check_json        config check -o json
    config_show              config show
    config_show_json         config show -o json
    config_show_yaml         config show -o yaml
    config_check_missing     config check --config nowhere.json
    config_check_broken      config check --config .gemini/settings.json
    config_set               config set intent_declaration.unannotated infer
    config_set_json          config set tool_response_limit 5000 -o json
    config_set_bad_value     config set intent_declaration.unannotated maybe
    config_set_unknown       config set intent_declaration.unanotated infer
    config_show_broken       config show --config .gemini/settings.json
";

const WITHOUT_DAEMON: &str = "
    status_without_daemon   status
    watch_broken_config     activity watch --config .gemini/settings.json
    follow_without_daemon   upstream logs notes --follow
    serve_broken_config     serve --config .gemini/settings.json
    serve_open_to_all       serve --listen 0.0.0.0:0
    stdio_broken_config     stdio --config .gemini/settings.json
    override_list_broken_config  tools override list --config .gemini/settings.json
    list_broken_config      upstream list --config .gemini/settings.json
    demo_server_no_file     demo-server --store .gemini
    logs_nothing            logs
    logs_json               logs -o json
    logs_no_lines           logs --lines 0
    stop_nothing            stop
    stop_nothing_json       stop -o json
    stop_broken_config      stop --config .gemini/settings.json
    restart_broken_config   restart --config .gemini/settings.json
    service_status          service status
    service_uninstall       service uninstall
    service_uninstall_json  service uninstall -o json
    service_install_broken_config  service install --config .gemini/settings.json
    restart                 restart
";

/// What somebody sees who has just begun. The log comes first: other commands start a daemon, which
/// is recorded.
const EMPTY: &str = "
    empty_activity_list     activity list
    empty_activity_summary  activity summary
    empty_activity_verify   activity verify
    empty_activity_export   activity export
    empty_simulate          activity simulate
    empty_upstream_list     upstream list
    empty_tools_list        tools list
    empty_tools_search      tools search note
    empty_audit             audit
    empty_import            upstream import
    empty_call              call tool-read notes:list_notes
    empty_permissions       doctor permissions
    empty_permissions_json  doctor permissions -o json
    empty_config_check      config check
";

/// What is refused before any command runs.
const NOT_UNDERSTOOD: &str = "
    unknown_command       conect
    unknown_format        connect -o xml
    unknown_option        tools list --lanes read
    unknown_lane          tools list --lane writes
    unknown_tier          tools override set notes:* harmless
    unknown_time          activity list --since yesterday
    unknown_shell         completions tcsh
    unknown_address       serve --listen everywhere
    without_argument      upstream remove
    without_transport     upstream add notes
    two_transports        upstream add notes --url http://x/mcp -- notes
    without_command       upstream
    search_limit          tools search notes --limit 51
    approve_lane          connect cursor --approve write
    import_contradiction  upstream import --yes --dry-run
    audit_contradiction   audit --server a --tools b.json
";

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
async fn commands_about_files() {
    let home = furnished();
    Scene::new(&home).pin(FURNISHED).await;
}

#[tokio::test]
async fn commands_in_an_empty_home() {
    let home = home();
    Scene::new(&home).pin(EMPTY).await;
}

#[tokio::test]
async fn commands_that_miss_a_daemon() {
    let home = furnished();
    Scene::new(&home).pin(WITHOUT_DAEMON).await;
}

#[tokio::test]
async fn command_lines_that_are_not_understood() {
    let home = home();
    Scene::new(&home).pin(NOT_UNDERSTOOD).await;
}
