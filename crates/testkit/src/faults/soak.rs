//! R40: mixed load of several clients of both eras in front of upstreams that fail at random.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use super::case::case;
use super::machine::Usage;
use super::proxy::{Lane, Proxy, call};
use super::random::Random;
use super::setup::Setup;
use super::upstreams::tools;
use super::wire::Agent;
use super::{Row, table};
use crate::{Fault, Outcome, Part, Script, Session, Tool};

const CLIENTS: usize = 6;
const FAULTY: usize = 4;

/// A fault stays for this long before another takes its place.
const SPELL: Duration = Duration::from_secs(10);

static SECONDS: AtomicU64 = AtomicU64::new(0);

const FAULTS: [Fault; 17] = [
    Fault::ExitMidCall,
    Fault::CrashMidCall,
    Fault::CrashLoop,
    Fault::Hang,
    Fault::HangAtInitialize,
    Fault::HangAtList,
    Fault::SlowBoot,
    Fault::EndlessLine,
    Fault::HugeLine,
    Fault::EndlessPages,
    Fault::LargeImage,
    Fault::MalformedFrames,
    Fault::Banner,
    Fault::StderrFlood,
    Fault::Storm,
    Fault::Orphan,
    Fault::Freeze,
];

/// Runs the soak and prints its row; whether it passed.
pub(super) async fn run(seconds: u64) -> anyhow::Result<bool> {
    SECONDS.store(seconds, Ordering::Relaxed);
    let row = case("R40", "mixed load with random faults", soak)
        .unhurried()
        .run()
        .await;
    writeln!(
        std::io::stdout(),
        "{}",
        table::of(std::slice::from_ref(&row))
    )?;
    Ok(!Row::failed(&row))
}

/// What the clients share.
#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    calls: AtomicU64,
    /// Calls of the healthy upstream that failed.
    failed: AtomicU64,
}

async fn soak() -> super::case::Report {
    let seconds = SECONDS.load(Ordering::Relaxed);
    let mut random = Random::seeded();
    let mut setup = Setup::new();
    let mut healthy = Script::new(tools(&Outcome::Echo));
    healthy.lifetime_seconds = Some(seconds + 600);
    healthy
        .tools
        .push(Tool::read_only("large").outcome(Outcome::Large {
            part: Part::Text,
            mebibytes: 1,
        }));
    setup.stdio("up", &healthy, json!({}));
    let mut other = Script::new([Tool::read_only("look")]);
    other.lifetime_seconds = Some(seconds + 600);
    setup.stdio(super::setup::OTHER, &other, json!({}));
    for number in 0..FAULTY {
        setup.stdio(
            &format!("bad{number}"),
            &Fault::Banner.script(),
            json!({"timeout": "2s"}),
        );
    }
    setup.set(json!({"activity": {"max_records": 20_000}, "limits": {"start_window": "20s", "listing_time": "5s"}}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let shared = Arc::new(Shared::default());
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let session = proxy.daemon.session().await;
        let modern = (number % 2 == 1).then(|| Agent::Modern(proxy.daemon.url("/mcp")));
        clients.spawn(client(session, modern, Arc::clone(&shared), random.split()));
    }
    let samples = drive(&mut proxy, Duration::from_secs(seconds), &mut random).await;
    shared.over.store(true, Ordering::Relaxed);
    clients.join_all().await;
    // At the end all are healthy, so that processes can be counted.
    for number in 0..FAULTY {
        place(&mut proxy, number, Fault::Banner);
    }
    let calls = shared.calls.load(Ordering::Relaxed);
    let failed = shared.failed.load(Ordering::Relaxed);
    assert_eq!(
        failed, 0,
        "calls of the healthy upstream failed, of {calls}"
    );
    proxy.note(format!("{seconds} s, {} calls/s", calls / seconds.max(1)));
    let slope = slope(&samples[samples.len() / 2..]);
    proxy.note(format!(
        "memory slope {slope:+.2} MiB/min in the second half"
    ));
    proxy.finish().await
}

/// Puts a fault in the place of another every few seconds, and notes the memory every second.
async fn drive(proxy: &mut Proxy, duration: Duration, random: &mut Random) -> Vec<(f64, f64)> {
    let (began, mut next) = (Instant::now(), Instant::now());
    let (mut samples, mut number) = (Vec::new(), 0);
    while began.elapsed() < duration {
        if Instant::now() >= next {
            place(proxy, number % FAULTY, random.pick(&FAULTS));
            number += 1;
            next = Instant::now() + SPELL / u32::try_from(FAULTY).unwrap_or(1);
        }
        samples.push((
            began.elapsed().as_secs_f64() / 60.0,
            Usage::of(proxy.daemon.pid()).rss_mib,
        ));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    samples
}

/// Gives a server another script by changing its entry.
fn place(proxy: &mut Proxy, number: usize, fault: Fault) {
    let name = format!("bad{number}");
    let mut script = fault.script();
    script.lifetime_seconds = Some(3_600);
    let upstream = proxy
        .daemon
        .home
        .upstream(&format!("{name}-{fault:?}"), &script);
    proxy.records.push(upstream.record());
    proxy.config["mcpServers"][&name] =
        upstream.config_with(&json!({"timeout": "2s", "sharing": "shared"}));
    proxy.daemon.reconfigure(proxy.config.clone());
}

/// Calls whatever comes to mind until it is over.
async fn client(session: Session, modern: Option<Agent>, shared: Arc<Shared>, mut random: Random) {
    let patience = Duration::from_secs(30);
    while !shared.over.load(Ordering::Relaxed) {
        shared.calls.fetch_add(1, Ordering::Relaxed);
        let healthy = match random.index(10) {
            0..3 => !call(&session, patience, Lane::Read, "up:look", json!({"n": 1}))
                .await
                .failed(),
            3 => !call(&session, patience, Lane::Write, "up:save", json!({"n": 2}))
                .await
                .failed(),
            4 => !call(&session, patience, Lane::Destructive, "up:wipe", json!({}))
                .await
                .failed(),
            5 => call(&session, patience, Lane::Read, "up:wipe", json!({}))
                .await
                .failed(),
            6 => {
                let found = session
                    .call("retrieve_tools", &json!({"query": "look save wipe"}))
                    .await;
                found.contains("up:")
            }
            7 if random.index(4) == 0 => {
                !call(&session, patience, Lane::Read, "up:large", json!({}))
                    .await
                    .failed()
            }
            8 => match &modern {
                Some(agent) => {
                    let (name, arguments) = Lane::Read.call("up:look", &json!({}));
                    !agent.call(&name, &arguments).await.refused()
                }
                None => true,
            },
            _ => {
                // Answered in time is all that is asked of these.
                let tool = format!("bad{}:look", random.index(FAULTY));
                call(&session, patience, Lane::Read, &tool, json!({})).await;
                true
            }
        };
        shared
            .failed
            .fetch_add(u64::from(!healthy), Ordering::Relaxed);
        tokio::time::sleep(random.below(Duration::from_millis(40))).await;
    }
    // Long results are kept for a session, 64 MiB in all.
    session.close().await;
}

/// The slope of a line through the samples, by least squares.
#[expect(clippy::cast_precision_loss, reason = "thousands of samples at most")]
fn slope(samples: &[(f64, f64)]) -> f64 {
    let count = samples.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| samples.iter().map(pick).sum::<f64>() / count;
    let (x, y) = (mean(|sample| sample.0), mean(|sample| sample.1));
    let above: f64 = samples
        .iter()
        .map(|sample| (sample.0 - x) * (sample.1 - y))
        .sum();
    let below: f64 = samples.iter().map(|sample| (sample.0 - x).powi(2)).sum();
    if below == 0.0 { 0.0 } else { above / below }
}
