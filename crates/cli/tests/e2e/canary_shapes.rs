//! Secrets of every known shape, of every server and in every encoding, in what servers write and
//! agents send: none of them is in a file, an output or an event.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Script, Stdin, TestDaemon, Tool, wait_until};

use crate::support::{api_key, home, rest, rest_with};

/// A secret of one server, which another one writes to its stderr.
const OF_UP: &str = "canary-of-up/5f0c1e7b%99";
const PASSWORD: &str = "canary-password-2b81";
const MEMBER: &str = "canary-member-77d0a1";
const IN_URL: &str = "canary-in-url-c04e55";
const ARGUMENT: &str = "canary-argument-31fe";

/// Texts with a secret that no config names, and the part that must not be kept.
fn shapes() -> Vec<(String, String)> {
    let letters = "c4n4ryAbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKl";
    let mut shapes: Vec<(String, String)> = [
        "ghp_",
        "gho_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxc-",
        "xoxd-",
        "xapp-",
        "sk-",
        "sk-ant-",
        "sk_live_",
        "npm_",
        "pypi-",
        "hf_",
        "ya29.",
        "GOCSPX-",
        "ATATT",
        "hvs.",
        "dop_v1_",
        "lin_api_",
        "ntn_",
        "secret_",
        "sbp_",
        "AGE-SECRET-KEY-1",
    ]
    .iter()
    .map(|prefix| {
        let unique = format!("{letters}{}", prefix.len());
        (format!("{prefix}{unique}"), unique)
    })
    .collect();
    let mut add = |text: String, secret: &str| shapes.push((text, secret.to_owned()));
    add("AKIAC4N4RYC4N4RYC4N4".into(), "AKIAC4N4RY");
    add(format!("AIza{}", &letters[..35]), &letters[..35]);
    add(format!("SG.{0}.{0}", &letters[..22]), &letters[..22]);
    add(
        "eyJhbGciOiJIUzI1NiJ9.eyJjNG40cnkiOjF9.c2ln".into(),
        "eyJjNG40cnkiOjF9",
    );
    add(
        "Authorization: Bearer c4n4ry-bearer-0001".into(),
        "c4n4ry-bearer",
    );
    add(
        "https://hooks.slack.com/services/T0/B0/c4n4ryHook0001".into(),
        "c4n4ryHook",
    );
    add("postgres://app:c4n4ry-pg@db/x".into(), "c4n4ry-pg");
    add("password=c4n4ry-pass-0001".into(), "c4n4ry-pass");
    add("DB_PASSWORD: c4n4ry-yaml-0001".into(), "c4n4ry-yaml");
    add("AccountKey=c4n4ryAccount0001==;x".into(), "c4n4ryAccount");
    add(
        "aws_secret_access_key = c4n4ry/aws+0001".into(),
        "c4n4ry/aws",
    );
    add(
        r#"{"client_secret":"c4n4ry-json-0001"}"#.into(),
        "c4n4ry-json",
    );
    shapes
}

/// A configured value as others write it.
fn encoded(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent = secret.replace('%', "%25").replace('/', "%2F");
    vec![hex.to_uppercase(), hex, percent]
}

fn forbidden(key: &str) -> Vec<String> {
    let mut forbidden: Vec<String> = [OF_UP, PASSWORD, MEMBER, IN_URL, ARGUMENT, key]
        .map(ToOwned::to_owned)
        .to_vec();
    forbidden.extend(encoded(OF_UP));
    forbidden.extend(shapes().into_iter().map(|(_, secret)| secret));
    // The lines of the private key.
    forbidden.extend(["C4N4RYKEYLINE".to_owned(), "C4N4RYPGPLINE".to_owned()]);
    forbidden
}

#[track_caller]
fn assert_clean(what: &str, text: &str, forbidden: &[String]) {
    for secret in forbidden {
        assert!(!text.contains(secret), "{secret} is in {what}:\n{text}");
    }
}

/// What a careless server writes to stderr.
fn confession() -> String {
    let mut text = String::new();
    for (shape, _) in shapes() {
        writeln!(text, "using {shape} now").unwrap();
    }
    let values = [OF_UP, PASSWORD, MEMBER, IN_URL, ARGUMENT].map(ToOwned::to_owned);
    for value in values.into_iter().chain(encoded(OF_UP)) {
        writeln!(text, "and {value}").unwrap();
    }
    let line = format!("C4N4RYKEYLINE{}", "A1b2C3d4".repeat(6));
    write!(
        text,
        "key: -----BEGIN OPENSSH PRIVATE KEY-----\n{line}\n{line}\nC4N4RYKEYLINE\n\
         -----END OPENSSH PRIVATE KEY-----\n\
         -----BEGIN PGP PRIVATE KEY BLOCK-----\n\nC4N4RYPGPLINE\n=AbCd\n\
         -----END PGP PRIVATE KEY BLOCK-----\nthat was all\n"
    )
    .unwrap();
    text
}

fn config(home: &Home) -> Value {
    std::fs::write(home.path().join("confession"), confession()).unwrap();
    // The key is made at the first start, and then a server reads it.
    let tells = format!(
        "cd {}; cat .mcpproxy/api_key confession >&2; exit 3",
        home.path().display()
    );
    let up = home.upstream("up", &Script::new([Tool::read_only("look")]));
    let member = json!({"deep": [{"any": MEMBER}]}).to_string();
    json!({"mcpServers": {
        "up": up.config_with(&json!({"env": {
            "TOKEN": OF_UP,
            "DATABASE_URL": format!("postgres://app:{PASSWORD}@db/x"),
            "ACCOUNT": member,
        }})),
        "tells": {"command": "sh", "args": ["-c", tells, "--token", ARGUMENT]},
        "away": {"url": format!("http://user:{IN_URL}@127.0.0.1:9/mcp")},
    }})
}

async fn start() -> (TestDaemon, Vec<String>) {
    let home = home();
    let config = config(&home);
    let daemon = TestDaemon::start(home, config).await;
    let key = api_key(&daemon.home);
    wait_until("the server has told all", DEADLINE, async || {
        let (_, answer) = rest(&daemon, "GET", "/servers/tells/logs", None).await;
        let lines = answer.to_string();
        lines.contains("that was all") && lines.contains("[REDACTED]")
    })
    .await;
    let forbidden = forbidden(&key);
    (daemon, forbidden)
}

/// Calls a tool with everything in its arguments and in its reason.
async fn call_with_everything(daemon: &TestDaemon) {
    let call = json!({
        "tool_variant": "call_tool_read",
        "arguments": {
            "name": "up:look",
            "args": {"text": confession(), "key": api_key(&daemon.home), "password": "c4n4ry-pass"},
            "intent": {"operation_type": "read", "reason": format!("with {OF_UP}")},
        },
    });
    wait_until("the call is made", DEADLINE, async || {
        let body = call.to_string();
        let (status, _) = rest(daemon, "POST", "/tools/call", Some(&body)).await;
        status == 200
    })
    .await;
}

#[tokio::test]
async fn secrets_of_every_shape_are_in_no_answer_and_no_file() {
    let (daemon, forbidden) = start().await;
    call_with_everything(&daemon).await;
    let key = api_key(&daemon.home);
    for path in [
        "/servers",
        "/servers/tells",
        "/servers/tells/logs",
        "/servers/away",
        "/activity?include_bodies=true",
        "/activity/export?include_bodies=true&format=jsonl",
        "/activity/export?include_bodies=true&format=csv",
    ] {
        let (_, text) = rest_with(&daemon, &key, "GET", path, None).await;
        assert_clean(path, &text, &forbidden);
    }
    assert_clean("the daemon's output", &daemon.log(), &forbidden);
    let (home, _) = daemon.stop().await;
    let files = clean_files(&home.path().join(".mcpproxy"), &forbidden);
    assert!(files > 3, "{files} files");
}

/// Calls that were given the old secrets may still be under way when a config is replaced.
#[tokio::test]
async fn secrets_of_an_earlier_config_stay_struck_out() {
    let (daemon, forbidden) = start().await;
    let up = daemon
        .home
        .upstream("up", &Script::new([Tool::read_only("look")]));
    daemon.reconfigure(json!({"mcpServers": {"up": up.config()}}));
    wait_until("the config is taken over", DEADLINE, async || {
        let (_, answer) = rest(&daemon, "GET", "/servers", None).await;
        answer["data"]["servers"].as_array().unwrap().len() == 1
    })
    .await;
    call_with_everything(&daemon).await;
    let (home, _) = daemon.stop().await;
    clean_files(&home.path().join(".mcpproxy"), &forbidden);
}

/// What `${env:NAME}` refers to is a secret wherever it stands, also without a daemon.
#[tokio::test]
async fn a_variable_that_a_server_is_started_with_is_in_no_file() {
    let home = home();
    let variable = "canary-variable-e1c9";
    home.write_config(&json!({"mcpServers": {"tells": {
        "command": "sh", "args": ["-c", "echo using $0 >&2; exit 3", "https://h/${env:WHERE}/mcp"],
    }}}));
    let environment = [("WHERE", variable)];
    let arguments = ["upstream", "list"];
    let output = home.cli_with(arguments, Stdin::Empty, &environment).await;
    let forbidden = [variable.to_owned()];
    assert_clean("stdout", &output.stdout, &forbidden);
    assert_clean("stderr", &output.stderr, &forbidden);
    let log = home.path().join(".mcpproxy/logs/server-tells.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("using https://h/[REDACTED]/mcp"), "{log}");
    clean_files(&home.path().join(".mcpproxy"), &forbidden);
}

/// Every file but those that the secrets come from.
fn clean_files(folder: &Path, forbidden: &[String]) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += clean_files(&path, forbidden);
        } else if path.is_file() && !path.ends_with("mcp_config.json") && !path.ends_with("api_key")
        {
            let bytes = std::fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert_clean(&path.display().to_string(), &text, forbidden);
            files += 1;
        }
    }
    files
}
