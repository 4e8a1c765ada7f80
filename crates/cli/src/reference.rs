//! The reference parts of `docs/`, written from the command line, the config schema and the OpenAPI
//! document. A test fails when one is out of date; `UPDATE_DOCS=1` writes it anew.

mod command_line;
mod configuration;
mod rest;

use std::path::{Path, PathBuf};

const BEGIN: &str =
    "<!-- generated: UPDATE_DOCS=1 cargo nextest run -p cli -E 'test(reference)' -->";
const END: &str = "<!-- end of what is generated -->";

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
}

/// Compares the generated part of a file with what it should be, or writes it.
fn keep_part(file: &str, part: &str) {
    let text = std::fs::read_to_string(docs(file)).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("a generated part begins");
    let (_, after) = rest.split_once(END).expect("a generated part ends");
    keep(
        file,
        &format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", part.trim()),
    );
}

/// The same for a file that is generated whole.
fn keep(file: &str, wanted: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(docs(file), wanted).unwrap();
        return;
    }
    let found = std::fs::read_to_string(docs(file)).unwrap_or_default();
    let line = found
        .lines()
        .zip(wanted.lines())
        .position(|(found, wanted)| found != wanted);
    assert!(
        found == wanted,
        "docs/{file} is out of date from line {}; write it anew with UPDATE_DOCS=1",
        line.unwrap_or_else(|| found.lines().count().min(wanted.lines().count())) + 1
    );
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
