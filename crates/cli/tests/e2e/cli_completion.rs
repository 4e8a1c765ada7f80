//! What shells are told when somebody presses tab.

use serde_json::{Value, json};
use testkit::{Home, Script, Stdin, TestDaemon, Tool};

use crate::support::home;

/// The candidates for the last word of a line, as bash asks for them.
async fn complete(home: &Home, line: &[&str]) -> Vec<String> {
    let index = line.len().to_string();
    let environment = [
        ("MCPPROXY_COMPLETE", "bash"),
        ("_CLAP_COMPLETE_INDEX", index.as_str()),
        ("_CLAP_IFS", "\n"),
    ];
    let arguments = ["--", "mcpproxy"].iter().chain(line);
    let output = home.cli_with(arguments, Stdin::Empty, &environment).await;
    output.succeeded();
    output.stdout.lines().map(str::to_owned).collect()
}

fn servers(home: &Home) -> Value {
    let tools = [Tool::read_only("look"), Tool::destructive("wipe")];
    json!({
        "up": home.upstream("up", &Script::new(tools)).config(),
        "other": {"command": "not-started", "enabled": false},
    })
}

#[tokio::test]
async fn commands_and_clients() {
    let home = home();
    let commands = complete(&home, &["do"]).await;
    assert_eq!(commands, ["doctor"]);
    let clients = complete(&home, &["connect", "cl"]).await;
    assert_eq!(clients, ["claude-code", "claude-desktop", "cline"]);
}

/// Every place in a line where the name of a server stands.
const TAKE_SERVERS: [&[&str]; 14] = [
    &["upstream", "remove"],
    &["upstream", "rm"],
    &["upstream", "enable"],
    &["upstream", "disable"],
    &["upstream", "restart"],
    &["upstream", "logs"],
    &["upstream", "logs", "--lines", "5"],
    &["upstream", "diff"],
    &["upstream", "approve"],
    &["upstream", "quarantine"],
    &["tools", "list", "--server"],
    &["tools", "search", "x", "--server"],
    &["audit", "--server"],
    &["activity", "list", "--server"],
];

#[tokio::test]
async fn servers_with_a_daemon_and_without() {
    let home = home();
    let servers = servers(&home);
    home.write_config(&json!({ "mcpServers": servers }));
    for line in TAKE_SERVERS {
        let found = complete(&home, &[line, &["u"]].concat()).await;
        assert_eq!(found, ["up"], "{line:?}");
    }
    let daemon = TestDaemon::with_servers(home, servers).await;
    for line in TAKE_SERVERS {
        let found = complete(&daemon.home, &[line, &["o"]].concat()).await;
        assert_eq!(found, ["other"], "{line:?}");
    }
}

#[tokio::test]
async fn tools_of_a_daemon() {
    let home = home();
    let servers = servers(&home);
    let daemon = TestDaemon::with_servers(home, servers).await;
    daemon.session_with(&["up:look"]).await;
    let home = &daemon.home;
    for line in [
        &["call", "tool-read", "up:l"][..],
        &["tools", "show", "up:l"],
        &["tools", "override", "set", "up:l"],
    ] {
        assert_eq!(complete(home, line).await, ["up:look"], "{line:?}");
    }
    for command in ["diff", "approve", "quarantine"] {
        let found = complete(home, &["upstream", command, "up", ""]).await;
        assert!(found.contains(&"wipe".to_owned()), "{command}: {found:?}");
        let found = complete(home, &["upstream", command, "up", "wipe", "l"]).await;
        assert_eq!(found, ["look"], "{command}");
        let found = complete(home, &["upstream", command, "other", "l"]).await;
        assert!(found.is_empty(), "{command}: {found:?}");
    }
}

#[tokio::test]
async fn the_options_of_the_line_count() {
    let home = home();
    home.write_config(&json!({"mcpServers": {"usual": {"command": "x"}}}));
    let elsewhere = home.path().join("else where");
    std::fs::create_dir(&elsewhere).unwrap();
    let file = elsewhere.join("config.json");
    std::fs::write(&file, r#"{"mcpServers": {"unusual": {"command": "x"}}}"#).unwrap();
    let remove = ["upstream", "remove", "u"];
    assert_eq!(complete(&home, &remove).await, ["usual"]);
    let file = file.to_str().unwrap();
    for options in [
        &["--config", file][..],
        &[&format!("--config={file}")],
        &["--config", &format!("'{file}'")],
        &["--config", "~/else\\ where/config.json"],
        &["--quiet", "--config", "else where/config.json"],
    ] {
        let line = [options, &remove].concat();
        assert_eq!(complete(&home, &line).await, ["unusual"], "{line:?}");
        let line = [&["upstream", "logs"], options, &["u"]].concat();
        assert_eq!(complete(&home, &line).await, ["unusual"], "{line:?}");
    }
}

#[tokio::test]
async fn a_daemon_elsewhere_is_asked() {
    let home = home();
    let servers = servers(&home);
    let folder = home.path().join("data");
    let config = json!({"mcpServers": servers, "data_dir": folder});
    let daemon = TestDaemon::start(home, config).await;
    daemon.session_with(&["up:look"]).await;
    let home = &daemon.home;
    // Another config: only what the line says leads to the daemon.
    std::fs::write(home.path().join("empty.json"), "{}").unwrap();
    let show = ["tools", "show", "up:l"];
    let line = [&["--config", "empty.json"][..], &show].concat();
    assert!(complete(home, &line).await.is_empty());
    let line = [&["--config", "empty.json", "--data-dir", "data"][..], &show].concat();
    assert_eq!(complete(home, &line).await, ["up:look"]);
}

#[tokio::test]
async fn every_shell_gets_a_script() {
    let home = home();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = home.cli(["completions", shell]).await;
        assert!(
            output.succeeded().stdout.contains("MCPPROXY_COMPLETE"),
            "{}",
            output.stdout
        );
    }
    home.cli(["completions", "tcsh"]).await.ended_with(2);
}
