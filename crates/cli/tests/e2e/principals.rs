//! Every route against everybody who might ask: no key, a wrong key, the key, a page of another
//! origin, another name for this machine.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::{Script, TestDaemon, Tool, http_client};

use crate::support::{api_key, home};

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

#[tokio::test]
async fn every_route_knows_whom_to_let_in() {
    let daemon = daemon(false).await;
    for (method, path) in api_routes(&daemon).await {
        assert_fates(&daemon, &method, &path, API).await;
    }
    assert_fates(&daemon, &Method::GET, "/events", EVENTS).await;
    for path in ["/mcp", "/mcp/direct", "/mcp/server/up"] {
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
    assert_fates(&daemon, &Method::POST, "/mcp", CLOSED_MCP).await;
    assert_fates(&daemon, &Method::GET, "/mcp", CLOSED_MCP).await;
    assert_fates(&daemon, &Method::GET, "/healthz", HEALTH).await;
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
