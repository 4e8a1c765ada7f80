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
        .until("all that do not read are dropped", 60, async || {
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
    // Backoff: half a second, doubling; what comes within 300 ms is one attempt.
    let attempts: Vec<_> = networks
        .iter()
        .map(|network| attempts(&network.accepted()))
        .collect();
    let most = attempts.iter().map(Vec::len).max().unwrap_or(0);
    let total: usize = attempts.iter().map(Vec::len).sum();
    assert!(most <= 8, "{most} attempts of one server in 20 s");
    // The first retry comes after half a second and up to a quarter of that.
    let mut second: Vec<_> = attempts.iter().filter_map(|times| times.get(1)).collect();
    second.sort();
    let spread = second
        .last()
        .zip(second.first())
        .map(|(last, first)| **last - **first);
    assert!(
        spread > Some(Duration::from_millis(50)),
        "no jitter: {spread:?}"
    );
    proxy.note(format!("30 down: {total} attempts in 20 s"));
    for network in &networks {
        network.set(Network::Pass);
    }
    let began = Instant::now();
    // Left alone they share a few attempts a minute; a call brings the next one forward.
    for number in 0..30 {
        proxy.read(&format!("down{number}:look")).await;
    }
    for number in 0..30 {
        let name = format!("down{number}");
        proxy
            .until(&name, 90, async || {
                proxy.server(&name).await["state"] == "ready"
            })
            .await;
    }
    proxy.note(format!(
        "all back in {:.0} s",
        began.elapsed().as_secs_f64()
    ));
    // A connection to each of the thirty is no leak.
    proxy.before.fds += 60;
    proxy.finish().await
}

fn attempts(times: &[Instant]) -> Vec<Instant> {
    let mut attempts: Vec<Instant> = Vec::new();
    for time in times {
        if attempts
            .last()
            .is_none_or(|last| *time - *last > Duration::from_millis(300))
        {
            attempts.push(*time);
        }
    }
    attempts
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
