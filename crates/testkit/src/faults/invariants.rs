//! What must hold after every case, whatever the case was.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::Report;
use super::machine::{Usage, descendants};
use super::proxy::{Lane, Proxy, within};
use super::setup::OTHER;
use crate::{Home, process};

/// How long the daemon gets to settle: to end what it ended, to give memory back.
const SETTLING: Duration = Duration::from_secs(20);

/// `shutdown_grace` and five seconds, and a little for a busy machine.
const STOPPING: Duration = Duration::from_secs(12);

const FDS_SLACK: usize = 10;
const CALLS: usize = 20;
const QUICK_MS: f64 = 1_000.0;

impl Proxy {
    /// Checks the invariants, stops the daemon and makes the row's figures.
    pub(super) async fn finish(self) -> Report {
        self.finish_in_home().await.0
    }

    /// Like [`Proxy::finish`], with the home for a look at what is left in it.
    pub(super) async fn finish_in_home(mut self) -> (Report, Home) {
        let mut broken = Vec::new();
        if !self.daemon.is_up().await {
            let log = self.daemon.log();
            panic!("the daemon does not answer; it last said: {}", tail(&log));
        }
        let during = self.others_meanwhile(&mut broken).await;
        self.others_now(&mut broken).await;
        self.settled("no call is left pending", &mut broken, async |proxy| {
            let open = proxy.daemon.api("/activity?status=pending&limit=5").await;
            match open["total"].as_u64() {
                Some(0) => Ok(()),
                _ => Err(format!("pending: {}", super::proxy::shown(&open))),
            }
        })
        .await;
        let verified = self.daemon.api("/activity/verify").await;
        if verified["valid"] != true {
            broken.push(format!("the log does not verify: {verified}"));
        }
        self.settled(
            "children are the live upstreams",
            &mut broken,
            async |proxy| children(proxy).await,
        )
        .await;
        self.settled(
            "memory and descriptors are given back",
            &mut broken,
            async |proxy| usage(proxy),
        )
        .await;
        let after = Usage::of(self.daemon.pid());
        if let Some(line) = self
            .daemon
            .log()
            .lines()
            .find(|line| line.contains("panicked at"))
        {
            broken.push(format!("the daemon panicked: {line}"));
        }
        let mut figures = std::mem::take(&mut self.figures);
        let before = self.before;
        figures.push(format!(
            "RSS {:.0}→{:.0} MiB",
            before.rss_mib, after.rss_mib
        ));
        figures.push(format!("fds {}→{}", before.fds, after.fds));
        figures.push(during);
        let home = self.stop_in_time(&mut broken).await;
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        let applicable = true;
        (
            Report {
                figures,
                applicable,
            },
            home,
        )
    }

    /// How the healthy upstream did while the case ran.
    async fn others_meanwhile(&mut self, broken: &mut Vec<String>) -> String {
        let baseline = p99(&self.baseline);
        let Some(probe) = self.probe.take() else {
            return format!("others p99 {baseline:.1} ms before");
        };
        let during = p99(&probe.latencies.lock().expect("the latencies"));
        if let Some(why) = probe.end().await {
            broken.push(format!(
                "a call to another upstream failed meanwhile: {why}"
            ));
        }
        if during > QUICK_MS {
            broken.push(format!(
                "calls to another upstream took {during:.0} ms meanwhile"
            ));
        }
        format!("others p99 {during:.1} ({baseline:.1}) ms")
    }

    async fn others_now(&self, broken: &mut Vec<String>) {
        // A session of its own: the case may have ended the other.
        let session = self.daemon.session().await;
        let tool = format!("{OTHER}:look");
        for _ in 0..CALLS {
            let called = super::proxy::call(&session, SETTLING, Lane::Read, &tool, json!({})).await;
            if called.failed() || called.ms() > QUICK_MS {
                broken.push(format!("a call to another upstream afterwards: {called:?}"));
                return;
            }
        }
    }

    /// Waits for a condition; what is wrong at the end of the time is noted.
    async fn settled(
        &self,
        what: &str,
        broken: &mut Vec<String>,
        mut check: impl AsyncFnMut(&Self) -> Result<(), String>,
    ) {
        let end = Instant::now() + SETTLING;
        loop {
            match check(self).await {
                Ok(()) => return,
                Err(wrong) if Instant::now() > end => {
                    broken.push(format!("not within {SETTLING:?}: {what}: {wrong}"));
                    return;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Stops the daemon; nothing of it may be left.
    async fn stop_in_time(self, broken: &mut Vec<String>) -> Home {
        let mut pids: Vec<u32> = descendants(self.daemon.pid()).into_keys().collect();
        pids.retain(|pid| !self.exempt.contains(pid));
        let began = Instant::now();
        let (home, status) = self.daemon.stop().await;
        if !status.success() || began.elapsed() > STOPPING {
            let took = began.elapsed();
            broken.push(format!(
                "SIGTERM ended the daemon with {status} after {took:?}"
            ));
        }
        let gone = crate::wait_until("all of its processes ended", SETTLING, async || {
            !pids.iter().copied().any(process::is_alive)
        });
        within(SETTLING * 2, "processes end", gone).await;
        let output = home.cli(["activity", "verify"]).await;
        if output.code != 0 {
            broken.push(format!(
                "activity verify: {} {}",
                output.stdout, output.stderr
            ));
        }
        home
    }
}

/// Whether the daemon's children are its live upstreams and one watchdog, and none is a zombie.
async fn children(proxy: &Proxy) -> Result<(), String> {
    let servers = proxy.daemon.api("/servers").await;
    let servers = servers["servers"].as_array().expect("servers").clone();
    let daemon = proxy.daemon.pid();
    let family = descendants(daemon);
    let zombies: Vec<_> = family
        .iter()
        .filter(|(_, process)| process.zombie)
        .collect();
    if !zombies.is_empty() {
        return Err(format!("zombies: {zombies:?}"));
    }
    let watchdog = process::watchdog_of(daemon);
    let children = family
        .iter()
        .filter(|(pid, process)| process.parent == daemon && Some(**pid) != watchdog)
        .count();
    let is_program = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        proxy.config["mcpServers"][name]["command"].is_string()
    };
    let count = |state: &str| {
        let matching = servers.iter().filter(|server| server["state"] == state);
        matching
            .filter(|server| is_program(&server["name"]))
            .count()
    };
    let (ready, connecting) = (count("ready"), count("connecting"));
    if children < ready || children > ready + connecting {
        return Err(format!(
            "{children} children for {ready} ready and {connecting} connecting upstreams"
        ));
    }
    let started = proxy.records.iter().flat_map(|record| {
        let mut pids = record.pids();
        pids.extend(record.grandchildren());
        pids
    });
    // In an hour pids are used again, by programs that are not ours.
    let stray = |pid: &u32| {
        process::is_alive(*pid)
            && process::runs_upstream(*pid)
            && !family.contains_key(pid)
            && !proxy.exempt.contains(pid)
    };
    match started.filter(stray).collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        stray => Err(format!("processes outlived their upstream: {stray:?}")),
    }
}

fn usage(proxy: &Proxy) -> Result<(), String> {
    let now = Usage::of(proxy.daemon.pid());
    let Usage { rss_mib, fds } = proxy.before;
    if now.rss_mib > rss_mib + proxy.memory_slack {
        return Err(format!("RSS {rss_mib:.0} → {:.0} MiB", now.rss_mib));
    }
    if now.fds > fds + FDS_SLACK {
        return Err(format!("{fds} → {} file descriptors", now.fds));
    }
    Ok(())
}

/// The latency that one call in a hundred exceeds; the longest of fewer.
pub(super) fn p99(latencies: &[f64]) -> f64 {
    percentile(latencies, 0.99)
}

pub(super) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a small number"
    )]
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}
