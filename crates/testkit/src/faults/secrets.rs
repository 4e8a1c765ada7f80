//! T12: secrets of every known shape, and those of the config, in everything that is stored or shown.

use std::path::Path;

use serde_json::json;

use super::case::{Case, Report, case};
use super::proxy::{Lane, Proxy};
use super::setup::Setup;
use crate::{Outcome, Script, Tool};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "T12",
            "tokens of 33 shapes in arguments, errors, stderr",
            shapes,
        ),
        case(
            "F10",
            "secrets of the config where another server, an error or an encoding tells them",
            configured,
        ),
    ]
}

/// A secret as it is written, and the part of it that must be found nowhere.
type Canary = (String, String);

fn canaries() -> Vec<Canary> {
    let shapes = [
        "ghp_{36}",
        "gho_{36}",
        "ghs_{36}",
        "github_pat_11ABCDEFG0{40}",
        "glpat-{24}",
        "xoxb-123456789012-{24}",
        "xoxc-123456789012-{24}",
        "xoxd-{40}",
        "xapp-1-A0123-{40}",
        "AKIA{U16}",
        "ASIA{U16}",
        "sk-{48}",
        "sk-ant-api03-{60}",
        "sk_live_{24}",
        "rk_live_{24}",
        "AIza{35}",
        "npm_{36}",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{20}.{43}",
        "hf_{34}",
        "SG.{22}.{43}",
        "pypi-AgEIcHlwaS5vcmc{60}",
        "ya29.{60}",
        "GOCSPX-{28}",
        "ATATT3xFfGF0{60}",
        "hvs.{60}",
        "dop_v1_{h64}",
        "lin_api_{40}",
        "ntn_{43}",
        "sbp_{h40}",
        "AGE-SECRET-KEY-1{U58}",
        "https://hooks.slack.com/services/T00000000/B00000000/{24}",
        "postgres://user:{24}@db.example/x",
        "Authorization: Bearer {40}",
    ];
    let bodies = |shape: &str, number: usize| {
        let mut text = shape.to_owned();
        let mut core = String::new();
        while let Some(start) = text.find('{') {
            let end = text[start..].find('}').expect("a shape") + start;
            let form = text[start + 1..end].to_owned();
            let digits: String = form.chars().filter(char::is_ascii_digit).collect();
            let length: usize = digits.parse().expect("a length");
            core = body(&form[..1], number, length);
            text.replace_range(start..=end, &core);
        }
        (text, core)
    };
    shapes
        .iter()
        .enumerate()
        .map(|(number, shape)| bodies(shape, number))
        .collect()
}

/// Text that turns up nowhere by chance.
fn body(form: &str, number: usize, length: usize) -> String {
    let seed = match form {
        "U" => format!("QZ{number:02}"),
        "h" => format!("0fa{number:02}"),
        _ => format!("Qz{number:02}"),
    };
    let alphabet = match form {
        "U" => "WXKLMRTYPQ234567GHJCDEFA",
        "h" => "0123456789abcdef",
        _ => "wX9kLmR4tYpQ7sVb2NcD8fGh",
    };
    let rest = alphabet.chars().cycle().skip(number % alphabet.len());
    seed.chars().chain(rest).take(length).collect()
}

/// The lines of a key in its armour.
fn armour(kind: &str, number: usize) -> (Vec<String>, String) {
    let core = body("x", number, 64);
    let lines = vec![
        format!("-----BEGIN {kind}-----"),
        core.clone(),
        core.clone(),
        format!("-----END {kind}-----"),
    ];
    (lines, core)
}

/// Looks for secrets in everything that mcpproxy stored, shows or printed.
async fn assert_nowhere(proxy: &Proxy, cores: &[(String, String)]) {
    let mut texts = vec![("the daemon's output".to_owned(), proxy.daemon.log())];
    let routes = [
        "/activity?limit=100",
        "/activity/export?format=jsonl&include_bodies=true",
        "/activity/export?format=csv&include_bodies=true",
        "/servers",
        "/servers/up/logs",
        "/servers/other/logs",
        "/servers/teller/logs",
        "/config",
        "/status",
        "/tools",
        "/audit",
        "/activity/usage",
    ];
    for route in routes {
        let url = proxy.daemon.url(&format!("/api/v1{route}"));
        let answer = crate::http_client()
            .get(url)
            .bearer_auth(proxy.daemon.key())
            .send()
            .await;
        texts.push((
            route.to_owned(),
            answer.expect("an answer").text().await.expect("a text"),
        ));
    }
    let commands: [&[&str]; 6] = [
        &["activity", "list", "-o", "json"],
        &["activity", "export", "--format", "json", "--include-bodies"],
        &["upstream", "list", "-o", "yaml"],
        &["config", "show"],
        &["doctor"],
        &["upstream", "logs", "up"],
    ];
    for command in commands {
        let output = proxy.daemon.home.cli(command).await;
        texts.push((command.join(" "), output.stdout + &output.stderr));
    }
    files(&proxy.daemon.home.path().join(".mcpproxy"), &mut texts);
    let mut found: Vec<String> = Vec::new();
    for (place, text) in &texts {
        for (secret, core) in cores {
            if text.contains(core.as_str()) {
                found.push(format!("{secret:.40} in {place}"));
            }
        }
    }
    found.sort();
    found.dedup();
    assert!(
        found.is_empty(),
        "{} secrets found:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Every file but the config, and the key's own.
fn files(folder: &Path, texts: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, texts);
        } else if path.is_file() && !path.ends_with("mcp_config.json") && !path.ends_with("api_key")
        {
            let bytes = std::fs::read(&path).unwrap_or_default();
            texts.push((
                path.display().to_string(),
                String::from_utf8_lossy(&bytes).into_owned(),
            ));
        }
    }
}

async fn shapes() -> Report {
    let mut canaries = canaries();
    let mut stderr: Vec<String> = canaries
        .iter()
        .map(|(secret, _)| format!("using {secret} now"))
        .collect();
    for (number, kind) in [
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ]
    .iter()
    .enumerate()
    {
        let (lines, core) = armour(kind, 60 + number);
        stderr.extend(lines.clone());
        canaries.push((lines.join("\n"), core));
    }
    let all: Vec<&str> = canaries.iter().map(|(secret, _)| secret.as_str()).collect();
    let fails = Outcome::Error {
        code: -32000,
        message: format!("no access with {}", all.join(" ; ")),
    };
    let mut script = Script::new([
        Tool::read_only("look"),
        Tool::read_only("fails").outcome(fails),
    ]);
    script.start.stderr = stderr;
    let mut setup = Setup::new();
    setup.stdio("up", &script, json!({}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    for (secret, _) in &canaries {
        let arguments = json!({"token": secret, "nested": {"list": [format!("x {secret} y")]}});
        proxy
            .call(Lane::Read, "up:look", arguments.clone())
            .await
            .ok();
        let _ = proxy.call(Lane::Read, "up:nope", arguments).await;
    }
    let _ = proxy.read("up:fails").await;
    assert_nowhere(&proxy, &canaries).await;
    proxy.note(format!("{} shapes nowhere", canaries.len()));
    proxy.finish().await
}

async fn configured() -> Report {
    let secret = |number: usize| body("x", number, 24);
    let [in_url, header, by_reference, password, member] = [70, 71, 72, 73, 74].map(secret);
    let env = format!("{}/+=", secret(75));
    let database = format!("postgres://app:{password}@db/x");
    let json_value = json!({"client_secret": member}).to_string();
    let percent = env
        .replace('/', "%2F")
        .replace('+', "%2B")
        .replace('=', "%3D");
    let encoded = [base64(&env), hex(&env), percent];
    let mut setup = Setup::new();
    setup.environment("CANARY", &by_reference);
    let environment =
        json!({"TOKEN": env, "DATABASE_URL": database, "SERVICE_ACCOUNT": json_value});
    setup.stdio(
        "up",
        &Script::new([Tool::read_only("look")]),
        json!({ "env": environment }),
    );
    let nobody = "127.0.0.1:9/mcp";
    setup.server(
        "header",
        json!({"url": format!("http://{nobody}"), "headers": {"X-Key": header}}),
    );
    setup.server(
        "address",
        json!({"url": format!("http://u:{in_url}@{nobody}?token={in_url}")}),
    );
    setup.server(
        "reference",
        json!({"url": format!("http://{nobody}?token=${{env:CANARY}}")}),
    );
    // Another server tells them all, on stderr, in results and in errors.
    let mut told = vec![env, header, in_url, by_reference, password, member];
    let mut script = Script::new([Tool::read_only("look")]);
    let lines = told
        .iter()
        .chain(&encoded)
        .map(|text| format!("my secret is {text}"));
    script.start.stderr = lines.collect();
    let message = told.join(" and ");
    let fails = Outcome::Error {
        code: -32000,
        message,
    };
    script.tools.push(Tool::read_only("fails").outcome(fails));
    setup.stdio("teller", &script, json!({}));
    let mut proxy = setup.start().await;
    proxy.ready("teller").await;
    told.push(proxy.daemon.key());
    told.extend(encoded);
    for text in &told {
        proxy
            .call(Lane::Read, "teller:look", json!({"text": text}))
            .await
            .ok();
    }
    let _ = proxy.read("teller:fails").await;
    for name in ["address", "reference"] {
        proxy
            .until("the server failed", 20, async || {
                !proxy.server(name).await["last_error"].is_null()
            })
            .await;
    }
    let cores: Vec<_> = told.into_iter().map(|text| (text.clone(), text)).collect();
    assert_nowhere(&proxy, &cores).await;
    proxy.note(format!("{} secrets nowhere", cores.len()));
    proxy.finish().await
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let chunks = text.as_bytes().chunks(3).map(|chunk| {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        let letters = (0..=chunk.len())
            .map(|place| ALPHABET[(bits >> (18 - 6 * place)) as usize & 63] as char);
        letters.collect::<String>()
    });
    chunks.collect()
}
