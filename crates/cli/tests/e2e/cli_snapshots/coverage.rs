//! No command is forgotten: each of those in `docs/cli.md` is seen as a table, as JSON and failing.

use std::collections::BTreeMap;
use std::path::Path;

/// Commands, the ways in which they are not seen, and why.
const EXCEPTIONS: [(&str, &[&str], &str); 11] = [
    (
        "serve",
        &["table", "json"],
        "it prints its log and does not end",
    ),
    ("stdio", &["table", "json"], "it speaks MCP"),
    ("demo-server", &["table", "json"], "it speaks MCP"),
    ("activity watch", &["table", "json"], "it does not end"),
    (
        "completions",
        &["table", "json"],
        "its scripts are those of a library",
    ),
    ("config path", &["failure"], "it cannot fail"),
    ("restart", &["json"], "it prints what `status` prints"),
    (
        "service install",
        &["table", "json"],
        "it would reach the service manager of the machine; `service.rs` stands in for that",
    ),
    (
        "service uninstall",
        &["failure"],
        "only a file that cannot be removed makes it fail",
    ),
    (
        "service status",
        &["json", "failure"],
        "it says whether the machine has a service manager, and cannot fail",
    ),
    (
        "config schema",
        &["table", "json", "failure"],
        "docs/ has the schema whole, and it cannot fail",
    ),
];

fn snapshots() -> Vec<(String, i32)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/snapshots");
    let files = std::fs::read_dir(folder).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    texts
        .filter_map(|text| {
            let (_, rest) = text.split_once("$ mcpproxy ")?;
            let (line, rest) = rest.split_once("\nexit code ")?;
            let (code, _) = rest.split_once('\n')?;
            Some((line.to_owned(), code.parse().unwrap()))
        })
        .collect()
}

fn kind(line: &str, code: i32) -> &'static str {
    match code {
        // An audit with findings is one that went well.
        0 | 20 if line.split(' ').any(|word| word == "json") => "json",
        0 | 20 => "table",
        _ => "failure",
    }
}

#[test]
fn every_command_has_its_snapshots() {
    let documented = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let documented = std::fs::read_to_string(documented).unwrap();
    let headings = documented
        .lines()
        .filter_map(|line| line.strip_prefix("### `mcpproxy ")?.strip_suffix('`'));
    let mut missing = BTreeMap::new();
    let snapshots = snapshots();
    for command in headings {
        let of_command = snapshots.iter().filter(|(line, _)| {
            let rest = line.strip_prefix(command);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        let seen: Vec<&str> = of_command.map(|(line, code)| kind(line, *code)).collect();
        let exception = EXCEPTIONS.iter().find(|(name, _, _)| *name == command);
        let excepted = exception.map_or(&[][..], |(_, kinds, _)| kinds);
        for wanted in ["table", "json", "failure"] {
            if !seen.contains(&wanted) && !excepted.contains(&wanted) {
                missing.entry(command).or_insert_with(Vec::new).push(wanted);
            }
        }
    }
    assert!(missing.is_empty(), "snapshots are missing: {missing:#?}");
}
