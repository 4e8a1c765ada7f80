//! What commands print, whole: tables, data and errors, pinned so that a change is seen.
//!
//! A case is a line of a text: the name of its snapshot, and what somebody types. A scene is the home
//! in which the lines of one theme are typed, one after the other.

mod activity;
mod coverage;
mod files;
mod servers;
mod tools;

use serde_json::{Value, json};
use testkit::{Home, Tool};

/// What differs from run to run, and what stands for it.
const VARIABLE: [(&str, &str); 14] = [
    (r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", "[id]"),
    (r"\b[0-9a-f]{64}\b", "[hash]"),
    (r"--cursor \w+", "--cursor [cursor]"),
    (r#""cursor": "[^"]+""#, r#""cursor": "[cursor]""#),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "[time]"),
    // Columns are as wide as what stands in them.
    (r"(?m)^ID +TIME +", "ID  TIME  "),
    (r"  (now|\d+[smhd] ago) +", "  [ago]  "),
    (r"\b\d+ms\b", "[number]ms"),
    // Of JSON in either form and of YAML.
    (r#"\b(\w+_ms|pid|uptime_seconds)("?: ?)\d+"#, "$1$2[number]"),
    // Of CSV: how long a call took stands before three members about its size.
    (r",\d+,(\d+,\d+,(true|false),)", ",[number],$1"),
    (r"process \d+", "process [number]"),
    // Servers come and go while somebody looks.
    (r"\b[1-9]\d* records hold", "[number] records hold"),
    (r"/mcp, for \w+\n", "/mcp, for [time]\n"),
    (r"\d+(\.\d)? [KMGT]?i?B free", "[number] free"),
];

/// What is not settled when a server was just changed.
const UNSETTLED: [(&str, &str); 5] = [
    (
        r#""state": "(connecting|waiting|ready|failed)""#,
        r#""state": "[state]""#,
    ),
    (
        r#""(tools|read|write|destructive|connections)": \d+"#,
        r#""$1": [number]"#,
    ),
    (r#""pid": (null|\[number\])"#, r#""pid": [pid]"#),
    (
        r#""identity": (null|\{[^}]*\})"#,
        r#""identity": [identity]"#,
    ),
    (
        r#""(last_error|advice|retry_in_ms)": (null|".*"|\[number\])"#,
        r#""$1": [trouble]"#,
    ),
];

/// Where lines are typed.
struct Scene<'a> {
    home: &'a Home,
    /// Words of the lines that stand for something only this run knows, there and in what is printed.
    names: Vec<(&'static str, String)>,
    /// What else differs from run to run here.
    unsettled: &'static [(&'static str, &'static str)],
}

impl<'a> Scene<'a> {
    fn new(home: &'a Home) -> Self {
        let path = home.path().to_str().unwrap().to_owned();
        Self {
            home,
            names: vec![("~", path)],
            unsettled: &[],
        }
    }

    fn unsettled(mut self) -> Self {
        self.unsettled = &UNSETTLED;
        self
    }

    fn naming(mut self, name: &'static str, meaning: impl Into<String>) -> Self {
        self.names.push((name, meaning.into()));
        self
    }

    /// Types the lines in their order, and compares each transcript with its snapshot.
    async fn pin(&self, cases: &str) {
        for case in cases.lines().map(str::trim).filter(|case| !case.is_empty()) {
            let (name, line) = case.split_once(' ').unwrap();
            let transcript = self.transcript(line.trim()).await;
            let filters = VARIABLE.into_iter().chain(self.unsettled.iter().copied());
            let filters: Vec<_> = filters.collect();
            insta::with_settings!({filters => filters, omit_expression => true}, {
                insta::assert_snapshot!(name, transcript);
            });
        }
    }

    /// The line, the exit code, stdout and stderr.
    async fn transcript(&self, line: &str) -> String {
        let arguments = words(line).map(|word| {
            let known = self.names.iter();
            known.fold(word, |word, (name, meaning)| word.replace(name, meaning))
        });
        let output = self.home.cli(arguments.collect::<Vec<_>>()).await;
        let text = format!(
            "exit code {}\n--- stdout\n{}--- stderr\n{}",
            output.code, output.stdout, output.stderr
        );
        let known = self.names.iter().rev();
        let text = known.fold(text, |text, (name, meaning)| text.replace(meaning, name));
        let text = text.replace(env!("CARGO_PKG_VERSION"), "[version]");
        format!("$ mcpproxy {line}\n{text}")
    }
}

/// The words of a line; what stands in single quotes is one.
fn words(line: &str) -> impl Iterator<Item = String> {
    let parts = line.split('\'').enumerate();
    parts.flat_map(|(index, part)| -> Vec<String> {
        match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        }
    })
}

/// Tools of every kind, as a server that keeps notes would offer them.
fn note_tools() -> [Tool; 5] {
    let answer = |text: &str, is_error: bool| {
        json!({"content": [{"type": "text", "text": text}], "isError": is_error}).to_string()
    };
    let tool = |name: &str, description: &str, properties: Value, annotations: Value| {
        Tool::defined(&json!({
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": properties},
            "annotations": annotations,
        }))
    };
    let id = || json!({"id": {"type": "integer", "description": "Which note"}});
    [
        tool(
            "list_notes",
            "List all notes with their titles.\nThe newest come first.",
            json!({"limit": {"type": "integer", "description": "How many"}}),
            json!({"title": "List notes", "readOnlyHint": true}),
        )
        .returns(answer("1 Shopping\n2 Ideas", false)),
        tool(
            "create_note",
            "Create a note.",
            json!({"title": {"type": "string"}}),
            json!({"readOnlyHint": false, "destructiveHint": false}),
        )
        .returns(answer("created", false)),
        tool(
            "purge_note",
            "Delete a note for good. This cannot be undone.",
            id(),
            json!({"destructiveHint": true}),
        )
        .returns(answer("purged", false)),
        tool("archive_note", "Move a note out of sight.", id(), json!({}))
            .returns(answer("there is no note 7", true)),
        tool(
            "delete_folder",
            "Delete a folder with all notes in it.",
            json!({"folder": {"type": "string"}}),
            json!({"readOnlyHint": true}),
        ),
    ]
}
