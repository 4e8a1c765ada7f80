//! Every route against everybody who might ask: no key, a wrong key, the key, a page of another
//! origin, another name for this machine.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::{Script, TestDaemon, Tool, http_client};

use crate::support::{api_key, home, server_in};

/// Who asks.
#[derive(Debug, Clone, Copy)]
enum Principal {
    NoKey,
    WrongKey,
    Key,
    ForeignOrigin,
    ForeignHost,
}

/// What becomes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Whatever the route then says.
    LetIn,
    Unauthorized,
    Refused,
}

use Fate::{LetIn, Refused, Unauthorized};

const PRINCIPALS: [Principal; 5] = [
    Principal::NoKey,
    Principal::WrongKey,
    Principal::Key,
    Principal::ForeignOrigin,
    Principal::ForeignHost,
];

//                         no key        wrong key     key    origin   host
const API: [Fate; 5] = [Unauthorized, Unauthorized, LetIn, Refused, Refused];
const EVENTS: [Fate; 5] = [Unauthorized, Unauthorized, LetIn, Refused, Refused];
const OPEN_MCP: [Fate; 5] = [LetIn, LetIn, LetIn, Refused, Refused];
const CLOSED_MCP: [Fate; 5] = [Unauthorized, Unauthorized, LetIn, Refused, Refused];
const HEALTH: [Fate; 5] = [LetIn, LetIn, LetIn, Refused, Refused];
const NO_ROUTE: [Fate; 5] = [LetIn, LetIn, LetIn, Refused, Refused];

/// Every way in for MCP, and one that leads nowhere: whoever may not come in does not learn that.
const ENDPOINTS: [&str; 4] = [
    "/mcp",
    "/mcp/direct",
    "/mcp/server/up",
    "/mcp/server/absent",
];

async fn daemon(require_mcp_auth: bool) -> TestDaemon {
    let home = home();
    let up = home.upstream("up", &Script::new([Tool::read_only("look")]));
    let config = json!({
        "require_mcp_auth": require_mcp_auth,
        "mcpServers": {"up": up.config()},
    });
    TestDaemon::start(home, config).await
}

/// The routes of the API, with something in place of each parameter that names nothing.
async fn api_routes(daemon: &TestDaemon) -> Vec<(Method, String)> {
    let url = daemon.url("/api/v1/openapi.json");
    let request = http_client().get(url).bearer_auth(api_key(&daemon.home));
    let text = request.send().await.unwrap().text().await.unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut routes = vec![(Method::GET, "/api/v1/openapi.json".to_owned())];
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path
            .replace("{name}", "absent")
            .replace("{id}", "absent:tool");
        assert!(!path.contains('{'), "a parameter without a value: {path}");
        for method in item.as_object().unwrap().keys() {
            routes.push((method.to_uppercase().parse().unwrap(), path.clone()));
        }
    }
    assert!(routes.len() > 20, "{routes:?}");
    routes
}

async fn assert_fates(daemon: &TestDaemon, method: &Method, path: &str, expected: [Fate; 5]) {
    for (principal, expected) in PRINCIPALS.into_iter().zip(expected) {
        let request = http_client()
            .request(method.clone(), daemon.url(path))
            .header("content-type", "application/json")
            .body("{}");
        let answer = principal.sign(request, &api_key(&daemon.home));
        let answer = answer.send().await.unwrap();
        let (status, cors) = (answer.status().as_u16(), answer.headers().clone());
        let fate = match status {
            401 => Unauthorized,
            403 => Refused,
            _ => LetIn,
        };
        assert_eq!(fate, expected, "{method} {path} by {principal:?}: {status}");
        assert!(
            !cors.contains_key("access-control-allow-origin"),
            "{method} {path} is open to pages of other origins"
        );
    }
}

const STOP: &str = "/api/v1/stop";

#[tokio::test]
async fn every_route_knows_whom_to_let_in() {
    let daemon = daemon(false).await;
    for (method, path) in api_routes(&daemon).await {
        // Whoever is let in there ends the daemon.
        if path != STOP {
            assert_fates(&daemon, &method, &path, API).await;
        }
    }
    let stranger = http_client().post(daemon.url(STOP)).send().await.unwrap();
    assert_eq!(stranger.status(), 401);
    assert!(daemon.is_up().await);
    assert_fates(&daemon, &Method::GET, "/events", EVENTS).await;
    for path in ENDPOINTS {
        assert_fates(&daemon, &Method::POST, path, OPEN_MCP).await;
    }
    for path in ["/healthz", "/readyz"] {
        assert_fates(&daemon, &Method::GET, path, HEALTH).await;
    }
    for path in ["/", "/no/such/route", "/api/v1/no/such/route"] {
        assert_fates(&daemon, &Method::GET, path, NO_ROUTE).await;
    }
}

#[tokio::test]
async fn mcp_is_closed_when_the_config_says_so() {
    let daemon = daemon(true).await;
    for path in ENDPOINTS {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            assert_fates(&daemon, &method, path, CLOSED_MCP).await;
        }
    }
    assert_fates(&daemon, &Method::GET, "/healthz", HEALTH).await;
}

/// What a client of either era says first, on an endpoint.
fn greetings(daemon: &TestDaemon, endpoint: &str) -> [RequestBuilder; 2] {
    let client = json!({"name": "test", "version": "0"});
    let initialize =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let discover = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": client,
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let say = |method: &str, params: &Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        http_client()
            .post(daemon.url(endpoint))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body.to_string())
    };
    [
        say("initialize", &initialize),
        say("server/discover", &discover)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "server/discover"),
    ]
}

#[tokio::test]
async fn a_closed_endpoint_is_closed_to_both_eras() {
    let daemon = daemon(true).await;
    let key = api_key(&daemon.home);
    server_in(&daemon, "up", "ready").await;
    for endpoint in ["/mcp", "/mcp/direct", "/mcp/server/up"] {
        for greeting in greetings(&daemon, endpoint) {
            for (principal, fate) in PRINCIPALS.into_iter().zip(CLOSED_MCP) {
                let greeting = principal.sign(greeting.try_clone().unwrap(), &key);
                let answer = greeting.send().await.unwrap();
                let status = answer.status().as_u16();
                let text = answer.text().await.unwrap();
                let expected = match fate {
                    LetIn => 200,
                    Unauthorized => 401,
                    Refused => 403,
                };
                assert_eq!(status, expected, "{endpoint} by {principal:?}: {text}");
                let welcome = text.contains("\"capabilities\"");
                assert_eq!(
                    welcome,
                    fate == LetIn,
                    "{endpoint} by {principal:?}: {text}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_session_is_no_key() {
    let daemon = daemon(true).await;
    let key = api_key(&daemon.home);
    server_in(&daemon, "up", "ready").await;
    for endpoint in ["/mcp", "/mcp/direct", "/mcp/server/up"] {
        let [initialize, _] = greetings(&daemon, endpoint);
        let answer = initialize.bearer_auth(&key).send().await.unwrap();
        let session = answer.headers()["mcp-session-id"].clone();
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        let list = http_client()
            .post(daemon.url(endpoint))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", session)
            .body(list.to_string());
        let with_key = list.try_clone().unwrap().bearer_auth(&key);
        assert_eq!(with_key.send().await.unwrap().status(), 200, "{endpoint}");
        assert_eq!(list.send().await.unwrap().status(), 401, "{endpoint}");
    }
}

#[tokio::test]
async fn a_key_in_the_address_is_no_key() {
    let daemon = daemon(false).await;
    let key = api_key(&daemon.home);
    for parameter in [
        "api_key",
        "apikey",
        "key",
        "token",
        "access_token",
        "x-api-key",
    ] {
        let url = daemon.url(&format!("/api/v1/status?{parameter}={key}"));
        let status = http_client().get(url).send().await.unwrap().status();
        assert_eq!(status, 401, "{parameter}");
    }
}

impl Principal {
    fn sign(self, request: RequestBuilder, key: &str) -> RequestBuilder {
        match self {
            Self::NoKey => request,
            Self::WrongKey => request.bearer_auth(key.replace(char::is_alphanumeric, "0")),
            Self::Key => request.bearer_auth(key),
            Self::ForeignOrigin => request
                .bearer_auth(key)
                .header("origin", "https://evil.example"),
            Self::ForeignHost => request.bearer_auth(key).header("host", "evil.example"),
        }
    }
}
