//! The suite as a program: what it is told, and what it says.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::process::Command;

/// How long one run may take, on a machine that is busy with others.
const DEADLINE: Duration = Duration::from_mins(5);

/// The same for one scenario, in milliseconds.
const SCENARIO_TIMEOUT: &str = "60000";

#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) node: PathBuf,
    pub(crate) script: PathBuf,
}

/// Scenarios of extensions that are on no list of a revision.
const EXTENSIONS: [&str; 3] = [
    "sep-2640-skills-directory",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
];

/// The revisions that the suite has frozen lists of scenarios for, one of each era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revision {
    Legacy,
    Modern,
}

/// What came of one run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) scenarios: Vec<Scenario>,
}

#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// Whether conformance asks for it.
    pub(crate) scored: bool,
    pub(crate) passed: bool,
    /// What the suite found missing.
    pub(crate) complaints: Vec<String>,
}

// === impl Revision, Outcome ===

impl Revision {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

impl Outcome {
    pub(crate) fn scored(&self) -> impl Iterator<Item = &Scenario> {
        self.scenarios.iter().filter(|scenario| scenario.scored)
    }

    pub(crate) fn not_scored(&self) -> impl Iterator<Item = &Scenario> {
        self.scenarios.iter().filter(|scenario| !scenario.scored)
    }
}

// === impl Suite ===

impl Suite {
    /// Judges the server at a URL by all scenarios of a revision, and by those of extensions.
    pub(crate) async fn server(&self, url: &str, revision: Revision) -> anyhow::Result<Outcome> {
        let mut outcome = self.requirements(url, revision).await?;
        // Extensions are announced in the modern era only.
        if revision == Revision::Modern {
            for name in EXTENSIONS {
                // On no list of the revision, so the suite has to be urged.
                let subject = ["server", "--force", "--url", url];
                let scenario = self.scenario(&subject, name, false, revision).await?;
                outcome.scenarios.push(scenario);
            }
        }
        Ok(outcome)
    }

    /// Judges the server at a URL by all scenarios of a revision.
    pub(crate) async fn requirements(
        &self,
        url: &str,
        revision: Revision,
    ) -> anyhow::Result<Outcome> {
        let results = tempfile::tempdir()?;
        let output = self
            .run([
                OsStr::new("server"),
                OsStr::new("--url"),
                OsStr::new(url),
                OsStr::new("--requirements"),
                OsStr::new(revision.as_str()),
                OsStr::new("--timeout"),
                OsStr::new(SCENARIO_TIMEOUT),
                OsStr::new("-o"),
                results.path().as_os_str(),
            ])
            .await?;
        let said = String::from_utf8_lossy(&output.stdout);
        let mut scenarios = summary(&said);
        if scenarios.is_empty() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            anyhow::bail!("the suite gave no summary:\n{said}\n{stderr}");
        }
        for scenario in scenarios.iter_mut().filter(|scenario| !scenario.passed) {
            scenario.complaints = complaints(results.path(), &scenario.name)?;
        }
        Ok(Outcome { scenarios })
    }

    /// Judges a client by the scenarios of a revision that are not about authorization.
    pub(crate) async fn client(
        &self,
        command: &str,
        revision: Revision,
    ) -> anyhow::Result<Outcome> {
        let listed = self
            .run(["list", "--requirements", revision.as_str()])
            .await?;
        let mut scenarios = Vec::new();
        for (name, scored) in client_scenarios(&String::from_utf8_lossy(&listed.stdout)) {
            let subject = ["client", "--command", command];
            scenarios.push(self.scenario(&subject, &name, scored, revision).await?);
        }
        Ok(Outcome { scenarios })
    }

    /// Judges a server or a client by one scenario.
    async fn scenario(
        &self,
        subject: &[&str],
        name: &str,
        scored: bool,
        revision: Revision,
    ) -> anyhow::Result<Scenario> {
        let results = tempfile::tempdir()?;
        let arguments = [
            OsStr::new("--scenario"),
            OsStr::new(name),
            OsStr::new("--spec-version"),
            OsStr::new(revision.as_str()),
            OsStr::new("--timeout"),
            OsStr::new(SCENARIO_TIMEOUT),
            OsStr::new("-o"),
            results.path().as_os_str(),
        ];
        let subject = subject.iter().map(OsStr::new);
        let output = self.run(subject.chain(arguments)).await?;
        let complaints = complaints(results.path(), name)?;
        Ok(Scenario {
            name: name.to_owned(),
            scored,
            passed: output.status.success() && complaints.is_empty(),
            complaints,
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "waited for, and killed when the deadline has passed"
    )]
    async fn run<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.node);
        command
            .arg(&self.script)
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let running = tokio::time::timeout(DEADLINE, command.output());
        let output = running.await.context("the suite does not come to an end")?;
        output.with_context(|| format!("{} cannot be run", self.node.display()))
    }
}

/// Reads the lines of the summary: `✓ name: 3 passed, 0 failed`, and of the list that says which of
/// them do not count: `  ✓ name (reason)`.
fn summary(said: &str) -> Vec<Scenario> {
    let (_, said) = said.split_once("=== SUMMARY ===").unwrap_or_default();
    let mut scenarios = Vec::new();
    for line in said.lines() {
        let marked = line.trim_start().split_once(' ');
        let Some((mark @ ("✓" | "✗"), rest)) = marked else {
            continue;
        };
        if let Some((name, _)) = rest.split_once(':') {
            scenarios.push(Scenario {
                name: name.to_owned(),
                scored: true,
                passed: mark == "✓",
                complaints: Vec::new(),
            });
        } else if let Some((name, _)) = rest.split_once(" (") {
            let named = scenarios.iter_mut().find(|scenario| scenario.name == name);
            if let Some(scenario) = named {
                scenario.scored = false;
            }
        }
    }
    scenarios
}

/// The names of the client's scenarios, and whether they count.
fn client_scenarios(listed: &str) -> Vec<(String, bool)> {
    let (_, listed) = listed.split_once("Client scenarios").unwrap_or_default();
    let mut scored = true;
    let mut scenarios = Vec::new();
    for line in listed.lines() {
        if line.contains("never scored") {
            scored = false;
        }
        let Some(entry) = line.trim_start().strip_prefix("- ") else {
            continue;
        };
        let name = match (scored, entry.strip_suffix(" [client]")) {
            (true, _) => entry,
            (false, Some(name)) => name,
            (false, None) => continue,
        };
        if !name.starts_with("auth/") {
            scenarios.push((name.to_owned(), scored));
        }
    }
    scenarios
}

/// What failed in a scenario, from the folder that the suite left its results in.
fn complaints(results: &Path, scenario: &str) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    for folder in std::fs::read_dir(results)? {
        let folder = folder?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_prefix("server-").unwrap_or(&name);
        let rest = name.strip_prefix(scenario);
        if !rest.is_some_and(|rest| rest.starts_with("-20")) {
            continue;
        }
        let Ok(checks) = std::fs::read(folder.join("checks.json")) else {
            complaints.push("the suite left no checks".to_owned());
            continue;
        };
        let checks: Vec<Value> = serde_json::from_slice(&checks)?;
        let with =
            |status: &'static str| checks.iter().filter(move |check| check["status"] == status);
        let text = |check: &Value, member: &str| check[member].as_str().map(str::to_owned);
        complaints.extend(with("FAILURE").map(|check| {
            let [id, why] = ["id", "errorMessage"].map(|it| text(check, it).unwrap_or_default());
            format!("{id}: {why}")
        }));
        // A server that does not offer an extension is not judged by it, and has not passed.
        let judged = |check: &Value| check["id"] != "wire-schema-valid";
        if !with("SUCCESS").any(judged)
            && let Some(skipped) = with("SKIPPED").next()
        {
            complaints.extend(text(skipped, "errorMessage"));
        }
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_says_what_passed_and_what_counts() {
        let said = "noise: 1\n=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n\
                    ✗ tools-list: 1 passed, 1 failed\n✓ tasks: 3 passed, 0 failed\n\n\
                    Total: 6 passed, 1 failed\n\nNot scored: 1 scenario(s) run.\n  ✓ tasks (extension)\n";
        let scenarios = summary(said);
        let facts: Vec<_> = scenarios
            .iter()
            .map(|scenario| (scenario.name.as_str(), scenario.scored, scenario.passed))
            .collect();
        assert_eq!(
            facts,
            [
                ("ping", true, true),
                ("tools-list", true, false),
                ("tasks", false, true)
            ]
        );
    }

    #[test]
    fn scenarios_about_authorization_are_left_out() {
        let listed = "Server scenarios:\n  - ping\n\nClient scenarios (test against a client):\n  \
                      - tools_call\n  - auth/basic\n\nRun and reported, but never scored:\n  \
                      extension (2):\n    - auth/dpop [client]\n    - tasks [server]\n    \
                      - schemas [client]\n";
        let expected = [
            ("tools_call".to_owned(), true),
            ("schemas".to_owned(), false),
        ];
        assert_eq!(client_scenarios(listed), expected);
    }
}
