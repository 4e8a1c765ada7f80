//! T6 to T8, T11 and T19 to T21: what comes over the network, and what goes out over it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::case::{Case, Report, case, not_yet};
use super::proxy::{ANSWER, Lane};
use super::setup::{Setup, binary};
use super::upstreams::tools;
use super::wire::{self, exchange, head};
use crate::{Home, Network, Outcome, Script, Session, TcpProxy, http_client};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("T6", "foreign Host and Origin on every route", rebinding),
        case(
            "T7",
            "redirects and endpoint events that lead to another origin",
            redirects,
        ),
        case(
            "T8",
            "a client's own credentials towards upstreams",
            passthrough,
        ),
        case("T11", "path traversal on every kind of route", traversal),
        case(
            "T19",
            "200 wrong keys; a key of one character",
            key_guessing,
        ),
        not_yet("T20", "CSRF on pages", "n/a: added with page"),
        not_yet(
            "T21",
            "key in the address of the page",
            "n/a: added with page",
        ),
    ]
}

/// Every route of the REST document and those of MCP, with every method they have.
fn routes() -> Vec<(String, String)> {
    let document: Value =
        serde_json::from_str(include_str!("../../../../docs/openapi.json")).expect("the document");
    let paths = document["paths"].as_object().expect("paths");
    let mut routes: Vec<_> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let path = path
                .replace("{name}", "other")
                .replace("{id}", "other:look");
            let methods = methods.as_object().expect("methods").keys().cloned();
            methods
                .map(move |method| (method.to_uppercase(), path.clone()))
                .collect::<Vec<_>>()
        })
        .collect();
    for path in ["/mcp", "/mcp/direct", "/mcp/server/other", "/events"] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            routes.push((method.to_owned(), path.to_owned()));
        }
    }
    for path in ["/", "/healthz", "/readyz", "/no/such/route"] {
        routes.push(("GET".to_owned(), path.to_owned()));
    }
    routes
}

async fn rebinding() -> Report {
    let mut proxy = Setup::new().start().await;
    let address = proxy.daemon.address().to_owned();
    let port = address.rsplit(':').next().expect("a port").to_owned();
    let key = proxy.daemon.key();
    let hosts = [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "0.0.0.0",
        "169.254.169.254",
        "[::ffff:127.0.0.1]",
        "127.1",
        "2130706433",
        "localhost@evil.example",
        "",
    ]
    .map(|host| format!("Host: {host}\r\n"));
    let origins = [
        "https://evil.example",
        "http://localhost.evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost",
        &format!("https://{address}"),
        "file://",
        &format!("http://{address}.evil.example"),
        "chrome-extension://abc",
    ]
    .map(|origin| format!("Host: {address}\r\nOrigin: {origin}\r\n"));
    let twice = [
        format!("Host: {address}\r\nHost: evil.example\r\n"),
        format!("Host: {address}\r\nOrigin: http://{address}\r\nOrigin: http://evil.example\r\n"),
    ];
    let bad: Vec<_> = hosts.into_iter().chain(origins).chain(twice).collect();
    let (mut tried, routes) = (0, routes());
    for (method, path) in &routes {
        for headers in &bad {
            let request = format!(
                "{method} {path} HTTP/1.1\r\n{headers}X-API-Key: {key}\r\nContent-Type: application/json\r\n\
                 Content-Length: 2\r\nConnection: close\r\n\r\n{{}}"
            );
            let answer = exchange(&address, request.as_bytes(), ANSWER).await;
            let answer = String::from_utf8_lossy(&answer);
            let status = answer.split(' ').nth(1).unwrap_or_default();
            assert!(
                ["400", "403", "421"].contains(&status),
                "{method} {path} {headers:?}: {answer:.200}"
            );
            assert!(
                !answer.to_lowercase().contains("access-control-allow"),
                "{method} {path}: CORS"
            );
            tried += 1;
        }
    }
    proxy.note(format!("{} routes, {tried} requests refused", routes.len()));
    proxy.finish().await
}

/// A listener that must not be visited.
async fn bait() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    (listener, address)
}

/// Answers every connection with these bytes.
async fn answering(answer: String) -> String {
    let (listener, address) = bait().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ =
                    tokio::time::timeout(Duration::from_secs(5), stream.read(&mut request)).await;
            });
        }
    });
    address
}

async fn redirects() -> Report {
    let (listener, foreign) = bait().await;
    let mut setup = Setup::new();
    for status in [301, 302, 303, 307, 308] {
        let head = format!(
            "HTTP/1.1 {status} x\r\nLocation: http://{foreign}/mcp\r\nContent-Length: 0\r\n\r\n"
        );
        let address = answering(head).await;
        setup.server(&format!("r{status}"), json!({"url": format!("http://{address}/mcp"), "headers": {"Authorization": "Bearer canary-token-1"}}));
    }
    for (name, endpoint) in [
        ("sse1", format!("http://{foreign}/messages")),
        ("sse2", format!("//{foreign}/messages")),
    ] {
        let events = format!("event: endpoint\ndata: {endpoint}\n\n");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{events}");
        let address = answering(head).await;
        setup.server(
            name,
            json!({"type": "sse", "url": format!("http://{address}/sse")}),
        );
    }
    let proxy = setup.start().await;
    let visited = tokio::time::timeout(Duration::from_secs(4), listener.accept()).await;
    assert!(visited.is_err(), "a request left the origin of its server");
    for status in [301, 302, 303, 307, 308] {
        let server = proxy.server(&format!("r{status}")).await;
        assert_ne!(server["state"], "ready", "{server}");
        assert!(!server.to_string().contains("canary-token-1"), "{server}");
    }
    proxy.finish().await
}

async fn passthrough() -> Report {
    let mut setup = Setup::new();
    let upstream = setup
        .http("up", Script::new(tools(&Outcome::Echo)), json!({}))
        .await;
    let network = TcpProxy::start(upstream.address()).await;
    network.set(Network::Pass);
    let url = format!("http://{}/mcp", network.address());
    setup.server(
        "up",
        json!({"url": url, "headers": {"Authorization": "Bearer of-the-upstream"}}),
    );
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    for path in ["/mcp", "/mcp/server/up", "/mcp/direct"] {
        let session = Session::open(&proxy.daemon.url(path)).await;
        let (name, arguments) = Lane::Read.call("up:look", &json!({}));
        let call = match path {
            "/mcp" => json!({"name": name, "arguments": arguments}),
            "/mcp/direct" => json!({"name": "up__look", "arguments": {}}),
            _ => json!({"name": "look", "arguments": {}}),
        };
        let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call});
        let request = http_client()
            .post(proxy.daemon.url(path))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", session.id())
            .header("authorization", "Bearer client-canary")
            .header("cookie", "session=client-canary")
            .header("x-custom", "client-canary")
            .header("proxy-authorization", "Basic client-canary")
            .json(&body);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{path}");
    }
    proxy
        .until("the calls have arrived", 5, async || {
            upstream.record().calls().len() == 3
        })
        .await;
    let seen = network.requests();
    assert!(
        seen.contains("of-the-upstream"),
        "the upstream did not get its own token"
    );
    assert!(
        !seen.contains("client-canary"),
        "the client's credentials reached the upstream"
    );
    proxy.note("3 endpoints");
    proxy.finish().await
}

async fn traversal() -> Report {
    let mut proxy = Setup::new().start().await;
    let address = proxy.daemon.address().to_owned();
    let key = proxy.daemon.key();
    let up = [
        "../../../../etc/passwd",
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "..%5c..%5cetc%5cpasswd",
        "%252e%252e%252fetc%252fpasswd",
        "..%00/etc/passwd",
        "....//....//etc/passwd",
        "%c0%ae%c0%ae/etc/passwd",
        "/etc/passwd",
        "other%2f..%2f..%2fapi_key",
        "other/../../api_key",
    ];
    let places = [
        "/",
        "/ui/",
        "/api/v1/servers/",
        "/api/v1/tools/",
        "/api/v1/activity/",
        "/mcp/server/",
    ];
    for place in places {
        for path in up {
            for end in ["", "/logs", "/tools"] {
                let more = format!("X-API-Key: {key}\r\nConnection: close\r\n\r\n");
                let request = head("GET", &format!("{place}{path}{end}"), &address, &more);
                let answer = exchange(&address, request.as_bytes(), ANSWER).await;
                let answer = String::from_utf8_lossy(&answer);
                assert!(
                    !answer.contains("root:") && !answer.contains(&key),
                    "{place}{path}{end}"
                );
                assert!(
                    !answer.starts_with("HTTP/1.1 5"),
                    "{place}{path}{end}: {answer:.200}"
                );
            }
        }
    }
    for name in ["../../x", "..", "a/b", "a\u{0}b", "", "a:b", "__proto__/x"] {
        let body = json!({"name": name, "url": "http://127.0.0.1:9/mcp"});
        let (status, answer) = proxy.rest("POST", "/servers", Some(body)).await;
        assert!(
            (400..500).contains(&status),
            "a server called {name:?}: {status} {answer}"
        );
    }
    proxy.note(format!("{} paths, 7 names", places.len() * up.len() * 3));
    proxy.finish().await
}

async fn key_guessing() -> Report {
    let mut proxy = Setup::new().start().await;
    let (address, began) = (proxy.daemon.address().to_owned(), Instant::now());
    let guess = async |number: usize| {
        let head = head(
            "GET",
            "/api/v1/status",
            &address,
            &format!("X-API-Key: guess-{number}\r\n"),
        );
        wire::status(&address, &head).await
    };
    let mut statuses = Vec::new();
    for number in 0..200 {
        statuses.push(guess(number).await);
        if began.elapsed() > Duration::from_secs(10) {
            break;
        }
    }
    assert!(
        statuses.iter().all(|status| [401, 429].contains(status)),
        "{statuses:?}"
    );
    let throttled = statuses.contains(&429);
    let guesses = u32::try_from(statuses.len()).expect("a few hundred");
    let rate = f64::from(guesses) / began.elapsed().as_secs_f64();
    assert!(
        throttled || rate < 50.0,
        "{rate:.0} guesses per second, never slowed"
    );
    proxy
        .until("the guesses are logged", 5, async || {
            let log = proxy.daemon.log().to_lowercase();
            log.contains("wrong key")
                || log.contains("wrong api key")
                || log.contains("invalid key")
                || log.contains("unauthorized")
                || log.contains("api key")
        })
        .await;
    proxy
        .until("the owner is let in", 15, async || {
            proxy.rest("GET", "/status", None).await.0 == 200
        })
        .await;
    let home = Home::new(&binary());
    home.write_config(&json!({"api_key": "x", "mcpServers": {}}));
    let output = home.cli(["config", "check"]).await;
    assert_eq!(
        output.code, 4,
        "a key of one character is taken: {}",
        output.stdout
    );
    proxy.note(format!(
        "{rate:.0} guesses/s{}",
        if throttled { ", then 429" } else { "" }
    ));
    proxy.finish().await
}
