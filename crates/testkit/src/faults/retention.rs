//! F2 to F4, F25, F26 and what else is about the log: flushing it, hiding in it, filling the disk with it.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::case::{Case, Report, case};
use super::kills::copy_tree;
use super::log::{database, start, start_again, writes};
use super::proxy::{ANSWER, Lane, Proxy, call};
use super::setup::{Setup, binary};
use crate::{Churn, Home, Outcome, Script, Tool};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "F2",
            "3,000 refused calls; refused calls with 3.8 MB of arguments",
            flushed_by_an_agent,
        )
        .alone(),
        case(
            "F3",
            "every table of the log emptied in turn",
            hidden_records,
        ),
        case(
            "F4",
            "400 tools that change with every listing",
            flushed_by_a_server,
        )
        .alone(),
        case(
            "F25",
            "status and doctor with a broken config",
            broken_config,
        ),
        case("F26", "payloads of no record", orphan_payloads),
        case("X1", "10 errors of 10 MB each", large_errors).alone(),
        case(
            "X2",
            "refused calls of 500 names of 100 kB; a client name of 1 MB",
            large_names,
        ),
    ]
}

/// The bytes of all files of the log.
fn log_bytes(home: &Home) -> u64 {
    let folder = home.path().join(".mcpproxy/activity");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}

/// Whether the first writes are still there.
async fn assert_kept(proxy: &Proxy, mark: &str, count: usize) {
    let records = proxy.log("intent_type=write").await;
    let kept = records.iter().filter(|record| {
        record["arguments"]["n"]
            .as_str()
            .is_some_and(|number| number.starts_with(mark))
    });
    assert_eq!(kept.count(), count, "writes were pushed out of the log");
}

async fn flushed_by_an_agent() -> Report {
    let mut proxy = start(json!({"activity": {"max_records": 500}})).await;
    writes(&proxy, "early", 5).await;
    let began = Instant::now();
    let mut agents = JoinSet::new();
    for agent in 0..4 {
        let session = proxy.daemon.session().await;
        agents.spawn(async move {
            for number in 0..750 {
                let tool = format!("up:nope{agent}x{number}");
                call(&session, ANSWER, Lane::Read, &tool, json!({})).await;
            }
        });
    }
    agents.join_all().await;
    let rate = 3_000.0 / began.elapsed().as_secs_f64();
    assert_kept(&proxy, "early", 5).await;
    proxy.note(format!("3,000 refusals at {rate:.0}/s: kept"));
    let _report = proxy.finish().await;

    let mut proxy = start(json!({"activity": {"max_size_mb": 16}})).await;
    writes(&proxy, "early", 5).await;
    let large = "y".repeat(3_800_000);
    for number in 0..30 {
        let arguments = json!({"n": number, "x": large});
        let _ = proxy.call(Lane::Read, "up:nope", arguments).await;
    }
    assert_kept(&proxy, "early", 5).await;
    proxy
        .until("the log keeps to its size", 20, async || {
            log_bytes(&proxy.daemon.home) < 48 << 20
        })
        .await;
    proxy.note(format!(
        "30 × 3.8 MB: kept, log {} MB",
        log_bytes(&proxy.daemon.home) >> 20
    ));
    proxy.finish().await
}

/// What lists and exports answer, by several filters.
async fn answers(home: &Home) -> Vec<String> {
    let filters: [&[&str]; 5] = [
        &[],
        &["--tool", "save"],
        &["--intent-type", "write"],
        &["--query", "early"],
        &["--server", "up", "--status", "success"],
    ];
    let mut answers = Vec::new();
    for filter in filters {
        let command = [&["activity", "export", "--format", "jsonl"], filter].concat();
        answers.push(home.cli(command).await.stdout);
    }
    answers
}

async fn hidden_records() -> Report {
    let proxy = start(json!({})).await;
    writes(&proxy, "early", 5).await;
    // More than a block of the index.
    let mut agents = JoinSet::new();
    for _ in 0..4 {
        let session = proxy.daemon.session().await;
        agents.spawn(async move {
            for number in 0..300 {
                call(
                    &session,
                    ANSWER,
                    Lane::Read,
                    "up:look",
                    json!({"n": number}),
                )
                .await
                .ok();
            }
        });
    }
    agents.join_all().await;
    let home = proxy.stopped().await;
    let expected = answers(&home).await;
    let tables = {
        let connection = Connection::open(database(&home)).expect("a database");
        let mut query = connection
            .prepare(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
            )
            .expect("a query");
        let names = query
            .query_map([], |row| row.get::<_, String>(0))
            .expect("names");
        names.collect::<Result<Vec<_>, _>>().expect("names")
    };
    let (mut told, mut harmless) = (0, 0);
    for table in &tables {
        let copy = Home::new(&binary());
        copy_tree(
            &home.path().join(".mcpproxy"),
            &copy.path().join(".mcpproxy"),
        );
        let connection = Connection::open(database(&copy)).expect("a database");
        connection
            .execute(&format!("DELETE FROM {table}"), [])
            .expect("it can be emptied");
        drop(connection);
        if copy.cli(["activity", "verify"]).await.code == 0 {
            assert!(
                answers(&copy).await == expected,
                "emptying {table} hides records and verifies"
            );
            harmless += 1;
        } else {
            told += 1;
        }
    }
    // What a list is answered from is rebuilt by a start.
    let connection = Connection::open(database(&home)).expect("a database");
    for table in ["terms", "blocks"] {
        if tables.iter().any(|name| name == table) {
            connection
                .execute(&format!("DELETE FROM {table}"), [])
                .expect("it can be emptied");
        }
    }
    drop(connection);
    let mut proxy = start_again(home).await;
    proxy
        .until("the index is rebuilt", 20, async || {
            proxy.log("tool=save").await.len() == 5
        })
        .await;
    proxy.note(format!(
        "{} tables: {told} told, {harmless} without effect; rebuilt",
        tables.len()
    ));
    proxy.finish().await
}

async fn flushed_by_a_server() -> Report {
    let mut script = Script::new((0..400).map(|number| Tool::read_only(&format!("tool{number}"))));
    script.churn = Churn::Descriptions;
    script.storm_per_second = 100;
    let mut setup = Setup::new();
    setup.stdio("churn", &script, json!({}));
    setup.stdio(
        "up",
        &Script::new(super::upstreams::tools(&Outcome::Echo)),
        json!({}),
    );
    setup
        .without_probe()
        .set(json!({"activity": {"max_records": 1_000, "max_size_mb": 16}}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    writes(&proxy, "early", 5).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_kept(&proxy, "early", 5).await;
    let total = proxy.daemon.api("/activity?limit=1").await["total"]
        .as_u64()
        .unwrap_or(u64::MAX);
    let megabytes = log_bytes(&proxy.daemon.home) >> 20;
    assert!(total <= 1_500, "{total} records with max_records 1,000");
    assert!(megabytes < 48, "{megabytes} MB with max_size_mb 16");
    proxy.note(format!("{total} records, {megabytes} MB"));
    proxy.finish().await
}

async fn broken_config() -> Report {
    let proxy = Setup::new().start().await;
    let file = proxy.daemon.home.config_file();
    let good = std::fs::read_to_string(&file).expect("the config");
    std::fs::write(&file, "{ broken").expect("it can be written");
    let status = proxy.daemon.home.cli(["status"]).await;
    assert_eq!(status.code, 0, "{} {}", status.stdout, status.stderr);
    let doctor = proxy.daemon.home.cli(["doctor", "-o", "json"]).await.stdout;
    assert!(doctor.contains("CONFIG_INVALID"), "{doctor}");
    assert!(
        !doctor.contains("PORT_IN_USE") && !doctor.contains("PORT_UNREACHABLE"),
        "{doctor}"
    );
    std::fs::write(&file, good).expect("it can be written");
    proxy.finish().await
}

async fn orphan_payloads() -> Report {
    let proxy = start(json!({})).await;
    writes(&proxy, "early", 2).await;
    let home = proxy.stopped().await;
    let change = |sql: &str| {
        let connection = Connection::open(database(&home)).expect("a database");
        connection.execute(sql, []).expect("a change");
    };
    change("INSERT INTO payloads (record, arguments) VALUES (4711, CAST('{}' AS BLOB))");
    let verify = home.cli(["activity", "verify"]).await;
    assert_eq!(
        verify.code, 1,
        "payloads of no record are not told: {}",
        verify.stdout
    );
    change("DELETE FROM payloads WHERE record = 4711");
    start_again(home).await.finish().await
}

async fn large_errors() -> Report {
    let fails = Outcome::Error {
        code: -32000,
        message: "long words of an error ".repeat(450_000),
    };
    let mut setup = Setup::new();
    setup.stdio(
        "up",
        &Script::new([Tool::read_only("fails").outcome(fails)]),
        json!({}),
    );
    setup.set(json!({"activity": {"max_size_mb": 16}}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    for _ in 0..10 {
        let called = proxy.read("up:fails").await;
        let length = called.answer.as_ref().map_or(0, String::len);
        assert!(
            called.failed() && length < 1_000_000,
            "{length} bytes to the agent"
        );
    }
    let list = proxy
        .daemon
        .api("/activity?limit=100")
        .await
        .to_string()
        .len();
    assert!(list < 1_000_000, "a list of {list} bytes");
    proxy.note(format!(
        "list of {} kB, log {} MB",
        list / 1_000,
        log_bytes(&proxy.daemon.home) >> 20
    ));
    proxy.finish().await
}

async fn large_names() -> Report {
    let mut proxy = start(json!({"activity": {"max_records": 100, "max_size_mb": 16}})).await;
    for number in 0..500 {
        let tool = format!("nope:{number}{}", "n".repeat(100_000));
        let _ = proxy.call(Lane::Read, &tool, json!({})).await;
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "c".repeat(1 << 20), "version": "1"}}});
    let request = crate::http_client()
        .post(proxy.daemon.url("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .json(&body);
    let answer = request.send().await.expect("an answer");
    assert!(answer.status().as_u16() < 500);
    proxy
        .until("the log keeps to its size", 20, async || {
            log_bytes(&proxy.daemon.home) < 40 << 20
        })
        .await;
    let records: Vec<Value> = proxy.log("server=nope").await;
    let longest = records
        .iter()
        .map(|record| record.to_string().len())
        .max()
        .unwrap_or(0);
    assert!(longest < 20_000, "a record of {longest} bytes in a list");
    let clients = proxy
        .daemon
        .api("/activity?limit=1")
        .await
        .to_string()
        .len();
    assert!(clients < 20_000, "{clients} bytes");
    proxy.note(format!("log {} MB", log_bytes(&proxy.daemon.home) >> 20));
    proxy.finish().await
}
