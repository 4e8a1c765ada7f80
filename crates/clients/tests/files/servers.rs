//! The servers of other programs, as candidates for our own config.

use clients::{Candidate, Client, ImportVerdict, OwnAddress, select, survey};
use serde_json::{Value, json};

use crate::support::Home;

fn own() -> OwnAddress {
    OwnAddress {
        listen: ([127, 0, 0, 1], 8080).into(),
        program: Some("/opt/bin/mcpproxy".into()),
    }
}

fn candidates(home: &Home) -> Vec<Candidate> {
    select(survey(Client::ALL, &home.places), &[], &own())
}

fn entry_of(candidates: &[Candidate], name: &str) -> Value {
    let named = |candidate: &&Candidate| candidate.written_name == name;
    let found = candidates.iter().find(named).unwrap();
    assert!(matches!(found.verdict, ImportVerdict::Take(_)), "{found:?}");
    Value::Object(found.entry.clone())
}

#[test]
fn every_client_is_understood_in_its_own_words() {
    let home = Home::new();
    home.write(
        ".claude.json",
        r#"{"mcpServers": {"cc": {"type": "stdio", "command": "cc", "env": {"K": "${TOKEN}"}}}}"#,
    );
    home.write(
        ".config/Claude/claude_desktop_config.json",
        r#"{"mcpServers": {"cd": {"command": "cd", "args": ["-y", "${literal}"]}}}"#,
    );
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"cu": {"url": "https://cu/mcp", "headers": {"A": "${env:A}"}}}}"#,
    );
    home.write(
        ".config/Code/User/mcp.json",
        r#"{"servers": {"vs": {"type": "sse", "url": "https://vs/sse"}}, // mine
        }"#,
    );
    home.write(
        ".codex/config.toml",
        "[mcp_servers.co]\nurl = \"https://co/mcp\"\nbearer_token_env_var = \"CO\"\nenv_http_headers = { X = \"XV\" }\n\
         [mcp_servers.co2]\ncommand = \"co2\"\nenv_vars = [\"PATHY\"]\nenabled = false\n",
    );
    home.write(".gemini/settings.json", r#"{"mcpServers": {"ge": {"httpUrl": "https://ge/$P"}, "ge2": {"url": "https://ge2/sse"}}}"#);
    home.write(
        ".codeium/windsurf/mcp_config.json",
        r#"{"mcpServers": {"wi": {"serverUrl": "https://wi/mcp", "disabled": true}}}"#,
    );
    let found = candidates(&home);
    for (name, entry) in [
        ("cc", json!({"command": "cc", "env": {"K": "${env:TOKEN}"}})),
        ("cd", json!({"command": "cd", "args": ["-y", "${literal}"]})),
        (
            "cu",
            json!({"url": "https://cu/mcp", "headers": {"A": "${env:A}"}}),
        ),
        ("vs", json!({"url": "https://vs/sse", "type": "sse"})),
        (
            "co",
            json!({"url": "https://co/mcp", "headers": {"X": "${env:XV}", "Authorization": "Bearer ${env:CO}"}}),
        ),
        (
            "co2",
            json!({"command": "co2", "env": {"PATHY": "${env:PATHY}"}, "enabled": false}),
        ),
        ("ge", json!({"url": "https://ge/${env:P}"})),
        ("ge2", json!({"url": "https://ge2/sse", "type": "sse"})),
        ("wi", json!({"url": "https://wi/mcp", "enabled": false})),
    ] {
        assert_eq!(entry_of(&found, name), entry, "{name}");
    }
    assert_eq!(found.len(), 9, "{found:?}");
}

#[test]
fn servers_of_a_project_run_in_it() {
    let home = Home::new();
    home.write(
        "project/.mcp.json",
        r#"{"mcpServers": {"p": {"command": "./serve"}}}"#,
    );
    home.write(
        "project/.vscode/mcp.json",
        r#"{"servers": {"q": {"command": "q", "cwd": "sub", "args": ["${workspaceFolder}"]}}}"#,
    );
    let found = candidates(&home);
    let project = home.path("project");
    let project = project.to_str().unwrap();
    assert_eq!(
        entry_of(&found, "p"),
        json!({"command": "./serve", "working_dir": project})
    );
    assert_eq!(
        entry_of(&found, "q"),
        json!({"command": "q", "args": [project], "working_dir": format!("{project}/sub")})
    );
}

#[test]
fn the_same_server_is_taken_once_and_clashing_names_are_changed() {
    let home = Home::new();
    home.write(
        ".claude.json",
        r#"{"mcpServers": {"github": {"command": "gh"}, "My Notes": {"command": "n"}}}"#,
    );
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"github": {"command": "gh"}}}"#,
    );
    home.write(
        ".gemini/settings.json",
        r#"{"mcpServers": {"github": {"command": "other"}}}"#,
    );
    let found = candidates(&home);
    let taken: Vec<(String, usize)> = found
        .iter()
        .map(|candidate| match &candidate.verdict {
            ImportVerdict::Take(name) => (name.to_string(), candidate.clients().len()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [("github", 2), ("My-Notes", 1), ("github-gemini", 1)];
    assert_eq!(
        taken,
        expected.map(|(name, clients)| (name.to_owned(), clients))
    );
    assert!(found[2].notes[0].contains("github"), "{:?}", found[2].notes);
    // Once they are ours, they are not taken again.
    let ours: Vec<_> = found
        .iter()
        .filter_map(|candidate| candidate.config.clone())
        .collect();
    for candidate in select(survey(Client::ALL, &home.places), &ours, &own()) {
        assert!(
            matches!(candidate.verdict, ImportVerdict::Present(_)),
            "{candidate:?}"
        );
    }
}

#[test]
fn we_are_never_imported_into_ourselves() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "a": {"url": "http://localhost:8080/mcp"}, "b": {"url": "http://[::1]:8080/mcp/direct"},
            "mcpproxy": {"url": "http://127.0.0.1:9999/mcp"}, "c": {"command": "/opt/bin/mcpproxy", "args": ["stdio"]},
            "d": {"command": "mcpproxy", "args": ["stdio", "--config", "x"]}
        }}"#,
    );
    for candidate in candidates(&home) {
        assert_eq!(candidate.verdict, ImportVerdict::Ourselves, "{candidate:?}");
    }
}

#[test]
fn what_cannot_be_taken_says_why_and_the_rest_is_taken() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "input": {"url": "https://x/", "headers": {"A": "${input:key}"}}, "none": {"timeout": 1},
            "list": [], "url": {"url": "ftp://x"}, "args": {"command": "x", "args": "y"}, "good": {"command": "g"}
        }}"#,
    );
    home.write(".gemini/settings.json", "{");
    let survey = survey(Client::ALL, &home.places);
    assert_eq!(survey.failures.len(), 1);
    let found = select(survey, &[], &own());
    for (name, word) in [
        ("input", "asks the person"),
        ("none", "neither a command nor a url"),
        ("list", "an object"),
        ("url", "http://"),
        ("args", "a list"),
    ] {
        let candidate = found.iter().find(|it| it.written_name == name).unwrap();
        let ImportVerdict::Unusable(why) = &candidate.verdict else {
            panic!("{candidate:?}");
        };
        assert!(why.contains(word), "{name}: {why}");
    }
    entry_of(&found, "good");
}
