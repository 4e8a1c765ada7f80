//! Queries as people write them, over the demo server and real servers from npm and PyPI, each with
//! the tool it must find. Written from what the tools are for, not from what the search returns.

use serde_json::{Value, json};
use testkit::{Session, TestDaemon, wait_until};

use crate::peers::{SLOW_START, tool};
use crate::real_peers::npm_server;
use crate::support::home;

/// The share of queries, in percent, whose tool must come first or be among the first five. A new
/// version of a server may word a tool differently, so that not every query can be held to it.
const FIRST: usize = 70;
const AMONG_FIVE: usize = 90;

/// No tool here has to do with these. What shares a stray word with one may be shown, but with a
/// score that says so.
const ABOUT_NOTHING_HERE: [&str; 6] = [
    "book a flight to Lisbon",
    "order a pizza with mushrooms",
    "quantum chromodynamics",
    "translate a poem into Finnish",
    "restart the kubernetes cluster",
    "play some jazz music",
];
const WEAK: f64 = 0.1;

const DEMO: &[(&str, &str)] = &[
    ("what notes do I have", "list_notes"),
    ("show the whole text of one note", "get_note"),
    ("find my notes about the garden", "search_notes"),
    ("which tags have I used", "list_tags"),
    ("see earlier versions of a note", "list_note_versions"),
    ("what is in the bin", "list_bin"),
    ("export my notes as markdown", "export_notes"),
    ("jot down an idea as a new note", "create_note"),
    ("change the title of a note", "update_note"),
    ("add a line at the end of a note", "append_to_note"),
    ("put a tag on a note", "tag_note"),
    ("remove a tag from a note", "untag_note"),
    ("keep a note at the top of the list", "pin_note"),
    ("bring a deleted note back", "restore_note"),
    (
        "go back to an older version of my note",
        "restore_note_version",
    ),
    ("delete a note", "delete_note"),
    ("archive a note I no longer need", "archive_note"),
    ("delete a note for good", "purge_note"),
    ("empty the bin", "purge_bin"),
    ("erase every note there is", "purge_all_notes"),
    ("import notes from a file", "import_notes"),
];

const FILESYSTEM: &[(&str, &str)] = &[
    ("open a text file and read it", "read_text_file"),
    ("load a picture from disk", "read_media_file"),
    ("read several files at once", "read_multiple_files"),
    ("save text to a new file", "write_file"),
    ("replace a line in a file", "edit_file"),
    ("make a new folder", "create_directory"),
    ("what files are in this directory", "list_directory"),
    (
        "how big are the files in a folder",
        "list_directory_with_sizes",
    ),
    ("show the folder structure as a tree", "directory_tree"),
    ("rename a file", "move_file"),
    ("find files matching *.rs", "search_files"),
    ("when was this file last modified", "get_file_info"),
    ("which directories may I access", "list_allowed_directories"),
    ("move a document to another folder", "move_file"),
];

const MEMORY: &[(&str, &str)] = &[
    (
        "remember a new person in the knowledge graph",
        "create_entities",
    ),
    ("link two entities with a relation", "create_relations"),
    ("add a fact about a known entity", "add_observations"),
    ("forget an entity completely", "delete_entities"),
    ("remove a wrong observation", "delete_observations"),
    ("remove a relation between two entities", "delete_relations"),
    ("show everything in the knowledge graph", "read_graph"),
    ("search the knowledge graph for a person", "search_nodes"),
    ("open nodes by name", "open_nodes"),
];

const EVERYTHING: &[(&str, &str)] = &[
    ("echo a message back", "echo"),
    ("add two numbers", "get-sum"),
    ("environment variables of the server", "get-env"),
    ("compress a file with gzip", "gzip-file-as-resource"),
    ("a tiny image", "get-tiny-image"),
    (
        "run a long operation with progress",
        "trigger-long-running-operation",
    ),
    ("turn simulated logging on", "toggle-simulated-logging"),
    ("resource links", "get-resource-links"),
    ("simulate a research query", "simulate-research-query"),
    ("get_sum", "get-sum"),
];

const GIT: &[(&str, &str)] = &[
    ("which files have I changed in the repository", "git_status"),
    ("show what is staged for the next commit", "git_diff_staged"),
    ("changes that are not staged yet", "git_diff_unstaged"),
    ("compare two branches", "git_diff"),
    ("commit my changes", "git_commit"),
    ("stage a file", "git_add"),
    ("unstage everything", "git_reset"),
    ("commit history", "git_log"),
    ("make a new branch", "git_create_branch"),
    ("switch to another branch", "git_checkout"),
    ("what did this commit change", "git_show"),
    ("list all branches", "git_branch"),
    ("git_chekout", "git_checkout"),
];

const TIME: &[(&str, &str)] = &[
    ("what time is it in Tokyo", "get_current_time"),
    ("convert 3 pm in Berlin to New York time", "convert_time"),
    ("current time", "get_current_time"),
];

const SERVERS: [(&str, &[(&str, &str)]); 6] = [
    ("demo", DEMO),
    ("filesystem", FILESYSTEM),
    ("memory", MEMORY),
    ("everything", EVERYTHING),
    ("git", GIT),
    ("time", TIME),
];

/// The demo and the real servers, once all of them have listed their tools.
async fn all_servers() -> (TestDaemon, Session) {
    let home = home();
    let path = |name: &str| home.path().join(name);
    let files = home.path().to_str().unwrap();
    let binary = env!("CARGO_BIN_EXE_mcpproxy");
    let servers = json!({
        "demo": {"command": binary, "args": ["demo-server", "--store", path("notes.db")]},
        "filesystem": npm_server("mcp-server-filesystem", &[files], &json!({})),
        "memory": npm_server(
            "mcp-server-memory", &[], &json!({"MEMORY_FILE_PATH": path("memory.jsonl")})),
        "everything": npm_server("mcp-server-everything", &["stdio"], &json!({})),
        // It lists its tools without git, too, if it is told not to look for it.
        "git": {"command": tool("venv/bin").join("mcp-server-git"),
            "env": {"GIT_PYTHON_REFRESH": "quiet"}},
        "time": {"command": tool("venv/bin").join("mcp-server-time"),
            "args": ["--local-timezone", "UTC"]},
    });
    let daemon = TestDaemon::with_servers(home, servers).await;
    let session = daemon.session().await;
    wait_until("all servers are ready", SLOW_START, async || {
        let servers = daemon.api("/servers").await;
        let servers = servers["servers"].as_array().unwrap();
        servers.iter().all(|server| server["state"] == "ready")
    })
    .await;
    (daemon, session)
}

#[tokio::test]
async fn the_wanted_tool_is_found_among_those_of_real_servers() {
    let (_daemon, session) = all_servers().await;
    let (mut asked, mut first, mut among_five) = (0, 0, 0);
    let mut missed = Vec::new();
    for (server, queries) in SERVERS {
        for (query, wanted) in queries {
            let wanted = format!("{server}:{wanted}");
            let found = session.names(&json!({"query": query, "limit": 5})).await;
            asked += 1;
            first += usize::from(found.first() == Some(&wanted));
            among_five += usize::from(found.contains(&wanted));
            if found.first() != Some(&wanted) {
                missed.push(format!("{query:?}: wanted {wanted}, found {found:?}"));
            }
        }
    }
    assert!(asked >= 60, "{asked}");
    let missed = missed.join("\n");
    assert!(
        first * 100 >= asked * FIRST,
        "{first} of {asked} first\n{missed}"
    );
    assert!(
        among_five * 100 >= asked * AMONG_FIVE,
        "{among_five} of {asked}\n{missed}"
    );

    let mut nothing = 0;
    for query in ABOUT_NOTHING_HERE {
        let found = session.retrieve(&json!({"query": query})).await;
        let best = found["tools"][0]["score"].as_f64();
        nothing += usize::from(best.is_none());
        assert!(best.is_none_or(|score| score < WEAK), "{query:?}: {found}");
        assert_eq!(
            best.is_none(),
            found["hint"] != Value::Null,
            "{query:?}: {found}"
        );
    }
    assert!(nothing * 2 >= ABOUT_NOTHING_HERE.len(), "{nothing}");
}
