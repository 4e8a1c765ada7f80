//! Who is let in: only this machine, only this person, no web page.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use serde_json::json;
use testkit::{TestDaemon, http_client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::home;

const ROUTES: [&str; 6] = [
    "/mcp",
    "/healthz",
    "/readyz",
    "/api/v1/status",
    "/api/v1/tools",
    "/no/such/route",
];

async fn daemon() -> TestDaemon {
    TestDaemon::with_servers(home(), json!({})).await
}

async fn status(daemon: &TestDaemon, path: &str, header: (&str, &str)) -> u16 {
    let request = http_client()
        .get(daemon.url(path))
        .header(header.0, header.1);
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_foreign_host_is_refused_on_every_route() {
    let daemon = daemon().await;
    for host in [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
    ] {
        for path in ROUTES {
            let status = status(&daemon, path, ("host", host)).await;
            assert!([400, 403, 421].contains(&status), "{host} {path}: {status}");
        }
    }
}

#[tokio::test]
async fn a_foreign_origin_is_refused_on_every_route() {
    let daemon = daemon().await;
    let origins = [
        "https://evil.example",
        "http://localhost.evil.example",
        "null",
        // Another program on this machine.
        "http://127.0.0.1:9999",
        "http://localhost",
    ];
    for origin in origins {
        for path in ROUTES {
            assert_eq!(
                status(&daemon, path, ("origin", origin)).await,
                403,
                "{origin} {path}"
            );
        }
    }
}

#[tokio::test]
async fn this_machine_is_let_in_by_every_name() {
    let daemon = daemon().await;
    let port = daemon.address().rsplit(':').next().unwrap().to_owned();
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        let host = format!("{name}:{port}");
        assert_eq!(
            status(&daemon, "/healthz", ("host", &host)).await,
            200,
            "{host}"
        );
        let request = http_client().get(daemon.url("/healthz"));
        let request = request
            .header("host", &host)
            .header("origin", format!("http://{host}"));
        assert_eq!(request.send().await.unwrap().status(), 200, "{host}");
    }
}

/// The status of the answer to a request as it is written here.
async fn raw_status(daemon: &TestDaemon, head: &str) -> String {
    let mut stream = TcpStream::connect(daemon.address()).await.unwrap();
    let request = format!("{head}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer[..answer.len().min(12)].to_owned()
}

#[tokio::test]
async fn neither_a_second_header_nor_a_whole_address_gets_past() {
    let daemon = daemon().await;
    let ours = daemon.address().to_owned();
    let origin = format!("Origin: http://{ours}");
    for (head, expected) in [
        (format!("GET /healthz HTTP/1.1\r\nHost: {ours}"), "200"),
        (
            format!("GET /healthz HTTP/1.1\r\nHost: {ours}\r\n{origin}"),
            "200",
        ),
        (
            format!("GET http://{ours}/healthz HTTP/1.1\r\nHost: {ours}"),
            "200",
        ),
        (
            format!("GET http://evil.example/healthz HTTP/1.1\r\nHost: {ours}"),
            "403",
        ),
        (
            format!("GET /healthz HTTP/1.1\r\nHost: {ours}\r\nHost: evil.example"),
            "403",
        ),
        (
            format!(
                "GET /healthz HTTP/1.1\r\nHost: {ours}\r\n{origin}\r\nOrigin: http://evil.example"
            ),
            "403",
        ),
    ] {
        assert_eq!(
            raw_status(&daemon, &head).await,
            format!("HTTP/1.1 {expected}"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn the_api_wants_the_key() {
    let daemon = daemon().await;
    let url = daemon.url("/api/v1/status");
    let http = http_client();
    assert_eq!(http.get(&url).send().await.unwrap().status(), 401);
    let wrong = http
        .get(&url)
        .header("x-api-key", "guessed")
        .send()
        .await
        .unwrap();
    assert_eq!(wrong.status(), 401);
    let key = std::fs::read_to_string(daemon.home.path().join(".mcpproxy/api_key")).unwrap();
    let key = key.trim();
    assert!(key.len() >= 32, "{} characters", key.len());
    let right = http
        .get(&url)
        .header("x-api-key", key)
        .send()
        .await
        .unwrap();
    assert_eq!(right.status(), 200);
    let bearer = http.get(&url).bearer_auth(key).send().await.unwrap();
    assert_eq!(bearer.status(), 200);
    let in_url = http
        .get(format!("{url}?api_key={key}"))
        .send()
        .await
        .unwrap();
    assert_eq!(in_url.status(), 401);
}

#[tokio::test]
async fn files_are_closed_to_others() {
    let daemon = daemon().await;
    let folder = daemon.home.path().join(".mcpproxy");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("api_key")), 0o600);
    let entries = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let sockets: Vec<_> = entries
        .filter(|path| path.metadata().unwrap().file_type().is_socket())
        .collect();
    assert_eq!(sockets.len(), 1, "{sockets:?}");
    assert_eq!(mode(&sockets[0]), 0o600);
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused_without_authentication() {
    let home = home();
    home.write_config(&json!({"mcpServers": {}}));
    let output = home.cli(["serve", "--listen", "0.0.0.0:0"]).await;
    output.ended_with(4);
    assert!(
        output.stderr.contains("require_mcp_auth"),
        "{}",
        output.stderr
    );
}

#[tokio::test]
async fn an_agent_finds_no_tool_that_manages_the_proxy() {
    let daemon = daemon().await;
    let session = daemon.session().await;
    for tool in [
        "upstream_servers",
        "add_server",
        "quarantine_security",
        "set_policy",
    ] {
        let answer = session
            .request(
                "tools/call",
                &json!({"name": tool, "arguments": {}}).to_string(),
            )
            .await;
        let refused = match answer.result {
            Ok(result) => result.contains("\"isError\":true"),
            Err(_) => true,
        };
        assert!(refused, "{tool}");
    }
}
