//! What is told of tools while their servers are being connected.

use serde_json::{Value, json};
use testkit::{Home, Script, TestDaemon, Tool};

use crate::support::{home, server_in};

/// Longer than a test looks.
const SLOW_MS: u64 = 60_000;

/// A home in which a daemon has seen two servers, one of which will take long to start next time.
async fn home_with_a_past(quarantined: bool) -> (Home, Value) {
    let home = home();
    let mut slow = Script::new([Tool::read_only("look_at_stars"), Tool::read_only("map_sky")]);
    let servers = json!({
        "slow": home.upstream("slow", &slow).config(),
        "quick": home.upstream("quick", &Script::new([Tool::read_only("count_sheep")])).config(),
    });
    let daemon = TestDaemon::with_servers(home, servers.clone()).await;
    daemon
        .session_with(&["slow:look_at_stars", "quick:count_sheep"])
        .await;
    if quarantined {
        let arguments = ["upstream", "quarantine", "slow", "look_at_stars"];
        daemon.home.cli(arguments).await.succeeded();
    }
    let (home, _) = daemon.stop().await;
    slow.start.delay_ms = SLOW_MS;
    home.upstream("slow", &slow);
    (home, servers)
}

#[tokio::test]
async fn a_search_names_the_servers_that_are_starting_and_never_says_that_nothing_exists() {
    let (home, servers) = home_with_a_past(false).await;
    let daemon = TestDaemon::with_servers(home, servers).await;
    let session = daemon.session().await;
    server_in(&daemon, "quick", "ready").await;
    let found = session.retrieve(&json!({"query": "look at stars"})).await;
    assert_eq!(found["tools"][0]["name"], "slow:look_at_stars", "{found}");
    assert_eq!(found["tools"][0]["stale"], true, "{found}");
    assert_eq!(found["starting"], json!(["slow"]), "{found}");
    let hint = found["hint"].as_str().unwrap();
    assert!(hint.contains("still starting are slow"), "{hint}");
    let query = json!({"query": "quibble zyzzyva"});
    let nothing = session.retrieve(&query).await;
    assert_eq!(nothing["tools"], json!([]), "{nothing}");
    let hint = nothing["hint"].as_str().unwrap();
    assert!(
        hint.starts_with("No tool that is known so far matches"),
        "{hint}"
    );
    // Of a server that has answered, it can be said.
    let query = json!({"query": "quibble zyzzyva", "server": "quick"});
    let nothing = session.retrieve(&query).await;
    assert_eq!(nothing["starting"], Value::Null, "{nothing}");
    assert!(
        nothing["hint"]
            .as_str()
            .unwrap()
            .starts_with("No tool matches."),
        "{nothing}"
    );
}

#[tokio::test]
async fn commands_mark_what_is_stale_and_name_what_is_starting() {
    let (home, servers) = home_with_a_past(false).await;
    let daemon = TestDaemon::with_servers(home, servers).await;
    server_in(&daemon, "quick", "ready").await;
    let home = &daemon.home;
    let list = home.cli(["tools", "list"]).await;
    assert!(
        list.succeeded().stderr.contains("still starting: slow"),
        "{}",
        list.stderr
    );
    let line = |name: &str| {
        list.stdout
            .lines()
            .find(|line| line.contains(name))
            .unwrap()
    };
    assert!(
        line("slow:map_sky").contains("declared, stale"),
        "{}",
        list.stdout
    );
    assert!(
        !line("quick:count_sheep").contains("stale"),
        "{}",
        list.stdout
    );
    let json = home.cli(["tools", "list", "-o", "json"]).await.json();
    assert_eq!(json["starting"], json!(["slow"]), "{json}");
    let search = home.cli(["tools", "search", "map", "sky"]).await;
    assert!(
        search.succeeded().stdout.contains("slow:map_sky (stale)"),
        "{}",
        search.stdout
    );
    assert!(
        search.stderr.contains("still starting are slow"),
        "{}",
        search.stderr
    );
    let show = home.cli(["tools", "show", "slow:map_sky"]).await;
    assert!(show.succeeded().stdout.contains("stale"), "{}", show.stdout);
    let unknown = home.cli(["tools", "show", "slow:new_tool"]).await;
    unknown.ended_with(6);
    assert!(
        unknown.stderr.contains("slow is still starting"),
        "{}",
        unknown.stderr
    );
}

#[tokio::test]
async fn a_tool_in_quarantine_is_held_also_while_its_server_starts() {
    let (home, servers) = home_with_a_past(true).await;
    let daemon = TestDaemon::with_servers(home, servers).await;
    let session = daemon.session().await;
    let found = session.retrieve(&json!({"query": "look at stars"})).await;
    let tools = found["tools"].as_array().unwrap();
    let held = tools
        .iter()
        .find(|tool| tool["name"] == "slow:look_at_stars");
    let held = held.unwrap_or_else(|| panic!("{found}"));
    assert_eq!(held["hold"], "quarantined", "{found}");
    assert_eq!(held["inputSchema"], Value::Null, "{found}");
}
