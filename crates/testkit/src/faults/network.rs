//! R11 to R15 and R19: clients that are slow, and networks that break.

use std::time::{Duration, Instant};

use serde_json::json;

use super::case::{Case, Report, case};
use super::machine::Usage;
use super::proxy::{Lane, Proxy};
use super::setup::Setup;
use super::upstreams::tools;
use super::wire;
use crate::{HttpUpstream, Network, Outcome, Part, Script, TcpProxy, Tool, Wire};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "R11",
            "20 clients that do not read 10 MiB each",
            slow_readers,
        )
        .alone(),
        case("R12", "500 clients that drip their headers", slow_headers).alone(),
        case("R13", "half-open TCP towards an upstream", half_open),
        case(
            "R14",
            "RST in a call; event stream cut in its middle",
            resets,
        ),
        case(
            "R15",
            "30 upstreams down, then up; 401, 403, 404, 410",
            reconnects,
        ),
        case(
            "R19",
            "session forgotten by an HTTP upstream",
            forgotten_session,
        ),
    ]
}

async fn slow_readers() -> Report {
    let part = Part::Text;
    let tool = Tool::read_only("big").outcome(Outcome::Large {
        part,
        mebibytes: 10,
    });
    let mut setup = Setup::new();
    setup.stdio("up", &Script::new([tool]), json!({}));
    setup.set(json!({"limits": {"write_timeout": "3s"}}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let address = proxy.daemon.address().to_owned();
    let request = wire::modern_call(&address, "/mcp/server/up", "big");
    let readers = wire::connections(&address, 20, &request).await;
    let (mut peak, began) = (0.0_f64, Instant::now());
    proxy
        .until("all that do not read are dropped", 30, async || {
            let now = Usage::of(proxy.daemon.pid());
            peak = peak.max(now.rss_mib - proxy.before.rss_mib);
            began.elapsed() > Duration::from_secs(3) && now.fds <= proxy.before.fds + 4
        })
        .await;
    proxy.note(format!(
        "dropped in {:.1} s, RSS +{peak:.0}",
        began.elapsed().as_secs_f64()
    ));
    drop(readers);
    assert!(
        peak < 192.0,
        "RSS +{peak:.0} MiB for answers that are not read"
    );
    proxy.finish().await
}

async fn slow_headers() -> Report {
    let mut setup = Setup::new();
    setup.set(json!({"limits": {"header_timeout": "3s"}}));
    let mut proxy = setup.start().await;
    let address = proxy.daemon.address().to_owned();
    let mut drips = wire::connections(&address, 500, b"GET /healthz HTTP/1.1\r\nHo").await;
    assert_eq!(drips.len(), 500);
    let began = Instant::now();
    proxy
        .until("all of them are closed", 20, async || {
            for stream in &drips {
                let _ = stream.try_write(b"x");
            }
            Usage::of(proxy.daemon.pid()).fds <= proxy.before.fds + 10
        })
        .await;
    proxy.note(format!(
        "3 s allowed, closed after {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    drips.clear();
    proxy.finish().await
}

/// A daemon in front of an HTTP upstream with a breakable network between them.
struct Broken {
    proxy: Proxy,
    upstream: HttpUpstream,
    network: TcpProxy,
}

impl Broken {
    async fn start(script: Script, timeout: &str) -> Self {
        let mut setup = Setup::new();
        let upstream = setup.http("up", script, json!({})).await;
        let network = TcpProxy::start(upstream.address()).await;
        let url = format!("http://{}/mcp", network.address());
        setup.server("up", json!({"url": url, "timeout": timeout}));
        let proxy = setup.start().await;
        proxy.ready("up").await;
        Self {
            proxy,
            upstream,
            network,
        }
    }
}

async fn half_open() -> Report {
    let broken = Broken::start(Script::new(tools(&Outcome::Echo)), "2s").await;
    let Broken {
        mut proxy, network, ..
    } = broken;
    proxy.read("up:look").await.ok();
    network.set(Network::Swallow);
    let called = proxy.read("up:look").await;
    assert!(
        called.failed() && called.took < Duration::from_secs(5),
        "{called:?}"
    );
    let began = Instant::now();
    proxy
        .until("the dead connection is noticed", 60, async || {
            let _ = proxy.read("up:look").await;
            let server = proxy.server("up").await;
            server["state"] != "ready" || !server["last_error"].is_null()
        })
        .await;
    proxy.note(format!("noticed in {:.1} s", began.elapsed().as_secs_f64()));
    network.set(Network::Pass);
    let began = Instant::now();
    proxy
        .until("it is connected again", 60, async || {
            !proxy.read("up:look").await.failed()
        })
        .await;
    proxy.note(format!("back in {:.1} s", began.elapsed().as_secs_f64()));
    proxy.finish().await
}

async fn resets() -> Report {
    let mut script = Script::new(tools(&Outcome::Echo)).wire(Wire::PlainEventStream);
    let writes = json!({"readOnlyHint": false, "destructiveHint": false});
    script
        .tools
        .push(Tool::annotated("slow", &writes).outcome(Outcome::Hang));
    script
        .tools
        .push(Tool::annotated("cut", &writes).outcome(Outcome::Truncate));
    let Broken {
        mut proxy,
        upstream,
        network,
    } = Broken::start(script, "5s").await;
    let record = upstream.record();
    let sent = |name: &str| {
        record
            .calls()
            .iter()
            .filter(|call| call["name"] == name)
            .count()
    };
    let breaking = async {
        proxy
            .until("the call has arrived", 5, async || sent("slow") == 1)
            .await;
        network.set(Network::Reset);
        Instant::now()
    };
    let calling = proxy.call(Lane::Write, "up:slow", json!({}));
    let (called, reset) = tokio::join!(calling, breaking);
    assert!(called.failed(), "{called:?}");
    proxy.note(format!(
        "RST to error {:.0} ms",
        reset.elapsed().as_secs_f64() * 1e3
    ));
    network.set(Network::Pass);
    proxy
        .until("it is connected again", 30, async || {
            !proxy.read("up:look").await.failed()
        })
        .await;
    let called = proxy.call(Lane::Write, "up:cut", json!({})).await;
    assert!(called.failed(), "{called:?}");
    proxy.note(format!("cut stream {:.0} ms", called.ms()));
    proxy
        .until("it is connected again", 30, async || {
            !proxy.read("up:look").await.failed()
        })
        .await;
    assert_eq!(
        (sent("slow"), sent("cut")),
        (1, 1),
        "a write was sent again"
    );
    let ends = proxy.log("server=up&intent_type=write&status=error").await;
    assert_eq!(ends.len(), 2, "{ends:?}");
    proxy.finish().await
}

async fn reconnects() -> Report {
    let mut setup = Setup::new();
    let alive = HttpUpstream::start(
        setup.home.path(),
        "alive",
        Script::new(tools(&Outcome::Echo)),
    )
    .await;
    let mut networks = Vec::new();
    for number in 0..30 {
        let network = TcpProxy::start(alive.address()).await;
        network.set(Network::Close);
        let url = format!("http://{}/mcp", network.address());
        setup.server(&format!("down{number}"), json!({ "url": url }));
        networks.push(network);
    }
    let mut refusing = Vec::new();
    for status in [401, 403, 404, 410] {
        let mut script = Script::new(tools(&Outcome::Echo));
        script.http.status = Some(status);
        let name = format!("status{status}");
        refusing.push((name.clone(), setup.http(&name, script, json!({})).await));
    }
    let began = Instant::now();
    let mut proxy = setup.start().await;
    for (name, _) in &refusing {
        proxy
            .until(name, 10, async || {
                proxy.server(name).await["state"] == "failed"
            })
            .await;
    }
    let requests = |upstream: &HttpUpstream| upstream.record().events().len();
    let before: Vec<_> = refusing
        .iter()
        .map(|(_, upstream)| requests(upstream))
        .collect();
    tokio::time::sleep_until((began + Duration::from_secs(20)).into()).await;
    let after: Vec<_> = refusing
        .iter()
        .map(|(_, upstream)| requests(upstream))
        .collect();
    assert_eq!(before, after, "a refusal that is final was tried again");
    let total: usize = attempts(&networks, began).iter().map(Vec::len).sum();
    assert!(total <= 100, "{total} attempts of 30 servers in 20 s");
    proxy.note(format!("30 down: {total} attempts in 20 s"));
    let took = come_back(&proxy, &networks).await;
    proxy.note(format!("all back in {took:.0} s"));
    die_together(&mut proxy, &networks).await;
    // A connection to each of the thirty is no leak.
    proxy.before.fds += 60;
    proxy.finish().await
}

/// Loses all servers of R15 at once, after they were connected, and lets them be reached again.
async fn die_together(proxy: &mut Proxy, networks: &[TcpProxy]) {
    for network in networks {
        network.set(Network::Close);
    }
    let died = Instant::now();
    // A server over HTTP is found to be gone when it is called.
    for number in 0..networks.len() {
        assert!(proxy.read(&format!("down{number}:look")).await.failed());
    }
    tokio::time::sleep_until((died + Duration::from_secs(20)).into()).await;
    let attempts = attempts(networks, died);
    let most = attempts.iter().map(Vec::len).max().unwrap_or(0);
    assert!(most <= 8, "{most} attempts of one server in 20 s");
    let fourth = attempts.iter().filter_map(|times| times.get(3));
    let (first, last) = (fourth.clone().min(), fourth.max());
    let spread = last.zip(first).map(|(last, first)| *last - *first);
    assert!(
        spread > Some(Duration::from_millis(300)),
        "no jitter: {spread:?}"
    );
    let took = come_back(proxy, networks).await;
    proxy.note(format!("all back after a loss in {took:.0} s"));
}

/// Lets all servers of R15 be reached again; the seconds until all are ready by themselves.
async fn come_back(proxy: &Proxy, networks: &[TcpProxy]) -> f64 {
    let began = Instant::now();
    for network in networks {
        network.set(Network::Pass);
    }
    for number in 0..networks.len() {
        let name = format!("down{number}");
        let left = Duration::from_mins(1).saturating_sub(began.elapsed());
        proxy
            .until(&name, left.as_secs(), async || {
                proxy.server(&name).await["state"] == "ready"
            })
            .await;
    }
    began.elapsed().as_secs_f64()
}

/// The attempts to connect to each server after `since`; what comes within 300 ms is one attempt.
fn attempts(networks: &[TcpProxy], since: Instant) -> Vec<Vec<Instant>> {
    let attempts_of = |network: &TcpProxy| {
        let mut attempts: Vec<Instant> = Vec::new();
        for time in network.accepted() {
            let last = attempts.last();
            if time >= since && last.is_none_or(|last| time - *last > Duration::from_millis(300)) {
                attempts.push(time);
            }
        }
        attempts
    };
    networks.iter().map(attempts_of).collect()
}

async fn forgotten_session() -> Report {
    let mut script = Script::new(tools(&Outcome::Echo));
    script.http.calls_per_session = Some(1);
    let mut setup = Setup::new();
    let upstream = setup.http("up", script, json!({})).await;
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let mut failed = 0;
    for number in 0..6 {
        let (lane, tool) = [(Lane::Write, "up:save"), (Lane::Read, "up:look")][number % 2];
        failed += usize::from(proxy.call(lane, tool, json!({"n": number})).await.failed());
        proxy.ready("up").await;
    }
    let calls = upstream.record().calls();
    for number in [0, 2, 4] {
        let sent = calls
            .iter()
            .filter(|call| call["arguments"]["n"] == number)
            .count();
        assert_eq!(sent, 1, "write {number} was sent {sent} times");
    }
    assert!(failed <= 3, "{failed} of 6 calls failed");
    assert!(upstream.record().received("initialize").len() >= 3);
    proxy.note(format!("{failed} of 6 refused, no write sent twice"));
    proxy.finish().await
}
