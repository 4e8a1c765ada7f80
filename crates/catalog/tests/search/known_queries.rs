//! Queries as people and agents write them, and the tool each must find.

use crate::support::snapshot;
use crate::tool_lists::{everyday_tools, notes_tools};
use catalog::{Query, Snapshot};

const FIRST: &[(&str, &str)] = &[
    ("open a pull request", "github:create_pull_request"),
    ("file a bug on github", "github:create_issue"),
    ("gitlab create_issue", "gitlab:create_issue"),
    ("list merge requests", "gitlab:listMergeRequests"),
    ("listMergeRequests", "gitlab:listMergeRequests"),
    (
        "Could you please show me the commit history?",
        "git:git_log",
    ),
    ("switch to another branch", "git:git_checkout"),
    ("compare two branches", "git:git_diff"),
    ("what did the pod write to its logs", "k8s:get_pod_logs"),
    ("send a message to a Slack channel", "slack:post_message"),
    ("email my boss", "mail:send_email"),
    ("schedule a meeting with attendees", "calendar:create_event"),
    ("erase all notes", "notes:purge_all"),
    ("undelete a note", "notes:restore_note"),
    ("add rows to a spreadsheet", "sheets:appendRow"),
    ("will it rain? weather tomorrow", "weather:get_forecast"),
    ("latitude of an address", "maps:geocode"),
    ("share price by ticker", "finance:get_stock_price"),
    ("rename a folder", "files:move_file"),
    ("files:read_file", "files:read_file"),
    ("please call `files:read_file` for me", "files:read_file"),
    ("query", "postgres:query"),
    ("screenshot of a page", "browser:take_screenshot"),
    ("download a url as markdown", "web:fetch"),
    ("decode base64", "crypto:decodeBase64"),
    ("搜索关键词", "bing-cn:bing_search"),
    ("take_screnshot", "browser:take_screenshot"),
    ("geocdoe", "maps:geocode"),
    ("create an issue on gitlab", "gitlab:create_issue"),
    ("merge pull request 42", "github:merge_pull_request"),
    ("find code that calls a function", "github:search_code"),
    ("make a fork of a repo", "github:fork_repository"),
    ("which pods are running", "k8s:list_pods"),
    (
        "what channels does the workspace have",
        "slack:list_channels",
    ),
    ("save text to a file", "files:write_file"),
    ("what is in this directory", "files:list_directory"),
    ("find files by name pattern", "files:search_files"),
    ("run sql", "postgres:query"),
    ("which tables are in the database", "postgres:list_tables"),
    ("press a button on the page", "browser:click"),
    ("take a picture of the website", "browser:take_screenshot"),
    ("temperature outside", "weather:get_forecast"),
    ("coordinates of a street", "maps:geocode"),
];

/// Tools that differ only in what they do to a note.
const FIRST_OF_NOTES: &[(&str, &str)] = &[
    ("find notes about taxes", "notes:search_notes"),
    ("read the full text of a note", "notes:get_note"),
    ("earlier versions of a note", "notes:list_note_versions"),
    ("download all notes as markdown", "notes:export_notes"),
    ("write down a new note", "notes:create_note"),
    ("change the title of a note", "notes:update_note"),
    ("add a line to the end of a note", "notes:append_to_note"),
    ("put a label on a note", "notes:tag_note"),
    ("take a tag off a note", "notes:untag_note"),
    ("keep a note at the top", "notes:pin_note"),
    ("bring back a deleted note", "notes:restore_note"),
    (
        "roll a note back to an earlier version",
        "notes:restore_note_version",
    ),
    ("move a note to the bin", "notes:delete_note"),
    ("put a note out of sight", "notes:archive_note"),
    ("delete a note permanently", "notes:purge_note"),
    ("delete a note forever", "notes:purge_note"),
    ("empty the bin", "notes:purge_bin"),
    ("serach_notes", "notes:search_notes"),
    ("NOTES:Purge_Note", "notes:purge_note"),
];

/// Queries whose words fit another tool as well.
const AMONG_THE_FIRST_THREE: &[(&str, &str)] = &[
    ("look for an old mail", "mail:search_messages"),
    ("appointments of the coming week", "calendar:list_events"),
];

const AMONG_THE_FIRST_THREE_OF_NOTES: &[(&str, &str)] = &[
    ("list my notes", "notes:list_notes"),
    ("which tags are there", "notes:list_tags"),
    ("what is in the trash", "notes:list_bin"),
    ("permanently erase every note", "notes:purge_all_notes"),
    ("load exported notes again", "notes:import_notes"),
    ("stick a note to the top", "notes:pin_note"),
    ("undo my last edit", "notes:restore_note_version"),
];

#[test]
fn the_right_tool_comes_first() {
    let mut missed = missed(&snapshot(&everyday_tools()), FIRST, 1);
    missed.extend(self::missed(&snapshot(&notes_tools()), FIRST_OF_NOTES, 1));
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn the_right_tool_is_among_the_first_three() {
    let mut missed = missed(&snapshot(&everyday_tools()), AMONG_THE_FIRST_THREE, 3);
    missed.extend(self::missed(
        &snapshot(&notes_tools()),
        AMONG_THE_FIRST_THREE_OF_NOTES,
        3,
    ));
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

fn missed(snapshot: &Snapshot, known: &[(&str, &str)], among: usize) -> Vec<String> {
    let known = known.iter();
    known
        .filter_map(|(query, expected)| {
            let found = best(snapshot, query, among);
            let missed = !found.iter().any(|id| id == expected);
            missed.then(|| format!("{query:?}: wanted {expected}, found {found:?}"))
        })
        .collect()
}

fn best(snapshot: &Snapshot, query: &str, limit: usize) -> Vec<String> {
    let hits = snapshot.search(&Query::new(query, limit)).hits;
    hits.iter().map(|hit| hit.tool.id.to_string()).collect()
}

#[test]
fn a_query_about_nothing_here_finds_nothing() {
    let snapshot = snapshot(&everyday_tools());
    for query in [
        "",
        "   ",
        "the of and",
        "👩‍💻🔥",
        "\u{0}\u{1b}[31m\u{7f}",
        "xylophone quartet",
    ] {
        let results = snapshot.search(&Query::new(query, 10));
        assert_eq!((results.hits.len(), results.total), (0, 0), "{query:?}");
    }
}

#[test]
fn a_question_about_something_else_finds_no_note() {
    let snapshot = snapshot(&notes_tools());
    for query in [
        "what is the weather on mars tomorrow",
        "book a flight to Lisbon",
        "current price of copper",
        "restart the kubernetes cluster",
    ] {
        let results = snapshot.search(&Query::new(query, 10));
        let found: Vec<_> = results
            .hits
            .iter()
            .map(|hit| (hit.tool.id.as_str(), hit.score))
            .collect();
        assert!(found.is_empty(), "{query:?}: {found:?}");
    }
}

#[test]
fn what_all_tools_are_about_is_not_nothing() {
    let snapshot = snapshot(&notes_tools());
    assert!(!best(&snapshot, "star a note", 10).is_empty());
}

#[test]
fn weak_matches_are_not_counted_beside_strong_ones() {
    let snapshot = snapshot(&notes_tools());
    let results = snapshot.search(&Query::new("delete a note forever", 10));
    assert!(results.total * 3 < snapshot.len() * 2, "{}", results.total);
}

#[test]
fn any_limit_and_any_length_is_served() {
    let snapshot = snapshot(&everyday_tools());
    let total = snapshot.search(&Query::new("list", usize::MAX)).total;
    assert!(total > 5);
    for limit in [0, 1, total, 1_000_000_000] {
        let results = snapshot.search(&Query::new("list", limit));
        assert_eq!(
            (results.hits.len(), results.total),
            (limit.min(total), total)
        );
    }
    let long = "list issues é ".repeat(100_000 / 15);
    assert_eq!(best(&snapshot, &long, 1), ["github:list_issues"]);
}
