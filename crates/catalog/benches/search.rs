//! Building a snapshot of 5,000 tools, replacing one upstream in it, and searching it.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be set up must not go on"
)]

use std::sync::Arc;

use catalog::{Query, ServerTools, Snapshot, ToolDefinition};
use divan::{Bencher, black_box};
use serde_json::value::RawValue;

const SERVERS: usize = 100;
const TOOLS_PER_SERVER: usize = 50;

const VERBS: [&str; 10] = [
    "list", "get", "create", "update", "delete", "search", "send", "export", "validate", "archive",
];
const NOUNS: [&str; 25] = [
    "issue",
    "file",
    "message",
    "repository",
    "branch",
    "user",
    "table",
    "invoice",
    "calendar",
    "event",
    "page",
    "image",
    "metric",
    "deployment",
    "secret",
    "queue",
    "customer",
    "ticket",
    "report",
    "document",
    "pipeline",
    "contact",
    "payment",
    "route",
    "note",
];
const FILLER: [&str; 16] = [
    "account",
    "workspace",
    "optional",
    "identifier",
    "returns",
    "matching",
    "results",
    "filter",
    "current",
    "project",
    "content",
    "status",
    "version",
    "timestamp",
    "owner",
    "region",
];

fn main() {
    divan::main();
}

/// Text that is the same in every run and has a few common and many rarer words, as prose has.
fn prose(seed: usize, words: usize) -> String {
    let word = |position: usize| {
        let mixed = (seed * 7919 + position * 104_729) % 1_009;
        match mixed % 3 {
            0 => FILLER[mixed % FILLER.len()].to_owned(),
            1 => NOUNS[mixed % NOUNS.len()].to_owned(),
            _ => format!("term{}", mixed * (seed % 13 + 1)),
        }
    };
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

fn tools(server: usize, revision: usize) -> ServerTools {
    let name = format!("server-{server}").parse().expect("a valid name");
    let tool = |number: usize| {
        let seed = server * TOOLS_PER_SERVER + number + revision * 31;
        let (verb, noun) = (
            VERBS[seed % VERBS.len()],
            NOUNS[seed / VERBS.len() % NOUNS.len()],
        );
        let definition = serde_json::json!({
            "name": format!("{verb}_{noun}_{number}"),
            "description": format!("{verb} one {noun}. {}", prose(seed, 40)),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "owner": {"type": "string", "description": prose(seed + 1, 8)},
                    "repo_name": {"type": "string", "description": prose(seed + 2, 8)},
                    "page": {"type": "integer", "description": prose(seed + 3, 8)},
                    "filters": {"type": "object", "properties": {"state": {"enum": ["a", "b"]}}},
                },
                "required": ["owner"],
            },
        });
        let raw = RawValue::from_string(definition.to_string()).expect("valid JSON");
        Arc::new(ToolDefinition::parse(&name, raw).expect("a valid tool"))
    };
    ServerTools {
        tools: (0..TOOLS_PER_SERVER).map(tool).collect(),
        server: name.clone(),
        stale: false,
    }
}

fn all_tools() -> Vec<ServerTools> {
    (0..SERVERS).map(|server| tools(server, 0)).collect()
}

#[divan::bench(sample_count = 20)]
fn build(bencher: Bencher) {
    bencher.with_inputs(all_tools).bench_values(Snapshot::build);
}

#[divan::bench(sample_count = 50)]
fn rebuild_one_server_of_a_hundred(bencher: Bencher) {
    let before = all_tools();
    let snapshot = Snapshot::build(before.clone());
    let after = || {
        let mut after = before.clone();
        after[42] = tools(42, 1);
        after
    };
    bencher
        .with_inputs(after)
        .bench_values(|after| snapshot.rebuild(after));
}

#[divan::bench(args = [
    "list issues",
    "create a new calendar event for the customer",
    "please find every invoice of the project in this region and send it to the current owner",
    "serach repositry",
    "server-42:get_issue_2",
    "xylophone quartet",
])]
fn search(bencher: Bencher, query: &str) {
    let snapshot = Snapshot::build(all_tools());
    bencher.bench(|| snapshot.search(black_box(&Query::new(query, 10))));
}

#[divan::bench]
fn suggest(bencher: Bencher) {
    let snapshot = Snapshot::build(all_tools());
    bencher.bench(|| snapshot.suggest_tools(black_box("server-7:get_isue_2")));
}
