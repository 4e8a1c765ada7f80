//! Lists of tools as servers announce them, made by hand.

use std::sync::Arc;

use catalog::ToolDefinition;

use crate::support::{tool, tool_with};

/// A bit of everything that an agent is connected to.
pub(crate) fn everyday_tools() -> Vec<Arc<ToolDefinition>> {
    let mut tools = code_tools();
    tools.extend(office_tools());
    tools.extend(system_tools());
    tools
}

/// One server whose tools are all about the same thing and tell apart only by what they do to it,
/// with the names and descriptions of the built-in demo.
pub(crate) fn notes_tools() -> Vec<Arc<ToolDefinition>> {
    NOTES
        .iter()
        .map(|(name, description, parameters)| tool_with("notes", name, description, parameters))
        .collect()
}

const NOTES: &[(&str, &str, &[&str])] = &[
    (
        "list_notes",
        "List notes, pinned ones first and then the most recently changed, with their ids, titles and tags. Can be narrowed to a tag, or to the archive.",
        &["tag", "archived", "limit"],
    ),
    (
        "get_note",
        "Read one note in full: title, text, tags and state. Works for notes in the bin, too.",
        &["id"],
    ),
    (
        "search_notes",
        "Find notes by words in their title, tags or text, best match first. Notes in the bin are not searched.",
        &["query", "limit"],
    ),
    (
        "list_tags",
        "List all tags and how many notes carry each.",
        &[],
    ),
    (
        "list_note_versions",
        "List the earlier versions of a note's title and text, the latest first.",
        &["id"],
    ),
    (
        "list_bin",
        "List the deleted notes that can still be restored.",
        &[],
    ),
    (
        "export_notes",
        "Get all notes outside the bin at once, as JSON or Markdown. Reports progress.",
        &["format"],
    ),
    (
        "create_note",
        "Write a new note and get its id.",
        &["title", "text", "tags"],
    ),
    (
        "update_note",
        "Change the title or the text of a note. The previous version is kept.",
        &["id", "title", "text"],
    ),
    (
        "append_to_note",
        "Add a line or more at the end of a note's text. The previous version is kept.",
        &["id", "text"],
    ),
    (
        "tag_note",
        "Put a tag on a note. The tag need not exist yet.",
        &["id", "tag"],
    ),
    (
        "untag_note",
        "Take a tag off a note; tag_note puts it back.",
        &["id", "tag"],
    ),
    (
        "pin_note",
        "Keep a note at the top of lists, or stop doing so.",
        &["id", "pinned"],
    ),
    (
        "restore_note",
        "Bring a note back from the bin or from the archive.",
        &["id"],
    ),
    (
        "restore_note_version",
        "Give a note the title and text of one of its earlier versions. The present version is kept, so this can be taken back.",
        &["id", "version"],
    ),
    (
        "delete_note",
        "Move a note to the bin. It can be restored with restore_note until it is purged.",
        &["id"],
    ),
    (
        "archive_note",
        "Put a note out of sight of list_notes. It stays searchable and can be restored with restore_note.",
        &["id"],
    ),
    (
        "purge_note",
        "Permanently delete one note with all its versions. This cannot be undone.",
        &["id"],
    ),
    (
        "purge_bin",
        "Permanently delete every note in the bin. This cannot be undone. Reports progress.",
        &[],
    ),
    (
        "purge_all_notes",
        "Permanently delete every note, in the bin or not. This cannot be undone. Reports progress.",
        &[],
    ),
    (
        "import_notes",
        "Bring in notes that export_notes gave, beside the present notes or, with mode replace, permanently in place of them all. Replacing cannot be undone. Reports progress.",
        &["notes", "mode"],
    ),
];

fn code_tools() -> Vec<Arc<ToolDefinition>> {
    vec![
        tool_with(
            "github",
            "create_issue",
            "Create a new issue in a GitHub repository.",
            &["owner", "repo", "title", "body"],
        ),
        tool_with(
            "github",
            "list_issues",
            "List and filter repository issues.",
            &["owner", "repo", "state"],
        ),
        tool_with(
            "github",
            "create_pull_request",
            "Open a new pull request to propose changes.",
            &["head", "base"],
        ),
        tool_with(
            "github",
            "merge_pull_request",
            "Merge a pull request.",
            &["pull_number"],
        ),
        tool_with(
            "github",
            "search_code",
            "Search for code across repositories.",
            &["q"],
        ),
        tool_with(
            "github",
            "fork_repository",
            "Fork a repository to your account.",
            &["owner", "repo"],
        ),
        tool_with(
            "gitlab",
            "create_issue",
            "Create a new issue in a GitLab project.",
            &["project_id", "title"],
        ),
        tool_with(
            "gitlab",
            "listMergeRequests",
            "List the merge requests of a project.",
            &["project_id"],
        ),
        tool_with(
            "git",
            "git_log",
            "Shows the commit logs.",
            &["repo_path", "max_count"],
        ),
        tool_with(
            "git",
            "git_diff",
            "Shows differences between branches or commits.",
            &["target"],
        ),
        tool_with(
            "git",
            "git_checkout",
            "Switches branches.",
            &["branch_name"],
        ),
        tool_with(
            "k8s",
            "list_pods",
            "List the pods in a namespace of the cluster.",
            &["namespace"],
        ),
        tool_with(
            "k8s",
            "get_pod_logs",
            "Print what a pod has written to its log.",
            &["pod", "since"],
        ),
    ]
}

fn office_tools() -> Vec<Arc<ToolDefinition>> {
    vec![
        tool_with(
            "slack",
            "post_message",
            "Post a message to a channel.",
            &["channel_id", "text"],
        ),
        tool_with(
            "slack",
            "list_channels",
            "List public channels in the workspace.",
            &["cursor"],
        ),
        tool_with(
            "mail",
            "send_email",
            "Send an email to one or more recipients.",
            &["to", "subject"],
        ),
        tool_with(
            "mail",
            "search_messages",
            "Search the mailbox for messages.",
            &["query"],
        ),
        tool_with(
            "calendar",
            "create_event",
            "Schedule an event with attendees.",
            &["start", "attendees"],
        ),
        tool_with(
            "calendar",
            "list_events",
            "List upcoming events between two dates.",
            &["from", "to"],
        ),
        tool_with(
            "notes",
            "purge_all",
            "Delete every note for good, the bin included.",
            &[],
        ),
        tool_with(
            "notes",
            "restore_note",
            "Bring a note back from the bin.",
            &["id"],
        ),
        tool(
            "sheets",
            "appendRow",
            "Append a row of values to the end of a spreadsheet.",
        ),
        tool(
            "weather",
            "get_forecast",
            "Weather forecast for the coming days at a location.",
        ),
        tool(
            "maps",
            "geocode",
            "Turn a postal address into latitude and longitude.",
        ),
        tool(
            "finance",
            "get_stock_price",
            "Current price of a stock by ticker symbol.",
        ),
    ]
}

fn system_tools() -> Vec<Arc<ToolDefinition>> {
    vec![
        tool_with(
            "files",
            "read_file",
            "Read the complete contents of a file.",
            &["path"],
        ),
        tool_with(
            "files",
            "write_file",
            "Create a file or overwrite an existing one.",
            &["path", "content"],
        ),
        tool_with(
            "files",
            "move_file",
            "Move or rename files and directories.",
            &["source", "destination"],
        ),
        tool_with(
            "files",
            "list_directory",
            "List the entries of a directory.",
            &["path"],
        ),
        tool_with(
            "files",
            "search_files",
            "Find files whose names match a pattern.",
            &["pattern"],
        ),
        tool_with("postgres", "query", "Run a read-only SQL query.", &["sql"]),
        tool_with(
            "postgres",
            "list_tables",
            "List the tables in a schema.",
            &["schema"],
        ),
        tool_with(
            "browser",
            "take_screenshot",
            "Capture the visible part of a web page.",
            &["selector"],
        ),
        tool_with(
            "browser",
            "click",
            "Click an element on the page.",
            &["selector"],
        ),
        tool_with(
            "web",
            "fetch",
            "Fetch a URL and return its contents as markdown.",
            &["url"],
        ),
        tool(
            "crypto",
            "decodeBase64",
            "Turn Base64 text back into bytes.",
        ),
        tool(
            "bing-cn",
            "bing_search",
            "使用必应搜索指定的关键词，并返回搜索结果列表",
        ),
    ]
}
