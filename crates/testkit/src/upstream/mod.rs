//! An MCP server that does exactly what a script says, over stdio and over streamable HTTP.
//!
//! It shares no code with the product: a mistake of ours must not be made twice and cancel out.

pub(crate) mod chaos;
mod engine;
pub(crate) mod http;
pub(crate) mod record;
pub(crate) mod script;
pub(crate) mod stdio;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

/// Where the `scripted-upstream` program is.
pub fn upstream_program(beside: &Path) -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| program(beside, "scripted-upstream"))
}

/// Where the `conformance-upstream` program is.
pub(crate) fn conformance_program(beside: &Path) -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| program(beside, "conformance-upstream"))
}

/// Where the `platform-fixture` program is, which can be the launcher and the watchdog of children.
/// For tests of a package that has no program of its own.
pub fn watchdog_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of the test");
        // Tests are in a folder of their own beside the programs.
        program(test.parent().expect("a folder"), "platform-fixture")
    })
}

/// A program for tests, in the folder of the program under test, which is where cargo puts all
/// of the workspace's programs.
///
/// Testing one package alone does not build the programs of another, so it is built when missing.
fn program(beside: &Path, name: &str) -> PathBuf {
    let program = beside.with_file_name(name);
    if !program.exists() {
        build();
    }
    assert!(program.exists(), "{} was not built", program.display());
    program
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo is waited for, so it cannot be orphaned"
)]
fn build() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo)
        .args([
            "build", "--quiet", "-p", "testkit", "-p", "platform", "--bins",
        ])
        .stdin(Stdio::null())
        .status()
        .expect("cargo can be run");
    assert!(status.success(), "the programs for tests do not build");
}
