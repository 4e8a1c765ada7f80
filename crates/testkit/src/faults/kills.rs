//! R20 to R22: SIGKILL under load, and copies of the data directory taken under load.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::case::{Case, Report, case};
use super::proxy::{ANSWER, Lane, Proxy, call};
use super::random::Random;
use super::setup::{Setup, binary};
use super::upstreams::tools;
use super::wire::Agent;
use crate::{Home, Outcome, Record, Script, Session, process, wait_until};

/// How often the daemon is killed; `--kills` says otherwise.
pub(super) static ROUNDS: OnceLock<u64> = OnceLock::new();

const CLIENTS: u64 = 4;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "R20",
            "kill -9 and start with 30 upstreams under clients of both eras",
            restart,
        ),
        case("R21", "kill -9 under load, again and again", kill_rounds)
            .alone()
            .unhurried(),
        case(
            "R22",
            "3 copies of the data directory, file by file under load",
            copies,
        ),
    ]
}

async fn restart() -> Report {
    let script = Script::new(tools(&Outcome::Echo));
    let many = |setup: &mut Setup| {
        for number in 0..29 {
            setup.stdio(&format!("many{number}"), &script, json!({}));
        }
        setup.stdio("up", &script, json!({}))
    };
    let mut setup = Setup::new();
    many(&mut setup);
    let proxy = setup.start().await;
    proxy.ready("up").await;
    let address = proxy.daemon.address().to_owned();
    let agents = Agent::everywhere(&proxy.daemon).await;
    let pids: Vec<u32> = proxy.records.iter().flat_map(Record::pids).collect();
    let config = proxy.config.clone();
    let home = proxy.killed().await;
    let mut setup = Setup::in_home(home);
    many(&mut setup);
    setup.set(json!({"listen": address}));
    assert_eq!(setup.whole_config()["mcpServers"], config["mcpServers"]);
    let mut proxy = setup.start_at(&address).await;
    let ready = proxy.ready_after;
    assert!(ready < Duration::from_secs(3), "ready after {ready:?}");
    proxy.note(format!("ready in {:.1} s", ready.as_secs_f64()));
    proxy.ready("up").await;
    for (name, agent) in &agents {
        let reply = agent
            .post(
                "tools/list",
                "",
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{META}}"#,
            )
            .await;
        let expected = if name.starts_with("legacy") { 404 } else { 200 };
        assert_eq!(reply.status, expected, "{name}: {}", reply.message);
    }
    wait_until(
        "the old upstreams have ended",
        Duration::from_secs(5),
        async || !pids.iter().copied().any(process::is_alive),
    )
    .await;
    proxy.finish().await
}

/// Calls that were answered, by the number in their arguments, and whether they succeeded.
type Acknowledged = Arc<Mutex<BTreeMap<String, bool>>>;

/// Clients that call on all lanes until the connection is gone.
struct Load {
    acknowledged: Acknowledged,
    clients: JoinSet<()>,
}

impl Load {
    async fn start(proxy: &Proxy, prefix: &str, random: &mut Random) -> Self {
        let acknowledged = Acknowledged::default();
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let session = proxy.daemon.session().await;
            let (shared, prefix) = (Arc::clone(&acknowledged), format!("{prefix}-{client}"));
            clients.spawn(call_for_ever(session, shared, prefix, random.split()));
        }
        Self {
            acknowledged,
            clients,
        }
    }

    fn acknowledged(&self) -> BTreeMap<String, bool> {
        self.acknowledged
            .lock()
            .expect("the acknowledged calls")
            .clone()
    }

    /// Waits for the clients, which end with their connection.
    async fn end(mut self) -> BTreeMap<String, bool> {
        while self.clients.join_next().await.is_some() {}
        self.acknowledged()
    }
}

async fn call_for_ever(
    session: Session,
    acknowledged: Acknowledged,
    prefix: String,
    mut random: Random,
) {
    for number in 0.. {
        let name = format!("{prefix}-{number}");
        let (lane, tool) = random.pick(&[
            (Lane::Read, "up:look"),
            (Lane::Write, "up:save"),
            (Lane::Destructive, "up:wipe"),
        ]);
        // A connection that is gone panics, which ends this task.
        let called = call(&session, ANSWER, lane, tool, json!({"n": name})).await;
        acknowledged
            .lock()
            .expect("the calls")
            .insert(name, !called.failed());
    }
}

/// The calls in the log by the number in their arguments; none may be there twice.
async fn recorded(proxy: &Proxy) -> BTreeMap<String, String> {
    let mut recorded = BTreeMap::new();
    let url = proxy
        .daemon
        .url("/api/v1/activity/export?format=jsonl&include_bodies=true");
    let answer = crate::http_client()
        .get(url)
        .bearer_auth(proxy.daemon.key())
        .send()
        .await;
    let export = answer.expect("an answer").text().await.expect("an export");
    for line in export.lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        let Some(number) = record["arguments"]["n"].as_str() else {
            continue;
        };
        let status = record["status"].as_str().unwrap_or_default().to_owned();
        let twice = recorded.insert(number.to_owned(), status);
        assert!(twice.is_none(), "{number} is recorded twice");
    }
    recorded
}

fn assert_recorded(acknowledged: &BTreeMap<String, bool>, recorded: &BTreeMap<String, String>) {
    for (number, succeeded) in acknowledged {
        let status = recorded.get(number).map(String::as_str);
        let fits = match status {
            Some("success") => *succeeded,
            Some("error" | "blocked" | "cancelled" | "interrupted") => !*succeeded,
            _ => false,
        };
        assert!(
            fits,
            "{number} was acknowledged ({succeeded}) and is recorded as {status:?}"
        );
    }
}

async fn kill_rounds() -> Report {
    let rounds = *ROUNDS.get_or_init(|| 8);
    let mut random = Random::seeded();
    let (mut home, mut total, mut interrupted, mut slowest) = (None, 0, 0, Duration::ZERO);
    for round in 0..rounds {
        let mut setup = home.take().map_or_else(Setup::new, Setup::in_home);
        let upstream = setup.stdio("up", &Script::new(tools(&Outcome::Echo)), json!({}));
        setup
            .without_probe()
            .set(json!({"activity": {"max_records": 0, "max_size_mb": 0}}));
        let sent_before = upstream.record().calls().len();
        let proxy = setup.start().await;
        proxy.ready("up").await;
        let load = Load::start(&proxy, &round.to_string(), &mut random).await;
        tokio::time::sleep(random.below(Duration::from_millis(400))).await;
        let left = proxy.killed().await;
        let acknowledged = load.end().await;
        let began = Instant::now();
        let mut setup = Setup::in_home(left);
        setup.without_probe();
        let proxy = setup.start().await;
        slowest = slowest.max(began.elapsed());
        let recorded = recorded(&proxy).await;
        assert_recorded(&acknowledged, &recorded);
        let sent = upstream.record().calls().split_off(sent_before);
        for call in sent.iter().filter(|call| call["name"] != "look") {
            let number = call["arguments"]["n"].as_str().unwrap_or_default();
            assert!(
                recorded.contains_key(number),
                "{number} was carried out and is not recorded"
            );
        }
        total += acknowledged.len();
        interrupted = recorded
            .values()
            .filter(|status| *status == "interrupted")
            .count();
        home = Some(proxy.stopped().await);
    }
    let mut proxy = Setup::in_home(home.expect("a round")).start().await;
    proxy.note(format!(
        "{rounds} kills, {total} acknowledged, 0 lost, {interrupted} interrupted"
    ));
    proxy.note(format!("slowest start {:.1} s", slowest.as_secs_f64()));
    proxy.finish().await
}

async fn copies() -> Report {
    let mut setup = Setup::new();
    setup.stdio("up", &Script::new(tools(&Outcome::Echo)), json!({}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let mut random = Random::seeded();
    let load = Load::start(&proxy, "c", &mut random).await;
    let mut checked = 0;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let acknowledged = load.acknowledged();
        let copy = Home::new(&binary());
        copy_tree(
            &proxy.daemon.home.path().join(".mcpproxy"),
            &copy.path().join(".mcpproxy"),
        );
        let mut setup = Setup::in_home(copy);
        setup.without_probe();
        let copied = setup.start().await;
        assert_recorded(&acknowledged, &recorded(&copied).await);
        checked += acknowledged.len();
        let _report = copied.finish().await;
    }
    drop(load);
    proxy.note(format!("{checked} acknowledged calls found in copies"));
    proxy.finish().await
}

/// Copies files in the order in which the system names them; sockets and locks are left out.
pub(super) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_tree(&path, &target);
        } else if path.is_file() {
            // A file may be gone by now.
            let _ = std::fs::copy(&path, target);
        }
    }
}
