//! Real servers from npm and PyPI: what a client gets of each through `/mcp/server/{name}`, byte for byte as it gets it
//! from the server itself, in both eras.
//!
//! [`excepted`] and [`without_exceptions`] have everything that may differ. The call of an unknown tool is left out: it
//! is never sent, and is -32602 here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use testkit::{Home, TestDaemon, http_client};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::peers::{command, node, tool};
use crate::support::home;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// How long one answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long a legacy server gets to refuse a question of the modern era; some never answer it.
const REFUSAL: Duration = Duration::from_secs(30);

/// Servers at the same time.
const AT_ONCE: usize = 4;

/// A server, how it is started, and calls of it that change nothing and need no network.
struct Server {
    name: &'static str,
    program: Program,
    arguments: &'static [&'static str],
    calls: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy)]
enum Program {
    /// A script below `node_modules`.
    Node(&'static str),
    /// A program on the newest SDK.
    Python(&'static str),
    /// A program on the newest SDK of the legacy era.
    Python1(&'static str),
}

use Program::{Node, Python, Python1};

const SERVERS: &[Server] = &[
    Server {
        name: "everything",
        program: Node("@modelcontextprotocol/server-everything/dist/index.js"),
        arguments: &[],
        calls: &[
            (
                "echo",
                r#"{"message":"gr\u00fc\u00dfe \u0001 \ud83d\ude00 </>"}"#,
            ),
            ("echo", "{}"),
            ("get-sum", r#"{"a":1,"b":2.5}"#),
            ("get-tiny-image", "{}"),
            ("get-structured-content", r#"{"location":"Chicago"}"#),
            (
                "get-annotated-message",
                r#"{"messageType":"error","includeImage":true}"#,
            ),
            ("get-resource-links", r#"{"count":2}"#),
        ],
    },
    Server {
        name: "filesystem",
        program: Node("@modelcontextprotocol/server-filesystem/dist/index.js"),
        arguments: &["/usr/share"],
        calls: &[
            ("list_allowed_directories", "{}"),
            ("read_text_file", r#"{"path":"/usr/share/nothing-is-here"}"#),
            ("read_text_file", "{}"),
        ],
    },
    Server {
        name: "memory",
        program: Node("@modelcontextprotocol/server-memory/dist/index.js"),
        arguments: &[],
        calls: &[("read_graph", "{}"), ("search_nodes", r#"{"query":"x"}"#)],
    },
    Server {
        name: "sequential-thinking",
        program: Node("@modelcontextprotocol/server-sequential-thinking/dist/index.js"),
        arguments: &[],
        calls: &[("sequentialthinking", r#"{"thought":1}"#)],
    },
    listed(
        "github",
        Node("@modelcontextprotocol/server-github/dist/index.js"),
    ),
    listed(
        "gitlab",
        Node("@modelcontextprotocol/server-gitlab/dist/index.js"),
    ),
    listed(
        "slack",
        Node("@modelcontextprotocol/server-slack/dist/index.js"),
    ),
    listed(
        "brave-search",
        Node("@modelcontextprotocol/server-brave-search/dist/index.js"),
    ),
    listed(
        "google-maps",
        Node("@modelcontextprotocol/server-google-maps/dist/index.js"),
    ),
    listed(
        "everart",
        Node("@modelcontextprotocol/server-everart/dist/index.js"),
    ),
    listed("notion", Node("@notionhq/notion-mcp-server/bin/cli.mjs")),
    listed("context7", Node("@upstash/context7-mcp/dist/index.js")),
    listed("playwright", Node("@playwright/mcp/cli.js")),
    listed(
        "chrome-devtools",
        Node("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js"),
    ),
    listed("exa", Node("exa-mcp-server/dist/stdio.cjs")),
    Server {
        name: "hello-world",
        program: Node("mcp-hello-world/build/stdio.js"),
        arguments: &[],
        calls: &[("echo", r#"{"message":"hello"}"#), ("echo", "{}")],
    },
    Server {
        name: "code-runner",
        program: Node("mcp-server-code-runner/dist/cli.js"),
        arguments: &[],
        calls: &[("run-code", "{}")],
    },
    listed("tavily", Node("tavily-mcp/build/index.js")),
    Server {
        name: "time",
        program: Python("mcp-server-time"),
        arguments: &[],
        calls: &[
            (
                "convert_time",
                r#"{"source_timezone":"Nowhere/No","time":"12:00","target_timezone":"UTC"}"#,
            ),
            ("get_current_time", r#"{"timezone":"Nowhere/No"}"#),
        ],
    },
    Server {
        name: "git",
        program: Python("mcp-server-git"),
        arguments: &[],
        calls: &[("git_status", r#"{"repo_path":"/nothing-is-here"}"#)],
    },
    Server {
        name: "fetch",
        program: Python("mcp-server-fetch"),
        arguments: &[],
        calls: &[("fetch", r#"{"max_length":-1}"#)],
    },
    Server {
        name: "sqlite",
        program: Python1("mcp-server-sqlite"),
        arguments: &[],
        calls: &[
            ("list_tables", "{}"),
            (
                "read_query",
                r#"{"query":"SELECT 1 AS one, 'zwei' AS two"}"#,
            ),
            ("read_query", r#"{"query":"no such thing"}"#),
        ],
    },
    Server {
        name: "calculator",
        program: Python1("mcp-server-calculator"),
        arguments: &[],
        calls: &[
            ("calculate", r#"{"expression":"2+3*4"}"#),
            ("calculate", r#"{"expression":"2+"}"#),
        ],
    },
    listed("duckduckgo", Python1("duckduckgo-mcp-server")),
];

/// What is asked besides the calls.
const LISTS: [&str; 4] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
];

/// The members of a result, besides ids, that may differ: those that the client's era demands of every result, and
/// what mcpproxy says of itself in a greeting.
fn excepted(method: &str, era: &str) -> &'static [&'static str] {
    match (method, era) {
        // The version is agreed on with mcpproxy, which speaks newer ones than some servers.
        ("initialize", _) => &["protocolVersion"],
        // It names every version that the endpoint speaks, and how long what it says holds.
        ("server/discover", _) => &[
            "supportedVersions",
            "ttlMs",
            "cacheScope",
            "_meta",
            "resultType",
        ],
        (_, MODERN) => &["resultType", "ttlMs", "cacheScope", "_meta"],
        _ => &[],
    }
}

const fn listed(name: &'static str, program: Program) -> Server {
    Server {
        name,
        program,
        arguments: &[],
        calls: &[],
    }
}

/// A result by its members, each as it was written, or an error.
type Answer = Result<BTreeMap<String, String>, Value>;

#[tokio::test]
async fn servers_of_others_answer_as_they_do_without_a_proxy() {
    let comparing = stream::iter(SERVERS.iter().map(compare));
    let compared: Vec<_> = comparing.buffer_unordered(AT_ONCE).collect().await;
    let differences: Vec<_> = compared.iter().flat_map(|it| &it.differences).collect();
    assert!(differences.is_empty(), "{differences:#?}");
    let answers: usize = compared.iter().map(|it| it.answers).sum();
    let of_both_eras = compared.iter().filter(|it| it.both_eras).count();
    assert!(compared.len() >= 20 && answers >= 200, "{answers} answers");
    assert!(of_both_eras >= 3, "{of_both_eras} servers speak both eras");
}

#[derive(Default)]
struct Compared {
    answers: usize,
    both_eras: bool,
    differences: Vec<String>,
}

async fn compare(server: &Server) -> Compared {
    let home = home();
    let mut compared = Compared::default();
    let legacy = ask_all(server, Peer::direct(server, &home), LEGACY).await;
    let is_modern = Peer::direct(server, &home).speaks_modern().await;
    compared.both_eras = is_modern;
    // A server without the modern era is compared with what it says in the legacy one.
    let modern = if is_modern {
        ask_all(server, Peer::direct(server, &home), MODERN).await
    } else {
        legacy.clone()
    };
    let daemon = TestDaemon::with_servers(home, json!({server.name: server.config()})).await;
    daemon.wait_for_server(server.name).await;
    let url = daemon.url(&format!("/mcp/server/{}", server.name));
    for (era, direct) in [(LEGACY, legacy), (MODERN, modern)] {
        let through = ask_all(server, Peer::through(&url), era).await;
        for ((question, direct), (_, through)) in direct.into_iter().zip(through) {
            let (method, _) = question.split_once(' ').unwrap_or((&question, ""));
            assert!(
                !matches!(&direct, Err(Value::String(_))),
                "{}: {direct:?}",
                server.name
            );
            if method == "initialize" && era == MODERN {
                continue;
            }
            compared.answers += 1;
            let (direct, through) = [direct, through]
                .map(|answer| without_exceptions(answer, method, era, is_modern))
                .into();
            if direct != through {
                let name = server.name;
                compared.differences.push(format!(
                    "{name} {era} {question}: {direct:?} became {through:?}"
                ));
            }
        }
    }
    compared
}

fn without_exceptions(answer: Answer, method: &str, era: &str, is_modern: bool) -> Answer {
    match answer {
        Ok(mut members) => {
            // What a server says in the era of its client is passed on as it is.
            let own = is_modern && era == MODERN && method != "server/discover";
            for member in excepted(method, era) {
                if !own || *member == "_meta" {
                    members.remove(*member);
                }
            }
            // Tools are listed as mcpproxy was told in the modern era; the Python SDK writes the members of a schema in
            // another order in each era.
            if is_modern && era == LEGACY && method == "tools/list" {
                for value in members.values_mut() {
                    *value = in_order(&serde_json::from_str(value).unwrap());
                }
            }
            Ok(members)
        }
        Err(mut error) => {
            // An empty `data` says as much as none.
            if let Some(error) = error.as_object_mut() {
                error.retain(|name, value| name != "data" || !value.is_null());
            }
            Err(error)
        }
    }
}

/// The text of a value with the members of every object in the order of their names.
fn in_order(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().collect();
            let members = members.into_iter();
            let members: Vec<_> = members
                .map(|(name, value)| format!("{name:?}:{}", in_order(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(in_order).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

/// Asks for everything, in the same order of every peer.
async fn ask_all(server: &Server, mut peer: Peer, era: &'static str) -> Vec<(String, Answer)> {
    let mut answers = vec![peer.greet(era).await];
    for method in LISTS {
        answers.push((method.to_owned(), peer.ask(method, json!({}), era).await));
    }
    for (tool, arguments) in server.calls {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let params = json!({"name": tool, "arguments": arguments});
        let answer = peer.ask("tools/call", params, era).await;
        answers.push((format!("tools/call {tool} {arguments}"), answer));
    }
    answers
}

/// The server itself over its pipes, or mcpproxy in front of it.
enum Peer {
    Direct {
        _process: Box<Child>,
        stdin: ChildStdin,
        stdout: Lines<BufReader<ChildStdout>>,
    },
    Through {
        url: String,
        session: Option<String>,
    },
}

impl Peer {
    fn direct(server: &Server, home: &Home) -> Self {
        let config = server.config();
        let program = PathBuf::from(config["command"].as_str().unwrap());
        let mut command = command(program, home);
        command
            .args(
                config["args"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|it| it.as_str().unwrap()),
            )
            .env("PATH", path())
            .envs(KEYS.map(|name| (name, "none")))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null());
        let mut process = command.spawn().unwrap();
        let (stdin, stdout) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        Self::Direct {
            _process: Box::new(process),
            stdin,
            stdout: BufReader::new(stdout).lines(),
        }
    }

    fn through(url: &str) -> Self {
        let url = url.to_owned();
        Self::Through { url, session: None }
    }

    async fn greet(&mut self, era: &'static str) -> (String, Answer) {
        let method = if era == MODERN {
            "server/discover"
        } else {
            "initialize"
        };
        let mut params = json!({});
        if era == LEGACY {
            params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        }
        let answer = self.ask(method, params, era).await;
        if era == LEGACY {
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            self.send(&initialized, era).await;
        }
        (method.to_owned(), answer)
    }

    async fn speaks_modern(mut self) -> bool {
        let asking = self.ask("server/discover", json!({}), MODERN);
        matches!(tokio::time::timeout(REFUSAL, asking).await, Ok(Ok(_)))
    }

    async fn ask(&mut self, method: &str, mut params: Value, era: &str) -> Answer {
        if era == MODERN {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let asking = async {
            let mut texts = self.send(&request, era).await;
            loop {
                if let Self::Direct { stdout, .. } = self {
                    match stdout.next_line().await.unwrap() {
                        Some(line) => texts.push(line),
                        None => return Err(json!(format!("{method}: the server ended"))),
                    }
                }
                let found = texts.drain(..).find_map(|text| answer(&text));
                if let Some(found) = found {
                    return found;
                }
                assert!(matches!(self, Self::Direct { .. }), "no answer to {method}");
            }
        };
        let answered = tokio::time::timeout(PATIENCE, asking).await;
        answered.unwrap_or_else(|_| panic!("{method} is not answered"))
    }

    /// Sends a message; what comes back at once is one text for each message.
    async fn send(&mut self, message: &Value, era: &str) -> Vec<String> {
        match self {
            Self::Direct { stdin, .. } => {
                let line = format!("{message}\n");
                stdin.write_all(line.as_bytes()).await.unwrap();
                Vec::new()
            }
            Self::Through { url, session } => {
                let mut request = http_client()
                    .post(url.as_str())
                    .header("content-type", "application/json")
                    .header("accept", "application/json, text/event-stream")
                    .header("mcp-protocol-version", era)
                    .body(message.to_string());
                if era == MODERN {
                    request = request.header("mcp-method", message["method"].as_str().unwrap());
                    if let Some(name) = message["params"]["name"].as_str() {
                        request = request.header("mcp-name", name);
                    }
                }
                if let Some(session) = session.as_deref() {
                    request = request.header("mcp-session-id", session);
                }
                let response = request.send().await.unwrap();
                let opened = response.headers().get("mcp-session-id");
                if let Some(opened) = opened.and_then(|id| id.to_str().ok()) {
                    *session = Some(opened.to_owned());
                }
                let body = response.text().await.unwrap();
                let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
                let events: Vec<_> = events.map(str::to_owned).collect();
                if events.is_empty() {
                    vec![body]
                } else {
                    events
                }
            }
        }
    }
}

/// The answer in a message, unless it is another one. Servers may write other lines than messages.
fn answer(text: &str) -> Option<Answer> {
    let message: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    if message.get("id").is_none_or(|id| id.get() != "1") {
        return None;
    }
    if let Some(error) = message.get("error") {
        return Some(Err(serde_json::from_str(error.get()).unwrap()));
    }
    let result = message.get("result")?;
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(result.get()).unwrap();
    let members = members.into_iter();
    Some(Ok(members
        .map(|(name, value)| (name, value.get().to_owned()))
        .collect()))
}

/// Where servers find node and git.
fn path() -> String {
    let node = node();
    let node = node.parent().unwrap().display();
    format!("{node}:/usr/local/bin:/usr/bin:/bin")
}

/// What servers want to be set before they start. None of it is used.
const KEYS: [&str; 10] = [
    "BRAVE_API_KEY",
    "EVERART_API_KEY",
    "EXA_API_KEY",
    "GITHUB_PERSONAL_ACCESS_TOKEN",
    "GITLAB_PERSONAL_ACCESS_TOKEN",
    "GOOGLE_MAPS_API_KEY",
    "NOTION_TOKEN",
    "SLACK_BOT_TOKEN",
    "SLACK_TEAM_ID",
    "TAVILY_API_KEY",
];

impl Server {
    /// The entry for `mcpServers`.
    fn config(&self) -> Value {
        let (program, script) = match self.program {
            Node(script) => (node(), vec![tool("node_modules").join(script)]),
            Python(program) => (tool("venv/bin").join(program), Vec::new()),
            Python1(program) => (tool("venv-mcp-1/bin").join(program), Vec::new()),
        };
        let script = script.iter().map(|it| it.to_string_lossy().into_owned());
        let arguments: Vec<_> = script
            .chain(self.arguments.iter().map(|it| (*it).to_owned()))
            .collect();
        let mut environment: BTreeMap<_, _> =
            KEYS.iter().map(|name| (*name, "none".to_owned())).collect();
        environment.insert("PATH", path());
        json!({"command": program, "args": arguments, "env": environment})
    }
}
