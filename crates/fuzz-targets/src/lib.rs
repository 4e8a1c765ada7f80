//! Properties that hold for any input. `fuzz/` searches for inputs that break them, and the tests
//! of this crate check them for every input of the corpus.
#![expect(
    clippy::expect_used,
    reason = "whatever does not hold has to stop the search on the spot"
)]

mod client_files;
mod config_file;
mod csv_and_table;
mod cursor;
mod intent;
mod journal_frame;
mod jsonrpc_frame;
mod redactor;
mod sse;
mod tool_definition;

// The table's escaping is part of a program, not of a library.
#[path = "../../cli/src/escape.rs"]
mod escape;

/// Checks the properties of one target for one input; panics if one does not hold.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also the name of its folder in `fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("jsonrpc_frame", jsonrpc_frame::check),
    ("sse", sse::check),
    ("tool_definition", tool_definition::check),
    ("intent", intent::check),
    ("config_file", config_file::check),
    ("client_files", client_files::check),
    ("csv_and_table", csv_and_table::check),
    ("cursor", cursor::check),
    ("journal_frame", journal_frame::check),
    ("redactor", redactor::check),
];

/// Runs a target by its name; for the programs in `fuzz/`.
pub fn check(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, check) = target.expect("a known target");
    check(input);
}
