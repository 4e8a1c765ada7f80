//! T9, T10, T18, T23 and T24: other clients, key holders, other users of the machine, agents.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::case::{Case, Report, case};
use super::proxy::Lane;
use super::setup::{Setup, binary};
use crate::{Home, Outcome, Part, Script, Tool};

/// Nobody, on most systems.
const OTHER_USER: u32 = 65_534;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "T9",
            "session ids and read_cache keys of another client",
            stolen_handles,
        ),
        case(
            "T10",
            "programs named over TCP; shell characters in a command",
            command_strings,
        ),
        case(
            "T18",
            "modes, symlinks, foreign owners, another user on the socket",
            files_and_users,
        ),
        case(
            "T23",
            "an agent looks for tools that manage the proxy",
            management,
        ),
        case(
            "T24",
            "an approval of what has changed since",
            approval_replay,
        ),
    ]
}

async fn stolen_handles() -> Report {
    let large = Tool::read_only("large").outcome(Outcome::Large {
        part: Part::Text,
        mebibytes: 1,
    });
    let mut setup = Setup::new();
    setup.stdio("up", &Script::new([large]), json!({}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let result = proxy.read("up:large").await.ok().to_string();
    // The note comes before the text: `read_cache {"key": "...", "offset": 1}`.
    let (_, note) = result.split_once("read_cache").expect("a note");
    let (arguments, _) = note.split_once("offset").expect("a key and an offset");
    let key = arguments
        .split(|character: char| !character.is_ascii_alphanumeric() && !"-_".contains(character))
        .max_by_key(|word| word.len())
        .expect("a key")
        .to_owned();
    assert!(
        key.len() >= 22,
        "a handle of {} characters can be guessed",
        key.len()
    );
    let mine = proxy.own("read_cache", &json!({"key": key})).await;
    assert_ne!(mine["isError"], true, "{mine}");
    let thief = proxy.daemon.session().await;
    let theirs = thief.call("read_cache", &json!({"key": key})).await;
    assert!(theirs.contains("\"isError\":true"), "{theirs:.200}");
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(proxy.daemon.session().await.id().to_owned());
    }
    ids.sort();
    ids.dedup();
    assert!(
        ids.len() == 20 && ids.iter().all(|id| id.len() >= 22),
        "{ids:?}"
    );
    proxy.note(format!(
        "handles of {} and {} characters",
        key.len(),
        ids[0].len()
    ));
    proxy.finish().await
}

async fn command_strings() -> Report {
    let mut setup = Setup::new();
    let marks: Vec<_> = (0..4)
        .map(|number| setup.home.path().join(format!("pwned{number}")))
        .collect();
    let [one, two, three, four] =
        [0, 1, 2, 3].map(|number: usize| marks[number].display().to_string());
    setup.server(
        "semicolon",
        json!({"command": format!("true; touch {one}")}),
    );
    setup.server(
        "substitution",
        json!({"command": "true", "args": [format!("$(touch {two})"), format!("`touch {two}`")]}),
    );
    setup.server(
        "newline",
        json!({"command": format!("true\ntouch {three}")}),
    );
    setup.server(
        "variable",
        json!({"command": "true", "env": {"LD_X": format!("() {{ :; }}; touch {four}")}}),
    );
    let mut proxy = setup.start().await;
    let program = binary().display().to_string();
    let smuggled = [
        json!({"name": "new", "command": program}),
        json!({"name": "new", "command": program, "args": ["x"], "url": "http://127.0.0.1:9/"}),
        json!({"name": "new", "type": "stdio", "command": program}),
        json!({"name": "new", "url": "file:///etc/passwd"}),
        json!({"name": "new", "url": "javascript:alert(1)"}),
        json!({"name": "new", "url": "unix:///tmp/x"}),
        json!({"name": "new", "Command": program}),
        json!({"name": "new", "url": "http://127.0.0.1:9/", "command": program, "type": "http"}),
        json!([{"name": "new", "command": program}]),
        json!({"mcpServers": {"new": {"command": program}}}),
    ];
    for body in &smuggled {
        let (status, answer) = proxy.rest("POST", "/servers", Some(body.clone())).await;
        assert!((400..500).contains(&status), "{body}: {status} {answer}");
    }
    for body in [
        json!({"command": program}),
        json!({"args": ["x"]}),
        json!({"env": {"A": "b"}}),
        json!({"working_dir": "/"}),
    ] {
        let (status, answer) = proxy
            .rest("PATCH", "/servers/other", Some(body.clone()))
            .await;
        assert!((400..500).contains(&status), "{body}: {status} {answer}");
    }
    for name in ["semicolon", "substitution", "newline", "variable"] {
        proxy
            .until(name, 20, async || {
                let state = proxy.server(name).await["state"].clone();
                state == "failed" || state == "waiting"
            })
            .await;
    }
    assert!(
        !marks.iter().any(|mark| mark.exists()),
        "a shell ran part of a command"
    );
    proxy.note(format!(
        "{} requests refused, 4 commands literal",
        smuggled.len() + 4
    ));
    proxy.finish().await
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode() & 0o777)
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

async fn files_and_users() -> Report {
    let mut proxy = Setup::new().start().await;
    let folder = proxy.daemon.home.path().join(".mcpproxy");
    let mut open = Vec::new();
    each_file(&folder, &mut |path| {
        if !path.ends_with("mcp_config.json") && mode(path) & 0o077 != 0 {
            open.push(format!("{} {:o}", path.display(), mode(path)));
        }
    });
    assert!(
        mode(&folder) == 0o700 && open.is_empty(),
        "{:o} {open:?}",
        mode(&folder)
    );
    let note = other_user_on_the_socket(&folder);
    proxy.note(note);
    let home = proxy.stopped().await;
    // What others could read or plant is mended or refused at the next start, never used as it is.
    set_mode(&folder.join("api_key"), 0o644);
    let proxy = Setup::in_home(home).start().await;
    assert_eq!(
        mode(&folder.join("api_key")),
        0o600,
        "a key that others can read stays so"
    );
    let home = proxy.stopped().await;
    set_mode(&folder, 0o777);
    let output = home.cli(["serve", "--listen", "127.0.0.1:0"]);
    let refused = tokio::time::timeout(std::time::Duration::from_secs(3), output).await;
    let mended = mode(&folder) == 0o700;
    assert!(
        mended || refused.is_ok_and(|output| output.code != 0),
        "a directory open to all is used"
    );
    set_mode(&folder, 0o700);
    for (name, target) in [("activity", "planted"), ("logs", "planted-logs")] {
        let home = Home::new(&binary());
        let (folder, target) = (home.path().join(".mcpproxy"), home.path().join(target));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::create_dir_all(&target).expect("a folder");
        symlink(&target, folder.join(name)).expect("a link");
        set_mode(&target, 0o777);
        let mut setup = Setup::in_home(home);
        setup.without_probe();
        let config = setup.whole_config();
        setup.home.write_config(&config);
        let output = setup.home.cli(["serve", "--listen", "127.0.0.1:0"]);
        let refused = tokio::time::timeout(std::time::Duration::from_secs(3), output).await;
        let written = std::fs::read_dir(&target).map_or(0, Iterator::count);
        assert!(
            refused.is_ok_and(|output| output.code != 0) || written == 0,
            "files are written through a planted link {name}"
        );
    }
    let root = rustix::process::geteuid().is_root();
    if root {
        let home = Home::new(&binary());
        let folder = home.path().join(".mcpproxy");
        std::fs::create_dir_all(&folder).expect("a folder");
        chown(&folder, Some(OTHER_USER), Some(OTHER_USER)).expect("another owner");
        let output = home.cli(["serve", "--listen", "127.0.0.1:0"]);
        let output = tokio::time::timeout(std::time::Duration::from_secs(3), output).await;
        assert!(
            output.is_ok_and(|output| output.code != 0),
            "a directory of another user is used"
        );
    }
    let mut proxy = Setup::in_home(home).start().await;
    proxy.note(if root {
        "as root"
    } else {
        "not root: other users were not tried"
    });
    proxy.finish().await
}

/// Another user asks the socket, with every mode in the way taken away.
#[expect(clippy::disallowed_methods, reason = "the program is waited for")]
fn other_user_on_the_socket(folder: &Path) -> String {
    if !rustix::process::geteuid().is_root() {
        return "socket: not root".to_owned();
    }
    let mut sockets = Vec::new();
    each_file(folder, &mut |path| {
        if path.extension().is_some_and(|end| end == "sock") {
            sockets.push(path.to_owned());
        }
    });
    let socket = sockets.pop().expect("the socket");
    let above = folder.parent().expect("the home");
    let modes: Vec<_> = [above, folder, &socket]
        .map(|path| (path.to_owned(), mode(path)))
        .to_vec();
    for (path, _) in &modes {
        set_mode(path, 0o777);
    }
    let output = std::process::Command::new("curl")
        .args([
            "-s",
            "-m",
            "5",
            "-o",
            "-",
            "-w",
            "%{http_code}",
            "--unix-socket",
        ])
        .arg(&socket)
        .arg("http://localhost/api/v1/status")
        .uid(OTHER_USER)
        .gid(OTHER_USER)
        .stdin(Stdio::null())
        .output()
        .expect("curl can be run");
    for (path, mode) in modes {
        set_mode(&path, mode);
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.ends_with("200"), "another user was answered: {text}");
    "another user refused on the socket".to_owned()
}

fn each_file(folder: &Path, look: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            each_file(&path, look);
        } else {
            look(&path);
        }
    }
}

async fn management() -> Report {
    let mut proxy = Setup::new().start().await;
    let answer = proxy
        .agent
        .request("tools/list", "{}")
        .await
        .result
        .expect("a list");
    let list: Value = serde_json::from_str(&answer).expect("JSON");
    let mut names: Vec<_> = list["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].as_str().unwrap_or_default())
        .collect();
    names.sort_unstable();
    let expected = [
        "call_tool_destructive",
        "call_tool_read",
        "call_tool_write",
        "describe_tool",
        "read_cache",
        "retrieve_tools",
    ];
    assert_eq!(names, expected);
    for method in [
        "servers/add",
        "config/set",
        "tools/approve",
        "logging/setLevel",
        "admin/shutdown",
    ] {
        let answer = proxy.agent.request(method, "{}").await;
        assert!(
            answer.result.is_err() || method == "logging/setLevel",
            "{method}: {answer:?}"
        );
    }
    for tool in [
        "upstream_servers",
        "approve",
        "mcpproxy:restart",
        "up:__config",
    ] {
        assert!(proxy.read(tool).await.failed(), "{tool}");
    }
    proxy.note("six tools");
    proxy.finish().await
}

async fn approval_replay() -> Report {
    let look = |description: &str| {
        Tool::defined(&json!({"name": "look", "description": description,
            "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}))
    };
    let change = Tool::read_only("change").outcome(Outcome::ReplaceTools(vec![look("Second")]));
    let mut setup = Setup::new();
    setup.stdio(
        "up",
        &Script::new([look("First"), change]),
        json!({"trust": "pin"}),
    );
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    proxy.read("up:change").await.ok();
    proxy
        .until("the change waits for approval", 10, async || {
            proxy.server("up").await["held"].as_u64() >= Some(1)
        })
        .await;
    let approve = async |fingerprint: &str| {
        let body = json!({"tools": ["look"], "seen": {"look": fingerprint}});
        proxy.rest("POST", "/servers/up/approve", Some(body)).await
    };
    // What the operator saw is not what is announced now.
    let (status, answer) = approve(&"0".repeat(64)).await;
    assert_eq!(
        status, 409,
        "an approval of another definition was taken: {answer}"
    );
    assert!(proxy.call(Lane::Read, "up:look", json!({})).await.failed());
    proxy.note("409");
    proxy.finish().await
}
